/* Maps, clusters, neighbours and explanations of one method, or of two side by side. */

studio.show = (shown) => {
  Object.assign(studio, { shown, picked: [] });
  const d = shown[0].data;
  byId("lead").textContent = `${tabweave.plural(d.rows, "row")}, ${tabweave.plural(d.columns.length, "column")}, ` +
    `${tabweave.percent(d.missing / d.cells)} of the cells missing${d.target ? `; target ${d.target}` : ""}.`;
  const parts = [["map", "Map", studio.maps], ["groups", "Clusters", studio.groups], ["near", "Neighbours", studio.nearPart],
    ["why", "Why apart", studio.whyPart], ["take", "Take with you", studio.take], ["whole", "Report", studio.report]];
  tabweave.fill(byId("results"),
    tabweave.el("nav", { "aria-label": "Results" }, tabweave.el("ol", {}, parts.map(([id, name]) => tabweave.el("li", {}, tabweave.el("a", { href: `#${id}` }, name))))),
    parts.map(([id, name, build]) => tabweave.el("section", { id, "aria-labelledby": `${id}-title` },
      tabweave.el("h2", { id: `${id}-title` }, name), build())));
  byId("results").hidden = false;
  studio.picks();
  studio.say(`Ready: ${shown.map((one) => `${one.method} in ${tabweave.number(one.seconds, 2)} s`).join(", ")}.`);
  byId("results").scrollIntoView({ block: "start" });
};

/* -- rows that are picked -------------------------------------------------------------------- */

/* The last two rows picked are the pair; the last one has its neighbours shown. */
studio.pick = (row) => {
  if (studio.picked.includes(row)) studio.picked = [...studio.picked.filter((r) => r !== row), row];
  else studio.picked = [...studio.picked, row].slice(-2);
  studio.picks();
};

studio.picks = studio.attempt(async () => {
  const [first, second] = studio.picked;
  byId("row-1").value = first === undefined ? "" : first;
  byId("row-2").value = second === undefined ? "" : second;
  for (const draw of studio.redraws) draw();
  const said = byId("said");
  said.textContent = first === undefined ? "Click a mark, or focus a map, go from mark to mark by arrow keys and press Enter. Two rows are compared."
    : second === undefined ? `Row ${tabweave.whole(first)} is chosen. Choose another one to see why they are apart.`
      : `Rows ${tabweave.whole(first)} and ${tabweave.whole(second)} are chosen.`;
  const now = (studio.asked = (studio.asked || 0) + 1);
  const still = () => now === studio.asked;
  await Promise.all([studio.fillNear(still), studio.fillWhy(still), studio.fillProgram(still)]);
});

studio.typed = studio.attempt(async () => {
  const typed = ["row-1", "row-2"].map((id) => byId(id).value.trim()).filter((text) => text !== "");
  const last = studio.shown[0].data.rows - 1;
  for (const text of typed)
    if (!/^\d+$/.test(text) || Number(text) > last) throw new Error(`There is no row ${text}; rows are counted from 0 to ${tabweave.whole(last)}.`);
  studio.picked = [...new Set(typed.map(Number))];
  await studio.picks();
});

/* -- maps ------------------------------------------------------------------------------------ */

studio.colours = (one) => {
  const own = (data) => ({ name: "cluster", labels: data.clusters.groups.map((_, i) => `cluster ${tabweave.letter(i)}`), codes: data.map.clusters });
  const out = [{ title: "its own clusters", column: own(one.data) }];
  if (studio.shown.length > 1)
    studio.shown.forEach((other, i) => out.push({ title: `clusters of ${studio.letters[i]}`, column: own(other.data) }));
  const columns = one.data.map.columns.map((column) => ({ title: column.name, column }));
  return one.data.target ? [columns[0], ...out, ...columns.slice(1)] : [...out, ...columns];
};

