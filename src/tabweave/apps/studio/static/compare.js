/* The workspace: maps on the left; rows, columns, clusters and what to take along on the right. */

studio.TABS = [["rows", "Rows", () => studio.rowsPart()], ["chosen", "Selection", () => studio.chosenPart()], ["columns", "Columns", () => studio.columnsPart()],
  ["groups", "Clusters", () => studio.groups()], ["take", "Take along", () => studio.take()], ["whole", "Report", () => studio.report()]];

studio.show = (shown) => {
  const first = !studio.shown.length;
  studio.shown = shown;
  const d = shown[0].data;
  const drawn = d.map ? d.map.rows.length : 0;
  byId("lead").textContent = `${tabweave.plural(d.sample ? d.sample.of : d.rows, "row")}, ${tabweave.plural(d.columns.length, "column")}, ` +
    `${tabweave.percent(d.missing / d.cells)} of the cells missing${d.target ? `; target ${d.target}` : ""}. ` +
    (d.sample ? `First picture, from ${tabweave.whole(d.sample.rows)} rows.` : drawn < d.map.of ? `${tabweave.whole(drawn)} of ${tabweave.whole(d.map.of)} distinct rows on the map.` : `${tabweave.plural(drawn, "distinct row")} on the map.`);
  byId("preview").hidden = true;
  byId("results").hidden = false;
  // What has the focus keeps it: its successor on the new page is known by its name.
  const held = document.activeElement && byId("results").contains(document.activeElement) ? document.activeElement.id : "";
  studio.twins.clear();
  studio.drawMaps();
  studio.drawTabs();
  if (held && byId(held)) byId(held).focus({ preventScroll: true });
  studio.picks();
  if (first) byId("results").scrollIntoView({ block: "nearest" });
};

/* -- tabs: one stop of the Tab key, arrows go from one to the next ------------------------------- */

studio.drawTabs = () => {
  const wanted = studio.TABS.some(([id]) => id === studio.wish.tab) ? studio.wish.tab : "rows";
  const tabs = studio.TABS.map(([id, name]) => tabweave.el("button", {
    type: "button", role: "tab", id: `tab-${id}`, "aria-controls": id, "aria-selected": "false", tabindex: "-1", onclick: () => studio.tab(id),
  }, name));
  tabweave.fill(byId("side"),
    tabweave.el("div", {
      role: "tablist", class: "tabs", "aria-label": "What to look at",
      onkeydown: (event) => {
        const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!way) return;
        const at = tabs.indexOf(document.activeElement);
        const next = studio.TABS[(at + way + tabs.length) % tabs.length][0];
        studio.tab(next);
        byId(`tab-${next}`).focus();
      },
    }, tabs),
    studio.TABS.map(([id, , build]) => tabweave.el("div", { id, role: "tabpanel", class: "panel", "aria-labelledby": `tab-${id}`, tabindex: "0", hidden: true }, build())));
  studio.tab(wanted);
};

studio.tab = (wanted) => {
  for (const [id] of studio.TABS) {
    byId(id).hidden = id !== wanted;
    byId(`tab-${id}`).setAttribute("aria-selected", String(id === wanted));
    byId(`tab-${id}`).setAttribute("tabindex", id === wanted ? "0" : "-1");
  }
  studio.wish.tab = wanted === "rows" ? "" : wanted;
  studio.remember();
};

/* -- rows that are picked -------------------------------------------------------------------- */

/* Rows that are picked and not on the map themselves, with a row on it that is equal to them. */
studio.twins = new Map();
studio.findTwin = (found) => {
  const { row, cells } = found;
  const [map] = studio.maps;
  if (map.indexOf(row) >= 0 || studio.twins.has(row)) return;
  const tests = map.m.columns.map((c) => {
    const cell = cells[c.name];
    if (c.numbers) return (i) => (cell === null ? c.numbers[i] === null : tabweave.isSame(c.numbers[i], Number(cell)));
    if (c.texts) return (i) => c.texts[i] === cell;
    const code = cell === null ? -1 : c.labels.indexOf(cell);
    return (i) => c.codes[i] === code;
  });
  const at = map.m.rows.findIndex((_, i) => tests.every((test) => test(i)));
  if (at >= 0) { studio.twins.set(row, map.m.rows[at]); for (const each of studio.maps) each.draw(); }
};

