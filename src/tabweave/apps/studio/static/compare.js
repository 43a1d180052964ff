/* The workspace: the map, and panels beside it: rows, the selection, clusters, columns, what to take along. */

/* A panel is built once for each finished result, and updated when what it watches has changed. */
studio.panel = (panel) => {
  studio.panels.push({ watches: [], order: 50, sample: false, update: () => {}, ...panel });
  studio.panels.sort((a, b) => a.order - b.order);
};

studio.show = (shown) => {
  const first = !studio.shown.length;
  studio.shown = shown;
  const d = shown[0].data;
  const drawn = d.map ? d.map.rows.length : 0;
  byId("lead").textContent = `${tabweave.plural(d.sample ? d.sample.of : d.rows, "row")}, ${tabweave.plural(d.columns.length, "column")}, ` +
    `${tabweave.percent(d.missing / d.cells)} of the cells missing${d.target ? `; target ${d.target}` : ""}. ` +
    (d.sample ? `First picture, from ${tabweave.whole(d.sample.rows)} rows.` : drawn < d.map.of ? `${tabweave.whole(drawn)} of ${tabweave.whole(d.map.of)} distinct rows on the map.` : `${tabweave.plural(drawn, "distinct row")} on the map.`);
  // What has the focus keeps it: its successor on the new page is known by its name.
  const held = document.activeElement && byId("results").contains(document.activeElement) ? document.activeElement.id : "";
  studio.set({ job: shown.every((one) => one.whole) ? shown[0].job : null }, { history: false });
  studio.drawMaps();
  studio.drawTabs();
  if (held && byId(held)) byId(held).focus({ preventScroll: true });
  if (studio.state.job) studio.pass();
  if (first && innerWidth < 900) byId("results").scrollIntoView({ block: "nearest" });
};

/* -- tabs: one stop of the Tab key, arrows go from one to the next ------------------------------- */

studio.drawTabs = () => {
  const tabs = studio.panels.map(({ id, title }) => tabweave.el("button", {
    type: "button", role: "tab", id: `tab-${id}`, "aria-controls": id, "aria-selected": "false", tabindex: "-1", onclick: () => studio.set({ tab: id }),
  }, title));
  tabweave.fill(byId("side"), tabweave.el("h2", { class: "hidden" }, "Details"),
    tabweave.el("div", {
      role: "tablist", class: "tabs", "aria-label": "What to look at",
      onkeydown: (event) => {
        const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!way) return;
        const at = tabs.indexOf(document.activeElement);
        const next = studio.panels[(at + way + tabs.length) % tabs.length].id;
        studio.set({ tab: next });
        studio.turnTo(next);
        byId(`tab-${next}`).focus();
      },
    }, tabs),
    studio.panels.map(({ id }) => tabweave.el("div", { id, role: "tabpanel", class: "panel", "aria-labelledby": `tab-${id}`, tabindex: "0", hidden: true })));
  const whole = studio.shown.length && studio.shown.every((one) => one.whole);
  for (const panel of studio.panels) {
    panel.stale = true;
    panel.built = studio.shown.length && (whole || panel.sample);
    if (panel.built) panel.build(byId(panel.id));
    else tabweave.fill(byId(panel.id), tabweave.el("p", { class: "empty" }, "As soon as the whole table is read."));
  }
  studio.turnTo(studio.state.tab);
};

studio.turnTo = (wanted) => {
  const shown = studio.panels.some(({ id }) => id === wanted) ? wanted : "rows";
  for (const panel of studio.panels) {
    const { id } = panel;
    if (!byId(id)) return;
    byId(id).hidden = id !== shown;
    byId(`tab-${id}`).setAttribute("aria-selected", String(id === shown));
    byId(`tab-${id}`).setAttribute("tabindex", id === shown ? "0" : "-1");
    if (id === shown) byId(`tab-${id}`).scrollIntoView({ block: "nearest", inline: "nearest" });
    if (id === shown && panel.stale && panel.built) studio.refreshPanel(panel, new Set(panel.watches));
  }
};
studio.refreshPanel = (panel, changed) => {
  panel.stale = false;
  studio.attempt(async () => panel.update(studio.state, changed))();
};
studio.on(["tab"], (state) => studio.turnTo(state.tab));
studio.on(Object.keys(studio.START), (state, changed) => {
  for (const panel of studio.panels) {
    if (!panel.built || !panel.watches.some((key) => changed.has(key))) continue;
    if (byId(panel.id).hidden) panel.stale = true;
    else studio.refreshPanel(panel, changed);
  }
});