studio.maps = () => {
  studio.redraws = [];
  const choices = { colour: 0, layout: 0 };
  const changes = [];
  const change = (name) => (i) => { choices[name] = i; for (const refresh of changes) refresh(); };
  const [one] = studio.shown;
  const layouts = one.data.map.layouts.map((layout) => layout.name);
  const drawn = one.data.map.rows.length;
  const input = (i) => tabweave.el("p", {}, tabweave.el("label", { for: `row-${i}` }, `Row ${i}`),
    tabweave.el("input", { id: `row-${i}`, type: "number", min: 0, max: one.data.rows - 1, step: 1, inputmode: "numeric", onchange: studio.typed }));
  return [
    tabweave.el("p", {}, "Rows that are alike lie close together. ", tabweave.el("span", { class: "quiet" },
      drawn < one.data.map.of ? `${tabweave.whole(drawn)} rows drawn at random, of ${tabweave.whole(one.data.map.of)} distinct ones.` : `All ${tabweave.whole(drawn)} distinct rows.`)),
    tabweave.el("div", { class: "picks" }, input(1), input(2),
      tabweave.el("button", { type: "button", onclick: () => { studio.picked = []; studio.picks(); } }, "Clear"),
      tabweave.el("p", { id: "said", class: "said quiet small", "aria-live": "polite" })),
    tabweave.el("p", { class: "choosers" }, tabweave.chooser("Colour by", studio.colours(one).map((c) => c.title), change("colour")),
      layouts.length > 1 ? tabweave.chooser("Layout", layouts, change("layout")) : null),
    studio.pair((each, i) => studio.map(each, i, choices, changes)),
  ];
};

studio.map = (one, side, choices, changes) => {
  const m = one.data.map;
  const colours = studio.colours(one);
  const state = { layout: 0, groups: tabweave.groups(colours[0].column), lit: null, at: null, cursor: null };
  const canvas = tabweave.el("canvas", { tabindex: "0", role: "application" });
  const stage = tabweave.el("div", { class: "stage map" }, canvas);
  const legend = tabweave.el("ul", { class: "legend", "aria-label": "Legend; press an entry to bring it out" });
  const where = tabweave.el("p", { class: "quiet small", "aria-live": "polite" });
  const table = tabweave.el("div", {});
  const redraw = () => { tabweave.drawMap(canvas, stage.clientWidth, m, state); studio.rings(canvas, stage.clientWidth, m, state); };
  const refresh = () => {
    const colour = colours[choices.colour];
    state.layout = Math.min(choices.layout, m.layouts.length - 1);
    Object.assign(state, { groups: tabweave.groups(colour.column), lit: null });
    canvas.setAttribute("aria-label", `Map ${studio.letters[side]}: ${m.rows.length} rows by ${one.method}, coloured by ${colour.title}. ` +
      "Arrow keys go from row to row, Enter chooses one.");
    tabweave.legend(legend, state, redraw);
    table.replaceChildren(tabweave.more("The map as a table", () => tabweave.mapTable(m, state, colour.title)));
    redraw();
  };
  canvas.addEventListener("click", (event) => { state.cursor = tabweave.nearest(canvas, m, state, event); studio.pick(m.rows[state.cursor]); studio.tell(where, one, state.cursor); });
  canvas.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    const enter = event.key === "Enter" || event.key === " ";
    if (!way && !(enter && state.cursor !== null)) return;
    event.preventDefault();
    if (way) { state.cursor = tabweave.step(m.layouts[state.layout].points, state.cursor, way); redraw(); studio.tell(where, one, state.cursor); }
    else studio.pick(m.rows[state.cursor]);
  });
  canvas.addEventListener("blur", redraw);
  changes.push(refresh);
  studio.redraws.push(redraw);
  requestAnimationFrame(() => { refresh(); tabweave.onLook(stage, redraw); });
  return [stage, legend, where, table];
};

/* Say which row the keys are at, its first cells, and its cluster. */
studio.tell = (into, one, i) => {
  const m = one.data.map;
  const cell = (c) => (c.numbers ? tabweave.number(c.numbers[i], 6) : tabweave.text(c.codes[i] < 0 ? null : c.labels[c.codes[i]]));
  tabweave.fill(into, tabweave.el("b", {}, `Row ${tabweave.whole(m.rows[i])}`), `, cluster ${tabweave.letter(m.clusters[i])}: `,
    m.columns.slice(0, 8).map((c, j) => [j ? ", " : "", tabweave.value(c.name), " ", tabweave.el("bdi", {}, cell(c))]),
    m.columns.length > 8 ? ", …" : "");
};