/* The last two rows picked are the pair; the last one has its neighbours shown. */
studio.pick = (row) => {
  if (studio.picked.includes(row)) studio.picked = [...studio.picked.filter((r) => r !== row), row];
  else studio.picked = [...studio.picked, row].slice(-2);
  studio.tab("rows");
  studio.picks();
};

studio.picks = studio.attempt(async () => {
  const last = studio.shown[0].data.sample ? studio.shown[0].data.sample.of : studio.shown[0].data.rows;
  studio.picked = studio.picked.filter((row) => row < last);
  const [first, second] = studio.picked;
  byId("row-1").value = first === undefined ? "" : first;
  byId("row-2").value = second === undefined ? "" : second;
  for (const map of studio.maps) map.draw();
  byId("said").textContent = first === undefined ? "Click a mark, or go to it by arrow keys and press Enter. Two rows are compared."
    : second === undefined ? `Row ${tabweave.whole(first)} is chosen. Choose another one to see why they differ.`
      : `Rows ${tabweave.whole(first)} and ${tabweave.whole(second)} are chosen.`;
  studio.remember();
  const now = (studio.asked = (studio.asked || 0) + 1);
  const still = () => now === studio.asked;
  if (studio.shown.some((one) => !one.whole)) {
    for (const id of ["near-body", "why-body"]) tabweave.fill(byId(id), tabweave.el("p", { class: "empty" }, "As soon as the whole table is read."));
    return;
  }
  await Promise.all([studio.fillNear(still), studio.fillWhy(still), studio.fillProgram(still)]);
});

studio.typed = studio.attempt(async () => {
  const typed = ["row-1", "row-2"].map((id) => byId(id).value.trim()).filter((text) => text !== "");
  const last = studio.shown[0].data.rows - 1;
  for (const text of typed)
    if (!/^\d+$/.test(text) || Number(text) > last) throw new Error(`Row ${text} does not exist; rows are numbered from 0 to ${tabweave.whole(last)}.`);
  studio.picked = [...new Set(typed.map(Number))];
  await studio.picks();
});

studio.rowsPart = () => {
  const { rows, sample } = studio.shown[0].data;
  const input = (i) => tabweave.el("p", {}, tabweave.el("label", { for: `row-${i}` }, `Row ${i}`),
    tabweave.el("input", { id: `row-${i}`, type: "number", min: 0, max: (sample ? sample.of : rows) - 1, step: 1, inputmode: "numeric", onchange: studio.typed }));
  return [
    tabweave.el("div", { class: "picks" }, input(1), input(2),
      tabweave.el("button", { type: "button", onclick: () => { studio.picked = []; studio.picks(); } }, "Clear"),
      tabweave.el("p", { id: "said", class: "said quiet small", "aria-live": "polite" })),
    tabweave.el("h3", { class: "hidden" }, "Neighbours"), tabweave.el("div", { id: "near-body" }),
    tabweave.el("h3", { class: "hidden" }, "Why apart"), tabweave.el("div", { id: "why-body" }),
  ];
};

/* -- maps ------------------------------------------------------------------------------------ */

studio.colours = (one) => {
  const own = (data) => ({ name: "cluster", labels: tabweave.clusterNames(data), codes: data.map.clusters, fixed: true });
  const out = [{ title: "its own clusters", column: own(one.data) }];
  if (studio.shown.length > 1)
    studio.shown.forEach((other, i) => {
      if (other === one) out.push({ title: `clusters of ${studio.letters[i]}`, column: own(one.data) });
      else if (String(other.data.map.rows) === String(one.data.map.rows)) out.push({ title: `clusters of ${studio.letters[i]}`, column: own(other.data) });
    });
  const columns = one.data.map.columns.map((column) => ({ title: column.name, column }));
  return [...(one.data.target ? [columns[0], ...out, ...columns.slice(1)] : [...out, ...columns]), ...tabweave.moreColours(one.data.map)];
};

