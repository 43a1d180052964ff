/* Clusters by what they have more of, and neighbours with the reasons why. */

weft.sections.push({
  id: "clusters", title: "Clusters",
  draw: (d) => {
    if (!d.clusters || d.clusters.groups.length < 2)
      return [weft.el("p", { class: "empty" }, "The rows do not fall into groups.")];
    const s = d.clusters.silhouette;
    const how = s > 0.5 ? "are well apart" : s > 0.25 ? "are apart, with fringes" : s > 0.1 ? "overlap" : "overlap so much that they are a sketch, not a finding";
    const heads = [{ name: "value" }, { name: "here", number: true }, { name: "overall", number: true }, { name: "times", number: true }];
    return [
      weft.el("p", {}, "Groups of rows, each described by the values it has more often than the whole table. ",
        weft.el("span", { class: "quiet" }, `They ${how} (silhouette ${s.toFixed(2)}).`)),
      weft.el("div", { class: "grid" }, d.clusters.groups.map((group, i) => weft.el("article", { class: "card" },
        weft.el("h3", {}, `Cluster ${weft.letter(i)} `, weft.el("span", { class: "quiet" },
          `${weft.plural(group.size, "row")}, ${weft.percent(group.share)}`)),
        weft.bar(group.share),
        group.target.length ? weft.el("p", { class: "small" }, weft.el("b", {}, weft.value(d.target)), ": ",
          group.target.map((v, j) => [j ? ", " : "", weft.value(v.value), ` ${weft.percent(v.share)} (${v.lift.toFixed(1)}×)`])) : null,
        group.values.length
          ? weft.table(`Values over-represented in cluster ${weft.letter(i)}`, heads, group.values.map((v) => [
            [weft.el("span", { class: "quiet" }, weft.value(v.column)), " ", weft.value(v.value)],
            [weft.el("span", { title: weft.plural(v.count, "row") }, weft.percent(v.share)), weft.bar(v.share, v.overall)],
            weft.percent(v.overall), `${v.lift.toFixed(v.lift < 10 ? 1 : 0)}×`]), { classes: "over" })
          : weft.el("p", { class: "quiet" }, "Nothing stands out; these rows are much like all others.")))),
      weft.el("p", { class: "quiet small" }, "Bars: share of the cluster's rows that have the value; the tick is the share overall."),
    ];
  },
});

weft.sections.push({
  id: "neighbours", title: "Nearest neighbours",
  draw: (d) => {
    const found = d.neighbors ? d.neighbors.rows.filter((row) => row.near.length) : [];
    if (!found.length) return [weft.el("p", { class: "empty" }, "No row has another one to be compared with.")];
    const into = weft.el("div", {});
    const show = (i) => weft.fill(into, weft.neighbours(d, found[i]));
    show(0);
    return [
      weft.el("p", {}, "The rows nearest to a chosen one, and how much each column keeps them apart."),
      weft.el("p", { class: "choosers" }, weft.chooser("Row", found.map((r) => `${weft.whole(r.row)}, ${r.why}`), show)),
      into,
    ];
  },
});

weft.neighbours = (d, row) => {
  const names = d.neighbors.columns;
  const target = (r) => (d.target ? weft.el("p", { class: "small" }, weft.el("b", {}, weft.value(d.target)), ": ", weft.value(r.target)) : null);
  const copies = (n, words) => (n > 1 ? weft.el("span", { class: "quiet" }, `, ${weft.plural(n - 1, "row")} ${words}`) : null);
  const own = weft.el("article", { class: "card chosen" },
    weft.el("h3", {}, `Row ${weft.whole(row.row)}`, copies(row.copies, "like it")), target(row),
    weft.el("dl", {}, names.map((name, i) => [weft.el("dt", {}, weft.value(name)), weft.el("dd", {}, weft.value(row.cells[i]))])));
  const heads = [{ name: "column" }, { name: "this row" }, { name: "neighbour" }, { name: "share", number: true }];
  const near = row.near.map((other) => {
    const apart = names.map((_, i) => i).filter((i) => other.cells[i] !== row.cells[i] || Math.abs(other.shares[i]) >= 0.005)
      .sort((a, b) => other.shares[b] - other.shares[a]);
    const rest = names.length - apart.length;
    const same = apart.length === 0 ? "All columns the embedding sees are the same."
      : rest ? `The other ${rest === 1 ? "column is" : `${rest} columns are`} the same.` : "";
    return weft.el("article", { class: "card" },
      weft.el("h3", {}, `Row ${weft.whole(other.row)} `,
        weft.el("span", { class: "quiet" }, `distance ${weft.number(other.distance)}`), copies(other.copies, "like it")),
      target(other),
      apart.length ? weft.table(`Why row ${other.row} is not nearer`, heads, apart.slice(0, 8).map((i) => [
        weft.value(names[i]), weft.value(row.cells[i]), weft.value(other.cells[i]),
        [weft.percent(Math.max(0, other.shares[i])), weft.bar(other.shares[i])]]), { classes: "why" }) : null,
      weft.el("p", { class: "quiet small" }, apart.length > 8 ? `And ${apart.length - 8} more columns, each a smaller part. ` : null, same));
  });
  return [weft.el("div", { class: "near" }, own, weft.el("div", { class: "grid" }, near))];
};
