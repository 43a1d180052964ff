/* Pairs of columns by kind, tested; and cells that do not fit the rest of their row. */

tabweave.sections.push({
  id: "associations", title: "Associations, tested",
  draw: (d) => {
    const pairs = d.associations ? d.associations.pairs : [];
    if (!pairs.length) return [tabweave.el("p", { class: "empty" }, d.method ? "There are no two columns to compare." : tabweave.nothingLeft)];
    const intro = tabweave.el("p", {},
      "Strength is Cramér's V less what chance brings, numbers in bins, over the rows that have both cells: gaps are no likeness, and are named where two columns share them. η is how far a category explains a number, " +
      "ρ Spearman's correlation of two numbers. P-values test η or ρ, where there is one, else the strength; they are adjusted for the number of pairs." +
      (d.associations.of < d.rows ? ` ${tabweave.whole(d.associations.of)} of ${tabweave.whole(d.rows)} rows were compared.` : ""));
    const heads = [{ name: "column" }, { name: "with" }, { name: "strength", number: true },
      { name: "η or ρ", number: true }, { name: "adjusted p", number: true }];
    const figure = (x) => (x === null ? "–" : x.toFixed(3));
    const line = (p) => [tabweave.value(p.a), p.gaps >= 0.5 ? [tabweave.value(p.b), " ", tabweave.el("span", { class: "quiet small" }, `gaps in the same rows (φ = ${p.gaps.toFixed(2)})`)] : tabweave.value(p.b), [figure(p.strength), tabweave.bar(p.strength)],
      figure(p.other), p.p === null ? "–" : p.p < 0.001 ? "< 0.001" : p.p.toFixed(3)];
    const table = (part, caption) => tabweave.table(caption, heads, part.map(line), { classes: "pairs" });
    return [intro, table(pairs.slice(0, 10), "The strongest associations"),
      pairs.length > 10 ? tabweave.more(`${pairs.length < d.associations.found ? `The ${pairs.length} strongest` : `All ${pairs.length}`} listed`, () => table(pairs, "Associations, strongest first")) : null];
  },
});

tabweave.sections.push({
  id: "outliers", title: "Cells that do not fit",
  draw: (d) => {
    const found = d.outliers;
    if (!found || !found.cells.length)
      return [tabweave.el("p", { class: "empty" }, d.method ? "No cell is odd, given the rest of its row." : tabweave.nothingLeft)];
    const intro = tabweave.el("p", {},
      `The most unusual cell of each row, if there is one: p is how often cells of its column are as surprising, given ` +
      `the rest of their row. ${found.of === d.rows ? "All rows" : `${tabweave.whole(found.of)} of ${tabweave.whole(d.rows)} rows, drawn evenly,`} were looked at` +
      (found.learned < d.rows ? `; what goes together was learned from ${tabweave.whole(found.learned)} rows, drawn evenly, too.` : "."));
    const heads = [{ name: tabweave.rowHead(d), number: true }, { name: "cell" }, { name: "does not go with" }, { name: "p", number: true }];
    const line = (c) => [tabweave.row(c.row, c.id), `${c.column} = ${c.value}`, c.against, c.p < 0.001 ? "< 0.001" : c.p.toFixed(3)];
    return [intro, tabweave.table("Odd cells, most unusual first", heads, found.cells.map(line), { classes: "odd" })];
  },
});