studio.drawMaps = () => {
  const colours = studio.colours(studio.shown[0]).map((c) => c.title);
  const [{ data }] = studio.shown;
  if (studio.maps[0] && studio.maps[0].groups) studio.wish.colour = studio.maps[0].colours[studio.maps[0].colour].title;
  const at = Math.max(0, colours.indexOf(studio.wish.colour));
  studio.maps = studio.shown.map((one, side) => {
    const map = new tabweave.Map(one.data, {
      bare: true, wheel: true, name: `Map ${studio.letters[side]} by ${one.method},`, colours: studio.colours(one), height: () => studio.room(),
      rings: () => studio.picked.map((row, k) => [studio.twins.get(row) ?? row, String(k + 1)]),
      pick: (i) => studio.pick(one.data.map.rows[i]),
      select: (chosen) => studio.chose(side, chosen),
    });
    map.colour = Math.min(at, map.colours.length - 1);
    map.canvas.id = `canvas-${studio.letters[side]}`;
    return map;
  });
  const colour = tabweave.chooser("Colour by", colours, (i) => { studio.wish.colour = colours[i]; for (const map of studio.maps) map.paint(Math.min(i, map.colours.length - 1)); studio.remember(); });
  colour.querySelector("select").value = at;
  studio.layoutChooser = tabweave.chooser("Layout", data.map.layouts.map((l) => l.name), (i) => {
    for (const map of studio.maps) map.arrange(i);
    studio.wish.layout = data.map.layouts[i].name; studio.remember();
  });
  tabweave.fill(byId("map"), tabweave.el("div", { class: "choosers" }, colour, studio.layoutChooser, tabweave.el("span", { id: "without", class: "quiet small" })),
    studio.pair((_, i) => [studio.maps[i].tools, studio.maps[i].stage, studio.maps[i].legend, studio.maps[i].says, studio.maps[i].table]));
  addEventListener("resize", studio.refit);
};
studio.refit = () => { for (const map of studio.maps) if (map.stage.isConnected) map.resize(); };

/* What is left of the window for a map, so that nothing has to be scrolled on a laptop. */
studio.room = () => {
  const [map] = studio.maps;
  if (!map || innerWidth < 900) return Math.max(280, Math.min(420, innerWidth * 0.8));
  const top = map.stage.getBoundingClientRect().top + scrollY;
  return Math.max(280, innerHeight - top - map.legend.offsetHeight - map.says.offsetHeight - 56);
};

/* Each of two maps has its layouts when they are ready: what the address asks for waits for both. */
studio.offerLayouts = (without) => {
  const { layouts } = studio.shown[0].data.map;
  const select = studio.layoutChooser.querySelector("select");
  const before = select.value;
  tabweave.fill(select, layouts.map((l, i) => tabweave.el("option", { value: i }, l.name)));
  select.value = before;
  if (without !== undefined) byId("without").textContent = without ? `${without}.` : "";
  const wanted = layouts.findIndex((l) => l.name === studio.wish.layout);
  if (wanted > 0 && studio.maps.every((map) => map.m.layouts.length > wanted)) { select.value = wanted; for (const map of studio.maps) map.arrange(wanted); }
};

/* Rows drawn around on one map are brought out on the other, too. */
studio.chose = (side, chosen) => {
  const map = studio.maps[side];
  const rows = chosen ? chosen.map((i) => map.m.rows[i]) : [];
  studio.maps.forEach((other, i) => {
    if (i === side) return;
    const wanted = new Set(rows);
    other.chosen = chosen ? Uint8Array.from(other.m.rows, (row) => (wanted.has(row) ? 1 : 0)) : null;
    other.draw();
  });
  studio.chosenRows = chosen ? { map, chosen } : null;
  tabweave.fill(byId("chosen"), studio.chosenPart());
  if (chosen) studio.tab("chosen");
};
studio.chosenPart = () => (studio.chosenRows && studio.maps.includes(studio.chosenRows.map) ? tabweave.standsOut(studio.chosenRows.map, studio.chosenRows.chosen)
  : [tabweave.el("p", { class: "empty" }, "Draw around marks with the lasso, or drag with Shift, to see which values are over-represented among them.")]);

/* -- columns: what takes part, as what, and how much ------------------------------------------- */

