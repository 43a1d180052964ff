/* Columns that go together, each pair with its cross-table; and the values of a column, two of which
   show in which columns they are alike. */

/* -- columns together ----------------------------------------------------------------------------- */

const together = { pair: null };

together.open = async (a, b) => {
  together.pair = [a, b];
  await together.cross();
  byId("together-cross").scrollIntoView({ block: "start" });
};

together.cross = studio.attempt(async () => {
  const into = byId("together-cross");
  if (!together.pair) { tabweave.fill(into, tabweave.el("p", { class: "empty" }, "Choose a pair to see how its values meet.")); return; }
  const [a, b] = together.pair;
  const found = await studio.latest("cross", () => studio.ofJob("cross", { a, b, filters: studio.where() }));
  if (!found) return;
  const among = found.of < studio.state.table.rows ? ` among the ${tabweave.plural(found.of, "row")} that pass` : "";
  tabweave.fill(into,
    tabweave.el("h3", {}, tabweave.el("bdi", {}, a), " and ", tabweave.el("bdi", {}, b)),
    tabweave.el("p", { class: "small quiet" }, `Rows with each pair of values${among}; dark where there are more than chance would give. A cell filters by its pair.`),
    together.table(found));
});

together.table = ({ a, b, counts, expected }) => {
  const filterBoth = (i, j) => {
    const both = [a.filters[i], b.filters[j]];
    if (both.some((f) => !f)) return;
    studio.set({ filters: [...studio.state.filters.filter((f) => f.column !== a.column && f.column !== b.column), ...both] });
  };
  // How far a count is above what chance would give, in standard deviations.
  const above = (i, j) => (expected[i][j] > 0 ? (counts[i][j] - expected[i][j]) / Math.sqrt(expected[i][j]) : 0);
  const most = Math.max(...counts.flatMap((line, i) => line.map((_, j) => above(i, j))), 3);
  const name = (side, i) => tabweave.text(side.labels[i]);
  const cell = (i, j) => {
    const label = `${a.column} ${name(a, i)}, ${b.column} ${name(b, j)}: ${tabweave.plural(counts[i][j], "row")}, by chance ${tabweave.number(expected[i][j], 3)}`;
    const can = a.filters[i] && b.filters[j] && counts[i][j] > 0;
    return tabweave.el("td", { vars: { "--t": `${Math.round(42 * Math.sqrt(Math.max(0, above(i, j)) / most))}%` }, title: label },
      can ? tabweave.el("button", { type: "button", class: "together-cell", "aria-label": label, onclick: () => filterBoth(i, j) }, tabweave.whole(counts[i][j])) : tabweave.whole(counts[i][j]));
  };
  const caption = `${a.column} by ${b.column}`;
  return tabweave.scroll(caption, tabweave.el("table", { class: "heat together-table" },
    tabweave.el("caption", { class: "hidden" }, caption),
    tabweave.el("thead", {}, tabweave.el("tr", {}, tabweave.el("td", {}), b.labels.map((_, j) => tabweave.el("th", { scope: "col", title: name(b, j) }, tabweave.el("span", {}, tabweave.shorten(name(b, j), 14)))))),
    tabweave.el("tbody", {}, counts.map((line, i) => tabweave.el("tr", {}, tabweave.el("th", { scope: "row", title: name(a, i) }, tabweave.shorten(name(a, i), 18)), line.map((_, j) => cell(i, j)))))));
};

together.drawPairs = () => {
  const c = studio.shown[0].data.couplings;
  const { column } = studio.state;
  const first = column ? c.pairs.filter((p) => p.a === column || p.b === column) : [];
  const listed = first.length ? first : c.pairs;
  const line = (p) => [
    tabweave.el("button", { type: "button", class: "link", "aria-label": `${p.a} and ${p.b}: how their values meet`, onclick: () => together.open(p.a, p.b) }, `${p.a} – ${p.b}`),
    [p.strength.toFixed(3), tabweave.bar(p.strength)],
  ];
  const table = (part, caption) => tabweave.table(caption, [{ name: "columns" }, { name: "strength", number: true }], part.map(line), { classes: "pairs tight" });
  tabweave.fill(byId("together-pairs"),
    first.length ? tabweave.el("p", { class: "small" }, `Pairs with ${column}. `, tabweave.el("button", { type: "button", class: "link", onclick: () => studio.set({ column: null }) }, "All pairs")) : null,
    table(listed.slice(0, 12), "The strongest pairs of columns"),
    listed.length > 12 ? tabweave.more(`${tabweave.whole(listed.length)} pairs listed`, () => table(listed, "Pairs of columns, strongest first")) : null);
};

