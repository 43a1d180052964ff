/* Warnings, and what each column holds. */

tabweave.sections.push({
  id: "warnings", title: "Look at first",
  draw: (d) => {
    if (!d.warnings.length)
      return [tabweave.el("p", { class: "empty" },
        "Nothing odd: no identifiers, constants, copies, gaps or columns that give the target away.")];
    return [tabweave.el("ul", { class: "notes" }, d.warnings.map((note) =>
      tabweave.el("li", { class: note.level },
        tabweave.el("span", { class: "tag" }, note.level === "warning" ? "Warning" : "Note"),
        tabweave.el("span", {}, note.column === null ? null : [tabweave.el("b", {}, tabweave.value(note.column)), " "],
          note.text, note.text.endsWith("?") ? null : "."))))];
  },
});

tabweave.sections.push({
  id: "columns", title: "Columns",
  draw: (d) => {
    const heads = [{ name: "column" }, { name: "kind" }, { name: "missing", number: true },
      { name: "distinct", number: true }, { name: "what it holds" }];
    const rows = d.columns.map((column) => [
      [tabweave.value(column.name), column.role === "column" ? null
        : tabweave.el("span", { class: "role", title: column.why }, column.role)],
      column.kind,
      column.missing ? [tabweave.percent(column.missing / d.rows), tabweave.bar(column.missing / d.rows)] : "none",
      tabweave.whole(column.distinct),
      column.kind === "numeric" || column.kind === "datetime" ? tabweave.distribution(column) : tabweave.frequencies(column, d.rows),
    ]);
    return [tabweave.table("The columns: kind, missing and distinct values, most frequent values", heads, rows,
      { classes: "cards columns" })];
  },
});

tabweave.frequencies = (column, rows) => {
  if (!column.top.length) return tabweave.el("span", { class: "missing" }, "nothing");
  // The elements of sets add up to more than the rows: the strip then shows shares of elements.
  const whole = column.kind === "set" ? column.top.reduce((sum, [, count]) => sum + count, column.rest) : rows;
  const parts = column.top.map(([, count], i) =>
    tabweave.el("span", { class: `part p${i}`, vars: { "--w": count / whole } }));
  const rest = column.distinct - column.top.length;
  const words = column.top.map(([value, count]) => tabweave.el("span", { class: "word" },
    tabweave.value(value), " ", tabweave.el("span", { class: "quiet" }, tabweave.percent(count / rows))));
  return tabweave.el("div", { class: "holds" },
    tabweave.el("div", { class: "strip", "aria-hidden": "true" }, parts,
      tabweave.el("span", { class: "part others", vars: { "--w": column.rest / whole } })),
    tabweave.el("div", { class: "words" }, words,
      rest > 0 ? tabweave.el("span", { class: "word quiet" }, `and ${tabweave.plural(rest, "other")}`) : null));
};

tabweave.distribution = (column) => {
  if (!column.summary) return tabweave.el("span", { class: "missing" }, "nothing");
  const s = column.summary;
  const words = [["min", s.min], ["median", s.median], ["max", s.max], ["mean", s.mean]].map(([name, x]) =>
    tabweave.el("span", { class: "word" }, tabweave.el("span", { class: "quiet" }, name), " ", typeof x === "string" ? x : tabweave.number(x, name === "mean" ? 4 : 6)));
  if (!column.bars) return tabweave.el("div", { class: "holds" }, tabweave.el("div", { class: "words" }, words));
  const top = Math.max(...column.bars);
  const bars = column.bars.map((count, i) => {
    const height = count ? Math.max(1, (26 * count) / top) : 0;
    return tabweave.svg("rect", { x: i * 10 + 1, y: 27 - height, width: 8, height });
  });
  return tabweave.el("div", { class: "holds" },
    tabweave.svg("svg", { class: "spark", viewBox: `0 0 ${column.bars.length * 10} 28`, "aria-hidden": "true",
      preserveAspectRatio: "none" }, bars),
    tabweave.el("div", { class: "words" }, words));
};