studio.columnsPart = () => {
  const { data } = studio.shown[0];
  const weights = data.weights || {};
  const change = (name, key, value) => {
    const chosen = { ...studio.columns[name], [key]: value };
    if (value === undefined) delete chosen[key];
    studio.columns[name] = chosen;
    if (!Object.keys(chosen).length) delete studio.columns[name];
    byId("apply").textContent = "Apply";
  };
  const lines = data.columns.map((column) => {
    const { name } = column;
    const chosen = studio.columns[name] || {};
    const takes = column.role === "column";
    return [
      [tabweave.value(name), column.role === "column" ? null : tabweave.el("span", { class: "role", title: column.why }, column.role), tabweave.asRead(column)],
      tabweave.el("input", { type: "checkbox", checked: takes, disabled: column.role === "target", "aria-label": `Keep ${name}`, onchange: (event) => change(name, "keep", event.target.checked) }),
      tabweave.el("select", { "aria-label": `Kind of ${name}`, onchange: (event) => change(name, "kind", event.target.value || undefined) },
        [["", chosen.kind ? "as it looks" : column.kind], ...studio.facts.kinds.map((kind) => [kind, kind])]
          .map(([value, text]) => tabweave.el("option", { value, selected: value === (chosen.kind || "") }, text))),
      tabweave.el("input", { type: "number", min: "0.1", max: "100", step: "0.1", value: chosen.weight || 1, "aria-label": `Weight of ${name}`, disabled: !takes, onchange: (event) => change(name, "weight", event.target.value === "" ? undefined : Number(event.target.value)) }),
      weights[name] === undefined ? "" : tabweave.number(weights[name], 2),
      column.missing ? tabweave.percent(column.missing / data.rows) : "–",
    ];
  });
  return [
    tabweave.el("p", { class: "choosers" }, tabweave.el("button", { type: "button", class: "main", id: "apply", onclick: () => studio.run() }, "Apply"),
      tabweave.el("button", { type: "button", onclick: () => { studio.columns = {}; studio.run(); } }, "As it was"),
      tabweave.el("span", { class: "quiet small" }, "Which columns are compared, how they are read, and how much they count.")),
    tabweave.table("Columns: keep, kind, weight", [{ name: "column" }, { name: "keep" }, { name: "kind" }, { name: "weight" }, { name: "learned", number: true }, { name: "missing", number: true }], lines, { classes: "tight picking" }),
  ];
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

/* Ask each method; what stood there before does not stay while the answers take long. */
studio.patiently = async (id, still, question) => {
  const slow = setTimeout(() => { if (still()) tabweave.fill(byId(id), tabweave.el("p", { class: "empty" }, "Comparing …")); }, 400);
  try {
    return await Promise.all(studio.shown.map((one) => studio.json(question(one))));
  } catch (error) {
    if (still()) tabweave.fill(byId(id));
    throw error;
  } finally { clearTimeout(slow); }
};

studio.fillNear = async (still) => {
  const row = studio.picked[studio.picked.length - 1];
  if (row === undefined) { tabweave.fill(byId("near-body"), studio.starts(studio.shown[0].data)); return; }
  const found = await studio.patiently("near-body", still, (one) => `/api/jobs/${one.job}/near?row=${row}`);
  if (!still()) return;
  studio.findTwin(found[0]);
  const sets = found.map((each) => new Set(each.near.map((other) => other.row)));
  const common = sets.length > 1 ? [...sets[0]].filter((r) => sets[1].has(r)).length : 0;
  const names = Object.keys(found[0].cells);
  tabweave.fill(byId("near-body"),
    tabweave.el("p", { class: "small brief" }, tabweave.el("b", {}, `Row ${tabweave.row(row, found[0].id)}`), ": ", tabweave.el("span", { class: "quiet" },
      names.slice(0, 12).map((name, i) => [i ? ", " : "", tabweave.value(name), " ", tabweave.value(found[0].cells[name])]), names.length > 12 ? ", …" : "")),
    sets.length > 1 ? tabweave.el("p", { class: "small" }, `${common} of ${found[0].near.length} are near by both methods.`) : null,
    studio.pair((one, i) => studio.nearTable(found[i], sets[1 - i])));
};

/* Rows to begin with: a typical one of each cluster, and one that is far from all. */
studio.starts = (d) => {
  const rows = d.neighbors ? d.neighbors.rows : [];
  const names = d.neighbors ? d.neighbors.columns : [];
  const telling = (why) => {
    const group = (d.clusters ? d.clusters.groups : []).find((_, k) => why.endsWith(`cluster ${tabweave.letter(k)}`));
    const first = group ? group.values.map((v) => v.column).filter((name) => names.includes(name)) : [];
    return [...new Set([...first, ...names])].slice(0, 3);
  };
  return [
    tabweave.el("p", { class: "empty" }, `Choose a row to see the rows nearest to it${rows.length ? ", or begin with one of these:" : "."}`),
    rows.length ? tabweave.table("Rows to begin with", [{ name: tabweave.rowHead(d) }, { name: "" }, { name: "some of its cells" }], rows.map((r) => [
      tabweave.el("button", { type: "button", class: "link", "aria-label": `Row ${r.row}, ${r.why}: see the rows nearest to it`, onclick: () => { studio.pick(r.row); byId("rows").focus({ preventScroll: true }); } }, tabweave.row(r.row, r.id)),
      r.why, telling(r.why).map((name, i) => [i ? "; " : "", tabweave.el("span", { class: "quiet" }, tabweave.value(name), " "), tabweave.value(r.cells[names.indexOf(name)])])]), { classes: "tight starts" }) : null,
  ];
};

studio.nearTable = (found, others) => {
  const differ = (other) => {
    const apart = other.differs; // what keeps them apart most comes first
    if (!apart.length) return tabweave.el("span", { class: "quiet" }, "the same in every column");
    return [apart.slice(0, 4).map((name, i) => [i ? "; " : "", tabweave.el("span", { class: "quiet" }, tabweave.value(name), " "), tabweave.value(other.cells[name])]),
      apart.length > 4 ? `; and ${apart.length - 4} more` : ""];
  };
  return tabweave.table(`Rows nearest to row ${found.row}`, [{ name: "row" }, { name: "distance", number: true }, { name: "what differs" }],
    found.near.map((other) => [
      [tabweave.el("button", { type: "button", class: "link", "aria-label": `Row ${other.row}: see why it differs from row ${found.row}`,
        onclick: () => { studio.picked = [found.row, other.row]; studio.picks(); } }, tabweave.row(other.row, other.id)),
      others && others.has(other.row) ? tabweave.el("span", { class: "tag" }, "both") : null],
      tabweave.distance(other.distance), tabweave.el("span", { title: other.differs.map((name) => `${name} ${tabweave.text(other.cells[name])}`).join("; ") }, differ(other))]), { classes: "tight nearest" });
};

/* -- why ------------------------------------------------------------------------------------- */

studio.fillWhy = async (still) => {
  const [a, b] = studio.picked;
  if (b === undefined) { tabweave.fill(byId("why-body"), tabweave.el("p", { class: "empty" }, "Choose two rows to see which columns they differ in.")); return; }
  const found = await studio.patiently("why-body", still, (one) => `/api/jobs/${one.job}/explain?a=${a}&b=${b}`);
  if (!still()) return;
  const cells = (side) => Object.fromEntries(found[0].columns.map((c) => [c.column, c[side]]));
  if (!studio.shown[0].data.target) { studio.findTwin({ row: a, cells: cells("a") }); studio.findTwin({ row: b, cells: cells("b") }); }
  tabweave.fill(byId("why-body"), studio.pair((one, i) => studio.whyTable(found[i])));
};

studio.whyTable = (found) => {
  const [top] = found.columns;
  const heads = [{ name: "column" }, { name: `row ${found.a}` }, { name: `row ${found.b}` }, { name: "share" }];
  const cell = (text) => tabweave.el("span", { title: tabweave.text(text) }, tabweave.value(text));
  const line = (c) => [tabweave.value(c.column), cell(c.a), cell(c.b),
    [tabweave.el("span", { title: `adds ${tabweave.number(c.adds)}` }, c.share < 0 ? `−${tabweave.percent(-c.share)}` : tabweave.percent(c.share)), tabweave.bar(c.share)]];
  const table = (part) => tabweave.table(`Why rows ${found.a} and ${found.b} differ`, heads, part.map(line), { classes: "apart tight" });
  return [
    tabweave.el("p", { class: "small" }, `The distance between rows ${tabweave.row(found.a, found.ids && found.ids[0])} and ${tabweave.row(found.b, found.ids && found.ids[1])} is `, tabweave.el("b", {}, tabweave.distance(found.distance)),
      top && top.share > 0 ? [`; ${top.share > 0.5 ? "most of it" : "the largest share"} is due to `, tabweave.el("b", {}, tabweave.value(top.column)), "."] : "; they differ in no column."),
    table(found.columns.slice(0, 12)),
    found.columns.length > 12 ? tabweave.more(`The other ${found.columns.length - 12} columns`, () => table(found.columns.slice(12))) : null,
  ];
};