/* Rings with a number around the rows picked, a dashed one where the keys are. */
studio.rings = (canvas, width, m, state) => {
  if (!width) return;
  const height = parseInt(canvas.style.getPropertyValue("height"), 10);
  const ratio = window.devicePixelRatio || 1;
  const context = canvas.getContext("2d");
  const { points } = m.layouts[state.layout];
  const at = tabweave.frameOf(points, width, height);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.globalAlpha = 1;
  const ring = (i, dash) => {
    const [x, y] = at(points[i]);
    for (const [colour, line] of [["--surface", 5], ["--ink", 2]]) {
      context.beginPath();
      context.setLineDash(dash && line === 2 ? [4, 3] : []);
      context.arc(x, y, 11, 0, 2 * Math.PI);
      context.strokeStyle = tabweave.shade(colour);
      context.lineWidth = line;
      context.stroke();
    }
    return [x, y];
  };
  if (state.cursor !== null && document.activeElement === canvas) ring(state.cursor, true);
  studio.picked.forEach((row, k) => {
    const i = m.rows.indexOf(row);
    if (i < 0) return;
    const [x, y] = ring(i, false);
    const [tx, ty] = [Math.min(x + 15, width - 12), Math.max(y - 9, 14)];
    context.font = `700 14px ${tabweave.colour("--sans")}`;
    context.lineWidth = 4;
    context.strokeStyle = tabweave.shade("--surface");
    context.fillStyle = tabweave.shade("--ink");
    context.strokeText(String(k + 1), tx, ty);
    context.fillText(String(k + 1), tx, ty);
  });
  context.setLineDash([]);
};

/* -- clusters -------------------------------------------------------------------------------- */

studio.groups = () => {
  const draw = tabweave.sections.find((section) => section.id === "clusters").draw;
  const both = studio.shown.length > 1 ? studio.agreement(...studio.shown.map((one) => one.data.map)) : null;
  return [
    both === null ? null : tabweave.el("p", {}, `The two agree ${both > 0.8 ? "closely" : both > 0.4 ? "in part" : both > 0.1 ? "little" : "no more than chance"} on which rows belong together `,
      tabweave.el("span", { class: "quiet" }, `(adjusted Rand index ${both.toFixed(2)}; 1 is the same groups, 0 is chance; over the rows drawn).`)),
    studio.pair((one) => draw(one.data)),
  ];
};

studio.agreement = (a, b) => {
  const of = new Map(b.rows.map((row, i) => [row, i]));
  const [cells, left, right] = [new Map(), new Map(), new Map()];
  let n = 0;
  const add = (map, key, w) => map.set(key, (map.get(key) || 0) + w);
  a.rows.forEach((row, i) => {
    if (!of.has(row)) return;
    const [w, p, q] = [a.copies[i], a.clusters[i], b.clusters[of.get(row)]];
    add(cells, `${p},${q}`, w); add(left, p, w); add(right, q, w);
    n += w;
  });
  const pairs = (map) => [...map.values()].reduce((sum, k) => sum + (k * (k - 1)) / 2, 0);
  const [both, one, two, all] = [pairs(cells), pairs(left), pairs(right), (n * (n - 1)) / 2];
  const chance = (one * two) / all;
  return (one + two) / 2 === chance ? 1 : (both - chance) / ((one + two) / 2 - chance);
};

/* -- neighbours ------------------------------------------------------------------------------ */

studio.nearPart = () => [tabweave.el("div", { id: "near-body" })];

