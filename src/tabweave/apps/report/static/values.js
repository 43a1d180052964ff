/* The values of a column: the tree they form, and how far apart they are. */

tabweave.sections.push({
  id: "values", title: "Values of a column",
  draw: (d) => {
    const found = d.values ? d.values.columns : [];
    if (!found.length) return [tabweave.el("p", { class: "empty" }, d.method ? "No categorical column has two values to compare." : tabweave.nothingLeft)];
    const into = tabweave.el("div", {});
    const show = (i) => tabweave.fill(into, tabweave.oneColumn(found[i]));
    show(0);
    return [
      tabweave.el("p", {}, "Two values are similar if they occur with the same values of the other columns. The tree joins " +
        "what is alike early; the table says how far apart the embedding puts two values."),
      tabweave.el("p", { class: "choosers" }, tabweave.chooser("Column", found.map((c) => c.column), show),
        found.length < d.values.of
          ? tabweave.el("span", { class: "quiet small" }, `The ${found.length} that count most, of ${d.values.of}.`) : null),
      into,
    ];
  },
});

tabweave.oneColumn = (column) => {
  const stage = tabweave.el("div", { class: "stage" });
  const few = column.labels.length < column.of
    ? tabweave.el("p", { class: "quiet small" },
      `Shown are the ${column.labels.length} most frequent of ${tabweave.whole(column.of)} values.`) : null;
  requestAnimationFrame(() => tabweave.onLook(stage, (width) => tabweave.dendrogram(stage, Math.min(width, 560), column)));
  return [few, tabweave.el("div", { class: "two even" },
    tabweave.el("figure", {}, tabweave.el("figcaption", {}, "Tree of values"), stage,
      tabweave.more("The joins as a table", () => tabweave.joins(column))),
    tabweave.el("figure", {}, tabweave.el("figcaption", {}, "Distances between values"), tabweave.heatmap(column)))];
};

tabweave.dendrogram = (stage, width, column) => {
  const n = column.labels.length;
  const row = n > 12 ? 18 : 26;
  const high = n * row + 30;
  const widest = Math.max(...column.labels.map((label) => tabweave.text(label).length));
  const right = Math.min(width * 0.5, Math.max(60, widest * 7.2 + 18));
  const top = Math.max(...column.merges.map((m) => m[2]), 1e-12);
  const x = (height) => 8 + (width - right - 8) * (1 - height / top);
  const nodes = column.labels.map((_, i) => ({ x: x(0), y: i * row + row / 2 }));
  const lines = [];
  for (const [a, b, height] of column.merges) {
    const [p, q] = [nodes[a], nodes[b]];
    lines.push(tabweave.svg("path", { d: `M${p.x} ${p.y}H${x(height)}V${q.y}H${q.x}`, class: "branch" }));
    nodes.push({ x: x(height), y: (p.y + q.y) / 2 });
  }
  const letters = Math.floor((right - 12) / 7);
  const names = column.labels.map((label, i) => tabweave.svg("text", {
    x: x(0) + 8, y: i * row + row / 2, "dominant-baseline": "central", class: label === null ? "missing" : null,
  }, tabweave.svg("title", {}, `${tabweave.text(label)}: ${tabweave.plural(column.counts[i], "row")}`),
  tabweave.shorten(tabweave.text(label), letters)));
  const base = n * row + 6;
  const axis = [tabweave.svg("path", { d: `M${x(top)} ${base}H${x(0)}`, class: "axis" }),
    tabweave.svg("text", { x: x(top), y: base + 15, class: "small" }, top.toFixed(2)),
    tabweave.svg("text", { x: x(0), y: base + 15, class: "small", "text-anchor": "end" }, "0")];
  stage.replaceChildren(tabweave.svg("svg", {
    viewBox: `0 0 ${width} ${high}`, width, height: high, role: "img",
    "aria-label": `Tree of the values of ${column.column}; the table below lists its joins`,
  }, lines, names, axis));
  tabweave.cutTexts(names, column.labels.map(tabweave.text), () => right - 10);
};

tabweave.joins = (column) => {
  const members = column.labels.map((label) => [tabweave.text(label)]);
  const name = (list) => (list.length > 4 ? `${list.slice(0, 3).join(", ")} and ${list.length - 3} more` : list.join(", "));
  const rows = column.merges.map(([a, b, height]) => {
    members.push([...members[a], ...members[b]]);
    return [tabweave.value(name(members[a])), tabweave.value(name(members[b])), height.toFixed(3)];
  });
  return tabweave.table(`How the values of ${column.column} join`,
    [{ name: "these" }, { name: "join these" }, { name: "at height", number: true }], rows);
};

tabweave.heatmap = (column) => {
  const far = Math.max(...column.distances.flat(), 1e-12);
  const names = column.labels.map(tabweave.text);
  return tabweave.heat(`Distances between the values of ${column.column}; dark is far`, names, column.distances, far,
    (i, j) => `${names[i]} – ${names[j]}: ${i === j ? "0" : column.distances[i][j].toPrecision(2)}`, (x) => x.toPrecision(2));
};

/* A shaded table of pairs; written out where there is room. */
tabweave.heat = (caption, names, values, most, title, write) => {
  const written = write && names.length <= 9;
  const short = (name) => tabweave.shorten(name, written ? 20 : 14);
  const head = tabweave.el("tr", {}, tabweave.el("td", {}), names.map((name) =>
    tabweave.el("th", { scope: "col", title: name }, tabweave.el("span", {}, short(name)))));
  const rows = names.map((name, i) => tabweave.el("tr", {},
    tabweave.el("th", { scope: "row", title: name }, short(name)),
    values[i].map((value, j) => {
      const t = Math.round((100 * Math.max(0, value)) / most);
      const text = i === j && write ? "0" : write ? write(value) : String(value);
      // Where something is written the shades stay pale enough for it to be read.
      return tabweave.el("td", { vars: { "--t": `${Math.round(t * (written ? 0.42 : 0.9))}%` }, title: title(i, j) },
        written ? text : write ? tabweave.el("span", { class: "hidden" }, text) : null);
    })));
  return tabweave.scroll(caption, tabweave.el("table", { class: `heat ${written ? "" : "tight"}` },
    tabweave.el("caption", { class: "hidden" }, caption), tabweave.el("thead", {}, head), tabweave.el("tbody", {}, rows)));
};