/* -- the side and the table can be made wider: by mouse, and by arrow keys ------------------------- */

studio.splitters = () => {
  const root = byId("results");
  const bars = [
    { bar: byId("split-side"), name: "--map", keys: ["ArrowLeft", "ArrowRight"], low: 30, high: 85, now: 65, at: (event, box) => (100 * (event.clientX - box.left)) / box.width },
    { bar: byId("split-rows"), name: "--table", keys: ["ArrowDown", "ArrowUp"], low: 8, high: 80, now: 30, at: (event, box) => 100 - (100 * (event.clientY - box.top)) / box.height },
  ];
  for (const { bar, name, keys, low, high, now, at } of bars) {
    let share = now;
    const to = (wanted) => {
      share = Math.max(low, Math.min(high, wanted));
      root.style.setProperty(name, `${share}%`);
      bar.setAttribute("aria-valuenow", String(Math.round(share)));
      studio.refit();
    };
    bar.setAttribute("aria-valuemin", String(low));
    bar.setAttribute("aria-valuemax", String(high));
    bar.setAttribute("aria-valuenow", String(now));
    bar.addEventListener("pointerdown", (event) => { bar.setPointerCapture(event.pointerId); event.preventDefault(); });
    bar.addEventListener("pointermove", (event) => { if (bar.hasPointerCapture(event.pointerId)) to(at(event, root.getBoundingClientRect())); });
    bar.addEventListener("keydown", (event) => {
      const way = keys.indexOf(event.key);
      if (way < 0) return;
      event.preventDefault();
      to(share + (way ? 3 : -3));
    });
  }
};

/* -- maps ------------------------------------------------------------------------------------ */

/* What rows can be coloured by: clusters, the columns of the table, identifiers too, and groups. Of
   the first picture the cells are there; of all rows they are asked for. */
studio.colours = (one) => {
  const { data } = one;
  const own = (d) => ({ name: "cluster", labels: tabweave.clusterNames(d), codes: d.map.clusters, fixed: true });
  const out = [{ title: studio.shown.length > 1 ? "its own clusters" : "cluster", clusters: true, column: own(data) }];
  if (studio.shown.length > 1)
    studio.shown.forEach((other, i) => {
      if (other === one) out.push({ title: `clusters of ${studio.letters[i]}`, clusters: true, column: own(data) });
      else if (String(other.data.map.rows) === String(data.map.rows)) out.push({ title: `clusters of ${studio.letters[i]}`, column: own(other.data) });
    });
  const columns = one.whole
    ? data.columns.map(({ name }) => ({ title: name, load: () => studio.colourOf(one.job, name) }))
    : data.map.columns.map((column) => ({ title: column.name, column }));
  const target = columns.findIndex(({ title }) => title === data.target);
  const first = target >= 0 ? columns.splice(target, 1) : [];
  const groups = one.whole ? [{ title: "groups", load: () => studio.colourOfGroups(one.job) }] : [];
  return [...first, ...out, ...groups, ...columns, ...tabweave.moreColours(data.map)];
};