studio.fillNear = async (still) => {
  const row = studio.picked[studio.picked.length - 1];
  if (row === undefined) { tabweave.fill(byId("near-body"), tabweave.el("p", { class: "empty" }, "Choose a row to see the rows nearest to it.")); return; }
  const found = await Promise.all(studio.shown.map((one) => studio.json(`/api/jobs/${one.job}/near?row=${row}`)));
  if (!still()) return;
  const sets = found.map((each) => new Set(each.near.map((other) => other.row)));
  const common = sets.length > 1 ? [...sets[0]].filter((r) => sets[1].has(r)).length : 0;
  const names = Object.keys(found[0].cells);
  tabweave.fill(byId("near-body"),
    tabweave.el("p", {}, "The rows nearest to ", tabweave.el("b", {}, `row ${tabweave.whole(row)}`), ": ", tabweave.el("span", { class: "quiet" },
      names.slice(0, 12).map((name, i) => [i ? ", " : "", tabweave.value(name), " ", tabweave.value(found[0].cells[name])]), names.length > 12 ? ", …" : ""),
    sets.length > 1 ? ` ${common} of ${found[0].near.length} are near by both methods.` : ""),
    studio.pair((one, i) => studio.nearTable(found[i], sets[1 - i])));
};

studio.nearTable = (found, others) => {
  const names = Object.keys(found.cells);
  const differ = (other) => {
    const apart = names.filter((name) => other.cells[name] !== found.cells[name]);
    if (!apart.length) return tabweave.el("span", { class: "quiet" }, "the same in every column");
    return [apart.slice(0, 6).map((name, i) => [i ? "; " : "", tabweave.el("span", { class: "quiet" }, tabweave.value(name), " "), tabweave.value(other.cells[name])]),
      apart.length > 6 ? `; and ${apart.length - 6} more` : ""];
  };
  return tabweave.table(`Rows nearest to row ${found.row}`, [{ name: "row" }, { name: "distance", number: true }, { name: "what differs" }],
    found.near.map((other) => [
      [tabweave.el("button", { type: "button", class: "link", "aria-label": `Row ${other.row}: see why it is apart from row ${found.row}`,
        onclick: () => { studio.picked = [found.row, other.row]; studio.picks(); } }, tabweave.whole(other.row)),
      others && others.has(other.row) ? tabweave.el("span", { class: "tag" }, "both") : null],
      tabweave.number(other.distance), differ(other)]));
};

/* -- why ------------------------------------------------------------------------------------- */

studio.whyPart = () => [tabweave.el("div", { id: "why-body" })];

studio.fillWhy = async (still) => {
  const [a, b] = studio.picked;
  if (b === undefined) { tabweave.fill(byId("why-body"), tabweave.el("p", { class: "empty" }, "Choose two rows to see which columns keep them apart.")); return; }
  const found = await Promise.all(studio.shown.map((one) => studio.json(`/api/jobs/${one.job}/explain?a=${a}&b=${b}`)));
  if (!still()) return;
  tabweave.fill(byId("why-body"), studio.pair((one, i) => studio.whyTable(found[i])));
};

studio.whyTable = (found) => {
  const [top] = found.columns;
  const heads = [{ name: "column" }, { name: `row ${found.a}` }, { name: `row ${found.b}` }, { name: "share" }];
  const line = (c) => [tabweave.value(c.column), tabweave.value(c.a), tabweave.value(c.b),
    [tabweave.el("span", { title: `adds ${tabweave.number(c.adds)}` }, c.share < 0 ? `−${tabweave.percent(-c.share)}` : tabweave.percent(c.share)), tabweave.bar(c.share)]];
  const table = (part) => tabweave.table(`Why rows ${found.a} and ${found.b} are apart`, heads, part.map(line), { classes: "apart" });
  return [
    tabweave.el("p", {}, `Rows ${tabweave.whole(found.a)} and ${tabweave.whole(found.b)} are `, tabweave.el("b", {}, tabweave.number(found.distance)), " apart",
      top && top.share > 0 ? [", most of all by ", tabweave.el("b", {}, tabweave.value(top.column)), "."] : "; no column keeps them apart."),
    table(found.columns.slice(0, 12)),
    found.columns.length > 12 ? tabweave.more(`The other ${found.columns.length - 12} columns`, () => table(found.columns.slice(12))) : null,
  ];
};
