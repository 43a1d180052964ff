/* Warnings, and what each column holds. */

weft.sections.push({
  id: "warnings", title: "Look at first",
  draw: (d) => {
    if (!d.warnings.length)
      return [weft.el("p", { class: "empty" },
        "Nothing odd: no identifiers, constants, copies, gaps or columns that give the target away.")];
    return [weft.el("ul", { class: "notes" }, d.warnings.map((note) =>
      weft.el("li", { class: note.level },
        weft.el("span", { class: "tag" }, note.level === "warning" ? "Warning" : "Note"),
        weft.el("span", {}, note.column === null ? null : [weft.el("b", {}, weft.value(note.column)), " "],
          note.text, note.text.endsWith("?") ? null : "."))))];
  },
});

weft.sections.push({
  id: "columns", title: "Columns",
  draw: (d) => {
    const heads = [{ name: "column" }, { name: "kind" }, { name: "missing", number: true },
      { name: "distinct", number: true }, { name: "what it holds" }];
    const rows = d.columns.map((column) => [
      [weft.value(column.name), column.role === "column" ? null
        : weft.el("span", { class: "role", title: column.why }, column.role)],
      column.kind,
      column.missing ? [weft.percent(column.missing / d.rows), weft.bar(column.missing / d.rows)] : "none",
      weft.whole(column.distinct),
      column.kind === "numeric" ? weft.distribution(column) : weft.frequencies(column, d.rows),
    ]);
    return [weft.table("The columns: kind, missing and distinct values, most frequent values", heads, rows,
      { classes: "cards columns" })];
  },
});

weft.frequencies = (column, rows) => {
  if (!column.top.length) return weft.el("span", { class: "missing" }, "nothing");
  // The elements of sets add up to more than the rows: the strip then shows shares of elements.
  const whole = column.kind === "set" ? column.top.reduce((sum, [, count]) => sum + count, column.rest) : rows;
  const parts = column.top.map(([, count], i) =>
    weft.el("span", { class: `part p${i}`, vars: { "--w": count / whole } }));
  const rest = column.distinct - column.top.length;
  const words = column.top.map(([value, count]) => weft.el("span", { class: "word" },
    weft.value(value), " ", weft.el("span", { class: "quiet" }, weft.percent(count / rows))));
  return weft.el("div", { class: "holds" },
    weft.el("div", { class: "strip", "aria-hidden": "true" }, parts,
      weft.el("span", { class: "part others", vars: { "--w": column.rest / whole } })),
    weft.el("div", { class: "words" }, words,
      rest > 0 ? weft.el("span", { class: "word quiet" }, `and ${weft.plural(rest, "other")}`) : null));
};

weft.distribution = (column) => {
  if (!column.summary) return weft.el("span", { class: "missing" }, "nothing");
  const s = column.summary;
  const words = [["min", s.min], ["median", s.median], ["max", s.max], ["mean", s.mean]].map(([name, x]) =>
    weft.el("span", { class: "word" }, weft.el("span", { class: "quiet" }, name), " ", weft.number(x, name === "mean" ? 4 : 6)));
  if (!column.bars) return weft.el("div", { class: "holds" }, weft.el("div", { class: "words" }, words));
  const top = Math.max(...column.bars);
  const bars = column.bars.map((count, i) => {
    const height = count ? Math.max(1, (26 * count) / top) : 0;
    return weft.svg("rect", { x: i * 10 + 1, y: 27 - height, width: 8, height });
  });
  return weft.el("div", { class: "holds" },
    weft.svg("svg", { class: "spark", viewBox: `0 0 ${column.bars.length * 10} 28`, "aria-hidden": "true",
      preserveAspectRatio: "none" }, bars),
    weft.el("div", { class: "words" }, words));
};