/* The cells of a column, one of each mark: that of most of its rows. */
studio.colourOf = async (job, name) => {
  const found = await studio.post(`/api/jobs/${job}/colours`, { column: name });
  const array = (text, Kind) => new Kind(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  const mixed = found.mixed ? array(found.mixed, Uint8Array) : null;
  if (found.numbers) return { name, numbers: array(found.numbers, Float64Array), mixed, date: Boolean(found.is_time) };
  return { name, labels: found.labels, codes: array(found.codes, Int32Array), mixed, others: found.others };
};
studio.colourOfGroups = async (job) => {
  const codes = await studio.array(`/api/tables/${studio.state.source}/groups/marks?job=${job}`, Int16Array);
  return { name: "groups", labels: studio.state.groups.map((g) => g.name), codes, fixed: true, rest: "in no group" };
};
/* Groups have changed: maps that are coloured by them are coloured anew. */
studio.on(["groups"], () => {
  for (const map of studio.maps)
    map.colours.forEach((colour, i) => {
      if (colour.title !== "groups") return;
      colour.column = null;
      if (map.colour === i) map.paint(i);
    });
});

studio.drawMaps = () => {
  const colours = studio.colours(studio.shown[0]).map((c) => c.title);
  const [{ data, whole }] = studio.shown;
  const at = Math.max(0, colours.indexOf(studio.state.colour));
  studio.maps = studio.shown.map((one, side) => {
    const map = new tabweave.Map(one.data, {
      bare: true, wheel: true, name: `Map ${studio.letters[side]} by ${one.method},`, colours: studio.colours(one), height: () => studio.room(), start: at,
      rings: () => studio.state.picked.map((row, k) => [row, String(k + 1)]),
      pick: (i) => studio.look(one.data.map.rows[i]),
      select: (chosen) => studio.chose(side, chosen),
      describe: one.whole ? (marks) => studio.describe(one, marks) : null,
      hover: (i) => studio.set({ hover: i < 0 ? null : one.data.map.rows[i] }),
    });
    map.canvas.id = `canvas-${studio.letters[side]}`;
    return map;
  });
  const colour = tabweave.chooser("Colour by", colours, (i) => studio.set({ colour: i ? colours[i] : "" }));
  colour.querySelector("select").value = at;
  studio.colourChooser = colour;
  studio.layoutChooser = tabweave.chooser("Layout", data.map.layouts.map((l) => l.name), (i) => studio.set({ layout: i ? data.map.layouts[i].name : "" }));
  const [map] = studio.maps;
  tabweave.fill(byId("mapbar"), whole ? studio.finder() : null, colour, studio.layoutChooser, studio.maps.length === 1 ? map.tools : null);
  tabweave.fill(byId("map"), studio.pair((_, i) => [studio.maps.length > 1 ? studio.maps[i].tools : null, studio.maps[i].stage, studio.maps[i].legend, studio.maps[i].says, studio.maps[i].table]),
    tabweave.el("span", { id: "without", class: "quiet small" }));
  studio.layoutChooser.hidden = data.map.layouts.length < 2;
};
addEventListener("resize", () => studio.refit());
new ResizeObserver(() => requestAnimationFrame(() => studio.refit())).observe(byId("map"));
studio.refit = () => { for (const map of studio.maps) if (map.stage.isConnected) map.resize(); };

studio.on(["colour"], (state) => {
  for (const map of studio.maps) {
    const at = Math.max(0, map.colours.findIndex((c) => c.title === state.colour));
    if (at !== map.colour) studio.attempt(() => map.paint(at))();
    if (map === studio.maps[0]) studio.colourChooser.querySelector("select").value = at;
  }
});
studio.on(["layout"], (state) => {
  for (const map of studio.maps) {
    const at = Math.max(0, map.m.layouts.findIndex((l) => l.name === state.layout));
    if (at !== map.layout) map.arrange(at);
    if (map === studio.maps[0]) studio.layoutChooser.querySelector("select").value = at;
  }
});
studio.on(["picked", "nearMarks", "rings"], (state) => {
  for (const map of studio.maps) { map.near = state.nearMarks; map.draw(); }
});
studio.on(["hover"], (state) => {
  for (const map of studio.maps) {
    const at = state.hover === null ? -1 : map.indexOf(state.hover);
    if (map.pointed !== at) { map.pointed = at; map.draw(); }
  }
});

/* Names and cells of rows on the map, asked of the server when the mouse rests. */
studio.describe = (one, marks) => studio.latest("describe", async () => {
  await new Promise((wake) => setTimeout(wake, 40));
  const rows = marks.slice(0, 20).map((i) => one.data.map.rows[i]);
  const found = await studio.ofTable("rows", { filters: [{ rows }], limit: 20 });
  const cells = found.columns.map((name, c) => {
    const values = [...new Set(found.rows.map((r) => studio.cellText(r.cells[c])))];
    return [name, values.slice(0, 3).join(", ") + (values.length > 3 ? ", …" : "")];
  });
  const [first] = found.rows;
  return { name: first.name ? `${first.name} (row ${tabweave.whole(first.row)})` : `Row ${tabweave.whole(first.row)}`, cells };
}).catch(() => null);
studio.cellText = (value) => (value === null ? "missing" : typeof value === "number" ? tabweave.number(value, 12) : Array.isArray(value) ? value.join(", ") : String(value));

/* What is left of the window for a map, so that nothing has to be scrolled on a laptop. */
studio.room = () => {
  const [map] = studio.maps;
  if (!map || innerWidth < 900) return Math.max(280, Math.min(420, innerWidth * 0.8));
  const place = byId("map").getBoundingClientRect();
  const top = map.stage.getBoundingClientRect().top - place.top + byId("map").scrollTop;
  const most = Math.max(...studio.maps.map((each) => each.legend.offsetHeight + each.says.offsetHeight));
  return Math.max(160, place.height - top - most - 40);
};

/* Each of two maps has its layouts when they are ready: what the address asks for waits for both. */
studio.offerLayouts = (without) => {
  const { layouts } = studio.shown[0].data.map;
  const select = studio.layoutChooser.querySelector("select");
  const before = select.value;
  tabweave.fill(select, layouts.map((l, i) => tabweave.el("option", { value: i }, l.name)));
  select.value = before;
  studio.layoutChooser.hidden = layouts.length < 2;
  if (without !== undefined && byId("without")) byId("without").textContent = without ? `${without}.` : "";
  const wanted = layouts.findIndex((l) => l.name === studio.state.layout);
  if (wanted > 0 && studio.maps.every((map) => map.m.layouts.length > wanted)) { select.value = wanted; for (const map of studio.maps) map.arrange(wanted); }
};

/* Rows drawn around become the selection: everything on the page follows. */
studio.chose = (side, chosen) => {
  const one = studio.shown[side];
  if (!chosen) { if (studio.state.selection) studio.set({ selection: null }); return; }
  if (!one.whole) return;
  studio.set({ tab: "chosen" });
  studio.selectBy({ job: one.job, marks: Array.from(chosen) }, "drawn on the map");
};

/* -- filters and the selection, on the maps ------------------------------------------------------- */

/* How many rows of each mark pass; the server says, for all rows of the table. */
studio.pass = studio.attempt(async () => {
  const filters = studio.where();
  const counts = await studio.latest("pass", () => (filters.length
    ? Promise.all(studio.shown.map((one) => studio.array(`/api/jobs/${one.job}/marks`, Uint32Array, { filters })))
    : Promise.resolve(studio.shown.map(() => null)))).catch((error) => {
    if (error.status === 400 && studio.state.selection && /set/.test(error.message)) { studio.set({ selection: null }, { history: false }); return null; } // of a studio that has ended
    throw error;
  });
  if (!counts) return;
  studio.counts = counts;
  studio.maps.forEach((map, i) => { map.chosen = null; map.filter(counts[i]); });
});
studio.on(["filters", "selection"], () => { studio.passed = studio.state.job ? studio.pass() : null; });

studio.chips = () => {
  const { filters, selection } = studio.state;
  const chip = (text, drop) => tabweave.el("li", {}, tabweave.el("button", { type: "button", class: "chip", title: "Remove", onclick: drop },
    tabweave.el("span", {}, text), tabweave.el("span", { "aria-hidden": "true" }, " ×"), tabweave.el("span", { class: "hidden" }, ", remove this filter")));
  byId("chips").hidden = !filters.length && !selection;
  tabweave.fill(byId("chips"), filters.map((f, i) => chip(studio.filterText(f), () => studio.unfilter(i))),
    selection ? chip(`${tabweave.plural(selection.rows, "row")} ${selection.title}`, () => studio.set({ selection: null })) : null,
    filters.length + (selection ? 1 : 0) > 1 ? tabweave.el("li", {}, tabweave.el("button", { type: "button", class: "link", onclick: () => studio.set({ filters: [], selection: null }) }, "Clear all")) : null);
};
studio.on(["filters", "selection"], studio.chips);

/* -- rows that are picked -------------------------------------------------------------------- */

studio.typed = studio.attempt(async () => {
  const typed = ["row-1", "row-2"].map((id) => byId(id).value.trim()).filter((text) => text !== "");
  const last = studio.shown[0].data.rows - 1;
  for (const text of typed)
    if (!/^\d+$/.test(text) || Number(text) > last) throw new Error(`Row ${text} does not exist; rows are numbered from 0 to ${tabweave.whole(last)}.`);
  const picked = [...new Set(typed.map(Number))];
  studio.set({ picked, row: picked.length ? picked[picked.length - 1] : null });
});

studio.panel({
  id: "rows", title: "Rows", order: 10, watches: ["picked", "table"],
  build(into) {
    const { rows } = studio.shown[0].data;
    const input = (i) => tabweave.el("p", {}, tabweave.el("label", { for: `row-${i}` }, `Row ${i}`),
      tabweave.el("input", { id: `row-${i}`, type: "number", min: 0, max: rows - 1, step: 1, inputmode: "numeric", onchange: studio.typed }));
    tabweave.fill(into,
      tabweave.el("div", { class: "picks" }, input(1), input(2),
        tabweave.el("button", { type: "button", onclick: () => studio.set({ picked: [], row: null }) }, "Clear"),
        tabweave.el("p", { id: "said", class: "said quiet small", "aria-live": "polite" })),
      tabweave.el("h3", { class: "hidden" }, "Neighbours"), tabweave.el("div", { id: "near-body" }),
      tabweave.el("h3", { class: "hidden" }, "Why apart"), tabweave.el("div", { id: "why-body" }));
  },
  async update(state) {
    const [first, second] = state.picked;
    byId("row-1").value = first === undefined ? "" : first;
    byId("row-2").value = second === undefined ? "" : second;
    byId("said").textContent = first === undefined ? "Click a mark, or go to it by arrow keys and press Enter. Two rows are compared."
      : second === undefined ? `Row ${tabweave.whole(first)} is chosen. Choose another one to see why they differ.`
        : `Rows ${tabweave.whole(first)} and ${tabweave.whole(second)} are chosen.`;
    const now = (studio.askedRows = (studio.askedRows || 0) + 1);
    const still = () => now === studio.askedRows && byId("near-body");
    await Promise.all([studio.fillNear(still), studio.fillWhy(still)]);
  },
});

/* -- the selection, or what passes the filters: what it has more of than all rows ------------------ */

studio.panel({
  id: "chosen", title: "Selection", order: 20, watches: ["filters", "selection"],
  build(into) { tabweave.fill(into, tabweave.el("p", { class: "empty" }, "…")); },
  async update() {
    const into = byId("chosen");
    const filters = studio.where();
    if (!filters.length) {
      tabweave.fill(into, tabweave.el("p", { class: "empty" }, "Draw around marks with the lasso, or drag with Shift, or brush the charts, to see what the rows have in common, and which columns they differ in from all others."));
      return;
    }
    const found = await studio.latest("differences", () => studio.ofTable("differences", { a: filters, b: null }));
    if (!found || !byId("chosen")) return;
    tabweave.fill(into, studio.differences(found),
      tabweave.el("p", { class: "acts" },
        tabweave.el("button", { type: "button", class: "tool", onclick: () => studio.saveView() }, "Save as CSV"), " ",
        tabweave.el("button", { type: "button", class: "tool", onclick: () => studio.set({ filters: [], selection: null }) }, "Let go")));
  },
});

/* A part of a column: a value, a range, what is missing, or the rarer values. */
studio.partText = (v) => {
  const text = (x) => (typeof x === "number" ? tabweave.number(x, 6) : String(x));
  if (v.missing) return tabweave.value(null);
  if (v.others !== undefined) return `${tabweave.plural(v.others, "other value")}`;
  if (v.value !== undefined) return tabweave.value(v.value === null ? null : text(v.value));
  if (v.from === null || v.from === undefined) return `< ${text(v.below)}`;
  return v.below === null || v.below === undefined ? `≥ ${text(v.from)}` : `${text(v.from)} to ${text(v.below)}`;
};
studio.differences = (found) => {
  const share = (x) => tabweave.percent(x);
  const chance = (v) => { const p = (v.a * found.a + v.b * found.b) / (found.a + found.b); return Math.sqrt(p * (1 - p) * (1 / found.a + 1 / found.b)); };
  const filtered = new Set(studio.state.filters.map((f) => f.column)); // they differ, of course
  const lines = found.columns.filter((c) => !filtered.has(c.column)).flatMap((c) => c.values.map((v) => ({ ...v, column: c.column })))
    .filter((v) => v.a >= 0.05 && v.a >= 1.2 * v.b && v.a - v.b > 3 * chance(v))
    .sort((v, w) => (w.a - w.b) - (v.a - v.b)).slice(0, 14);
  return [
    tabweave.el("h3", {}, `${tabweave.plural(found.a, "row")} selected`),
    tabweave.el("p", { class: "quiet small" }, `${share(found.a / (found.a + found.b))} of all rows; compared with the other ${tabweave.whole(found.b)}.`),
    lines.length ? tabweave.table("What the selected rows have more often than the others", [{ name: "value" }, { name: "here", number: true }, { name: "others", number: true }], lines.map((v) => [
      [tabweave.el("button", { type: "button", class: "link quiet", onclick: () => studio.openColumn(v.column) }, v.column), " ", studio.partText(v)],
      [tabweave.el("span", { title: v.b > 0 ? `${(v.a / v.b).toFixed(v.a / v.b < 10 ? 1 : 0)} times as often` : "only here" }, share(v.a)), tabweave.bar(v.a, v.b)], share(v.b)]), { classes: "over tight" })
      : tabweave.el("p", { class: "quiet" }, "Nothing stands out; these rows are much like all others."),
  ];
};

/* -- one column: what it holds, here and overall --------------------------------------------------- */

studio.openColumn = (column) => studio.set({ column, tab: "column" });
studio.panel({
  id: "column", title: "Column", order: 15, watches: ["column", "filters", "selection"],
  build(into) { tabweave.fill(into, tabweave.el("div", { id: "column-body" })); },
  async update(state) {
    const into = byId("column-body");
    const names = studio.shown[0].data.columns.map((c) => c.name);
    const chooser = tabweave.chooser("Column", names, (i) => studio.set({ column: names[i] }));
    const name = names.includes(state.column) ? state.column : names[0];
    chooser.querySelector("select").value = names.indexOf(name);
    const found = await studio.latest("column", () => studio.ofTable("charts", { filters: studio.where(), columns: [name] }));
    if (!found || !byId("column-body")) return;
    const held = into.contains(document.activeElement) ? document.activeElement.tagName : "";
    const d = studio.shown[0].data;
    const about = d.columns.find((c) => c.name === name);
    const coupled = ((d.couplings && d.couplings.pairs) || []).filter((p) => p.a === name || p.b === name).slice(0, 6);
    tabweave.fill(into, tabweave.el("p", { class: "choosers" }, chooser,
      tabweave.el("button", { type: "button", class: "tool", onclick: () => studio.set({ colour: name }) }, "Colour by it")),
    tabweave.el("p", { class: "small" }, `${about.kind}${about.role === "column" ? "" : `, ${about.role}`}; ${tabweave.plural(about.distinct, "distinct value")}, ${about.missing ? `${tabweave.percent(about.missing / d.rows)} missing` : "none missing"}.`, about.why ? ` ${about.why}.` : null),
    studio.bigChart(found.charts[0]),
    about.summary ? tabweave.table(`Figures of ${name}`, [{ name: "" }, { name: "value", number: true }], ["min", "q1", "median", "q3", "max", "mean", "deviation"].filter((k) => about.summary[k] !== undefined && about.summary[k] !== null)
      .map((k) => [k, typeof about.summary[k] === "string" ? about.summary[k] : tabweave.number(about.summary[k], 6)]), { classes: "tight" }) : null,
    coupled.length ? [tabweave.el("h3", {}, "Depends on"), tabweave.table(`Columns that ${name} depends on`, [{ name: "column" }, { name: "strength", number: true }],
      coupled.map((p) => [tabweave.el("button", { type: "button", class: "link", onclick: () => studio.openColumn(p.a === name ? p.b : p.a) }, p.a === name ? p.b : p.a), [p.strength.toFixed(3), tabweave.bar(p.strength)]]), { classes: "pairs tight" })] : null);
    if (held === "SELECT") chooser.querySelector("select").focus();
  },
});

/* -- columns: what takes part, as what, and how much ------------------------------------------- */

studio.setup = () => {
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

studio.panel({ id: "columns", title: "Columns", order: 70, build: (into) => tabweave.fill(into, studio.setup()) });

/* -- clusters -------------------------------------------------------------------------------- */

studio.clusters = () => {
  const draw = tabweave.sections.find((section) => section.id === "clusters").draw;
  const both = studio.shown.length > 1 ? studio.agreement(...studio.shown.map((one) => one.data.map)) : null;
  return [
    both === null ? null : tabweave.el("p", {}, `The two agree ${both > 0.8 ? "closely" : both > 0.4 ? "in part" : both > 0.1 ? "little" : "no more than chance"} on which rows belong together `,
      tabweave.el("span", { class: "quiet" }, `(adjusted Rand index ${both.toFixed(2)}; 1 is the same groups, 0 is chance; over the rows drawn).`)),
    studio.pair((one) => draw(one.data)),
  ];
};
studio.panel({
  id: "clusters", title: "Clusters", order: 30, watches: ["filters", "selection"],
  build: (into) => tabweave.fill(into, studio.clusters()),
  update() { studio.clustersPassing(); },
});
/* How many rows of each cluster pass the filters; a press on a heading takes the cluster as a filter. */
studio.clustersPassing = () => {
  studio.shown.forEach((one, side) => {
    const cards = byId("clusters").querySelectorAll(studio.shown.length > 1 ? `[data-side="${studio.letters[side]}"] .card` : ".card");
    const counts = studio.counts && studio.counts[side];
    const totals = new Float64Array(cards.length);
    if (counts) one.data.map.clusters.forEach((k, i) => { totals[k] += counts[i]; });
    cards.forEach((card, k) => {
      let line = card.querySelector(".here");
      if (!line) { line = tabweave.el("p", { class: "here small" }); card.querySelector("h3").after(line); }
      tabweave.fill(line, tabweave.el("button", { type: "button", class: "link", onclick: () => studio.set({ filters: [...studio.state.filters.filter((f) => f.cluster === undefined), { cluster: k, job: one.job }] }) }, "Only these rows"),
        counts ? `; ${tabweave.whole(totals[k])} of them pass the filters` : "");
    });
  });
};

/* -- cells that do not fit their rows ------------------------------------------------------------- */

studio.panel({
  id: "odd", title: "Odd", order: 35, watches: [],
  build(into) {
    const found = studio.shown[0].data.outliers;
    if (!found || !found.cells.length) { tabweave.fill(into, tabweave.el("p", { class: "empty" }, "No cell is odd, given the rest of its row.")); return; }
    tabweave.fill(into, tabweave.el("p", { class: "small" }, "The most unusual cells: p is how often cells of the column are as surprising, given the rest of their row. ",
      `${found.of === studio.shown[0].data.rows ? "All rows were" : `${tabweave.whole(found.of)} of ${tabweave.whole(studio.shown[0].data.rows)} rows, drawn evenly from all, were`} looked at.`),
    tabweave.table("Odd cells, most unusual first", [{ name: "row" }, { name: "cell" }, { name: "does not go with" }, { name: "p", number: true }],
      found.cells.map((c) => [studio.rowLink(c.row, c.name ?? c.id), `${c.column} = ${c.value}`, c.against, c.p < 0.001 ? "< 0.001" : c.p.toFixed(3)]), { classes: "odd tight" }));
  },
});

studio.agreement = (a, b) => {
  const of = new Map(Array.from(b.rows, (row, i) => [row, i]));
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
  const row = studio.state.picked[studio.state.picked.length - 1];
  if (row === undefined) { tabweave.fill(byId("near-body"), studio.starts(studio.shown[0].data)); return; }
  const found = await studio.patiently("near-body", still, (one) => `/api/jobs/${one.job}/near?row=${row}`);
  if (!still()) return;
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
      tabweave.el("button", { type: "button", class: "link", "aria-label": `Row ${r.row}, ${r.why}: see the rows nearest to it`, onclick: () => { studio.look(r.row); byId("rows").focus({ preventScroll: true }); } }, tabweave.row(r.row, r.id)),
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
        onclick: () => studio.set({ picked: [found.row, other.row], row: other.row }) }, tabweave.row(other.row, other.id)),
      others && others.has(other.row) ? tabweave.el("span", { class: "tag" }, "both") : null],
      tabweave.distance(other.distance), tabweave.el("span", { title: other.differs.map((name) => `${name} ${tabweave.text(other.cells[name])}`).join("; ") }, differ(other))]), { classes: "tight nearest" });
};

/* -- why ------------------------------------------------------------------------------------- */

studio.fillWhy = async (still) => {
  const [a, b] = studio.state.picked;
  if (b === undefined) { tabweave.fill(byId("why-body"), tabweave.el("p", { class: "empty" }, "Choose two rows to see which columns they differ in.")); return; }
  const found = await studio.patiently("why-body", still, (one) => `/api/jobs/${one.job}/explain?a=${a}&b=${b}`);
  if (!still()) return;
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