studio.panel({
  id: "together", title: "Together", order: 50, watches: ["filters", "selection", "column"],
  build: (into) => {
    const { couplings, target } = studio.shown[0].data;
    together.pair = null;
    if (!couplings || !couplings.pairs.length) { tabweave.fill(into, tabweave.el("p", { class: "empty" }, "No two columns depend on each other.")); return; }
    const stage = tabweave.el("div", { class: "stage" });
    tabweave.fill(into,
      tabweave.el("p", { class: "small quiet" }, "How much two columns tell about each other, corrected for chance: 0 is independent, 1 is one and the same."),
      couplings.matrix ? null : stage, tabweave.el("div", { id: "together-pairs" }), tabweave.el("div", { id: "together-cross" }));
    if (!couplings.matrix) tabweave.onLook(stage, (width) => tabweave.circle(stage, Math.min(width, 440), couplings, target, { pair: together.open, column: (name) => studio.set({ column: name }) }));
  },
  update: async () => {
    if (!byId("together-pairs")) return;
    together.drawPairs();
    await together.cross();
  },
});

/* -- values of a column --------------------------------------------------------------------------- */

const valued = { column: 0, a: 0, b: 1 };

valued.now = () => studio.shown[0].data.values.columns[valued.column];

valued.draw = () => {
  const column = valued.now();
  const pick = (side, label) => {
    const select = tabweave.el("select", { id: `values-${side}`, onchange: () => { valued[side] = Number(select.value); valued.alike(); } },
      column.labels.map((text, i) => tabweave.el("option", { value: i, selected: i === valued[side] }, tabweave.text(text))));
    return tabweave.el("span", { class: "chooser" }, tabweave.el("label", { for: `values-${side}` }, label), select);
  };
  tabweave.fill(byId("values-pair"), pick("a", "Why are"), pick("b", "and"), tabweave.el("span", {}, "alike?"));
  const drawn = tabweave.oneColumn(column);
  tabweave.fill(byId("values-drawn"), drawn);
  // A cell of the heatmap is a pair; by keyboard the lists above choose it.
  byId("values-drawn").querySelectorAll("table.heat tbody tr").forEach((line, i) => line.querySelectorAll("td").forEach((cell, j) => {
    if (i === j) return;
    cell.classList.add("values-cell");
    cell.addEventListener("click", () => { [valued.a, valued.b] = [i, j]; byId("values-a").value = i; byId("values-b").value = j; valued.alike(); byId("values-alike").scrollIntoView({ block: "nearest" }); });
  }));
};

valued.alike = studio.attempt(async () => {
  const column = valued.now();
  const [a, b] = [column.labels[valued.a], column.labels[valued.b]];
  const into = byId("values-alike");
  if (a === b || a === null || b === null) { tabweave.fill(into, tabweave.el("p", { class: "empty" }, "Choose two different values.")); return; }
  const found = await studio.latest("alike", () => studio.ofJob("alike", { column: column.column, a, b }));
  if (!found) return;
  const lines = found.columns.slice(0, 12).map((one) => [
    [tabweave.value(one.column), tabweave.el("div", { class: "small" }, tabweave.bar(one.overlap, one.usual), `${tabweave.percent(one.overlap)} `, tabweave.el("span", { class: "quiet" }, `usual ${tabweave.percent(one.usual)}`))],
    one.values.slice(0, 3).map((value) => tabweave.el("div", {}, tabweave.value(tabweave.text(value.value)), ` ${tabweave.percent(value.a)} / ${tabweave.percent(value.b)}`)),
  ]);
  const only = (value) => tabweave.el("button", { type: "button", onclick: () => studio.filterBy({ column: column.column, in: [value] }) }, `Show only ${value}`);
  tabweave.fill(into,
    tabweave.el("h3", {}, tabweave.el("bdi", {}, a), " and ", tabweave.el("bdi", {}, b)),
    tabweave.el("p", { class: "small quiet" }, `Distance ${tabweave.distance(column.distances[valued.a][valued.b])}. Overlap: the share of rows of both that go with the same values; usual is that of ${a} with all other values.`),
    tabweave.table(`In which columns ${a} and ${b} are alike`, [{ name: "column, overlap" }, { name: `values, ${a} / ${b}` }], lines, { classes: "tight" }),
    tabweave.el("p", { class: "choosers" }, only(a), only(b)));
});

studio.panel({
  id: "values", title: "Values", order: 60, watches: ["column"],
  build: (into) => {
    const { values } = studio.shown[0].data;
    if (!values || !values.columns.length) { tabweave.fill(into, tabweave.el("p", { class: "empty" }, "No categorical column has two values to compare.")); return; }
    Object.assign(valued, { column: 0, a: 0, b: 1 });
    valued.chooser = tabweave.chooser("Column", values.columns.map((c) => c.column), (i) => { Object.assign(valued, { column: i, a: 0, b: 1 }); valued.draw(); valued.alike(); });
    tabweave.fill(into, tabweave.el("p", { class: "choosers" }, valued.chooser), tabweave.el("p", { id: "values-pair", class: "choosers" }),
      tabweave.el("div", { id: "values-alike" }), tabweave.el("div", { id: "values-drawn" }));
    valued.drawn = false;
  },
  update: async (state) => {
    const { values } = studio.shown[0].data;
    if (!byId("values-pair")) return;
    const at = values.columns.findIndex((c) => c.column === state.column);
    if (at >= 0 && at !== valued.column) { Object.assign(valued, { column: at, a: 0, b: 1 }); valued.chooser.querySelector("select").value = at; valued.drawn = false; }
    if (!valued.drawn) { valued.draw(); valued.drawn = true; await valued.alike(); }
  },
});
