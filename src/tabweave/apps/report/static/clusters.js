/* Clusters by what they have more of, and neighbours with the reasons why. */

tabweave.sections.push({
  id: "clusters", title: "Clusters",
  draw: (d) => {
    if (!d.clusters || d.clusters.groups.length < 2)
      return [tabweave.el("p", { class: "empty" }, d.method ? "The rows do not fall into groups." : tabweave.nothingLeft)];
    const s = d.clusters.silhouette;
    const how = s > 0.5 ? "are well apart" : s > 0.25 ? "are apart, with fringes" : s > 0.1 ? "overlap" : "overlap so much that they are a sketch, not a finding";
    const heads = [{ name: "value" }, { name: "here", number: true }, { name: "overall", number: true }, { name: "times", number: true }];
    return [
      tabweave.el("p", {}, "Groups of rows, each described by the values it has more often than the whole table. ",
        tabweave.el("span", { class: "quiet" }, `They ${how} (silhouette ${s.toFixed(2)}).`)),
      tabweave.el("div", { class: "grid" }, d.clusters.groups.map((group, i) => tabweave.el("article", { class: "card" },
        tabweave.el("h3", {}, `Cluster ${tabweave.letter(i)} `, tabweave.el("span", { class: "quiet" },
          `${tabweave.plural(group.size, "row")}, ${tabweave.percent(group.share)}`)),
        tabweave.bar(group.share),
        group.target.length ? tabweave.el("p", { class: "small" }, tabweave.el("b", {}, tabweave.value(d.target)), ": ",
          group.target.map((v, j) => [j ? ", " : "", tabweave.value(v.value), ` ${tabweave.percent(v.share)} (${v.lift.toFixed(1)}×)`])) : null,
        group.values.length
          ? tabweave.table(`Values over-represented in cluster ${tabweave.letter(i)}`, heads, group.values.map((v) => [
            [tabweave.el("span", { class: "quiet" }, tabweave.value(v.column)), " ", tabweave.value(v.value)],
            [tabweave.el("span", { title: tabweave.plural(v.count, "row") }, tabweave.percent(v.share)), tabweave.bar(v.share, v.overall)],
            tabweave.percent(v.overall), `${v.lift.toFixed(v.lift < 10 ? 1 : 0)}×`]), { classes: "over" })
          : tabweave.el("p", { class: "quiet" }, "Nothing stands out; these rows are much like all others.")))),
      tabweave.el("p", { class: "quiet small" }, "Bars: share of the cluster's rows that have the value; the tick is the share overall."),
    ];
  },
});

tabweave.sections.push({
  id: "neighbours", title: "Nearest neighbours",
  draw: (d) => {
    const found = d.neighbors ? d.neighbors.rows.filter((row) => row.near.length) : [];
    if (!found.length) return [tabweave.el("p", { class: "empty" }, d.method ? "No row has another one to be compared with." : tabweave.nothingLeft)];
    const into = tabweave.el("div", {});
    const show = (i) => tabweave.fill(into, tabweave.neighbours(d, found[i]));
    show(0);
    return [
      tabweave.el("p", {}, "The rows most similar to a chosen one, and how much each column contributes to their distance."),
      tabweave.el("p", { class: "choosers" }, tabweave.chooser("Row", found.map((r) => `${tabweave.row(r.row, r.id)}, ${r.why}`), show)),
      into,
    ];
  },
});

tabweave.neighbours = (d, row) => {
  const names = d.neighbors.columns;
  const target = (r) => (d.target ? tabweave.el("p", { class: "small" }, tabweave.el("b", {}, tabweave.value(d.target)), ": ", tabweave.value(r.target)) : null);
  const copies = (n, words) => (n > 1 ? tabweave.el("span", { class: "quiet" }, `, ${tabweave.plural(n - 1, "row")} ${words}`) : null);
  const own = tabweave.el("article", { class: "card chosen" },
    tabweave.el("h3", {}, `Row ${tabweave.row(row.row, row.id)}`, copies(row.copies, "like it")), target(row),
    tabweave.el("dl", {}, names.map((name, i) => [tabweave.el("dt", {}, tabweave.value(name)), tabweave.el("dd", {}, tabweave.value(row.cells[i]))])));
  const heads = [{ name: "column" }, { name: "this row" }, { name: "neighbour" }, { name: "share", number: true }];
  const near = row.near.map((other) => {
    const apart = names.map((_, i) => i).filter((i) => other.cells[i] !== row.cells[i] || Math.abs(other.shares[i]) >= 0.005)
      .sort((a, b) => other.shares[b] - other.shares[a]);
    const rest = names.length - apart.length;
    const same = apart.length === 0 ? "All columns that the embedding uses are the same."
      : rest ? `The other ${rest === 1 ? "column is" : `${rest} columns are`} the same.` : "";
    return tabweave.el("article", { class: "card" },
      tabweave.el("h3", {}, `Row ${tabweave.row(other.row, other.id)} `,
        tabweave.el("span", { class: "quiet" }, `distance ${tabweave.distance(other.distance)}`), copies(other.copies, "like it")),
      target(other),
      apart.length ? tabweave.table(`Why row ${other.row} is not closer`, heads, apart.slice(0, 8).map((i) => [
        tabweave.value(names[i]), tabweave.value(row.cells[i]), tabweave.value(other.cells[i]),
        [tabweave.percent(Math.max(0, other.shares[i])), tabweave.bar(other.shares[i])]]), { classes: "why" }) : null,
      tabweave.el("p", { class: "quiet small" }, apart.length > 8 ? `And ${apart.length - 8} more columns, each a smaller part. ` : null, same));
  });
  return [tabweave.el("div", { class: "near" }, own, tabweave.el("div", { class: "grid" }, near))];
};
