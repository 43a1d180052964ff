/* Filters are charts: a histogram or bars of each column, of all rows and of those that pass. A
   range is brushed by mouse or moved by arrow keys; bars are pressed. The server counts all rows. */

studio.chartsShown = 40;

studio.charts = studio.attempt(async () => {
  await studio.passed; // the map comes first
  const found = await studio.latest("charts", () => studio.ofTable("charts", { filters: studio.where() }));
  if (!found) return;
  const { rows, passing } = found;
  byId("passing").textContent = studio.where().length ? `${tabweave.whole(passing)} of ${tabweave.plural(rows, "row")}` : "";
  const into = byId("charts");
  const charts = found.charts.filter((chart) => chart.form !== "none");
  const key = JSON.stringify([studio.state.source, charts.map((c) => [c.column, c.form])]);
  if (into.key === key) { charts.slice(0, studio.chartsShown).forEach((chart, i) => into.drawn[i].fill(chart)); return; }
  into.key = key;
  into.drawn = charts.slice(0, studio.chartsShown).map((chart) => (chart.form === "histogram" ? new studio.Histogram(chart) : new studio.Bars(chart)));
  tabweave.fill(into, tabweave.el("h2", { class: "hidden" }, "Columns as filters"), into.drawn.map((drawn) => drawn.root),
    charts.length > studio.chartsShown ? tabweave.el("button", { type: "button", class: "tool", onclick: () => { studio.chartsShown = Infinity; studio.charts(); } }, `All ${charts.length} columns`) : null);
});
studio.on(["source", "table", "filters", "selection"], (state) => { if (state.table) studio.charts(); });

studio.chartHead = (column) => tabweave.el("h3", {}, tabweave.el("button", { type: "button", class: "link", title: `Open ${column}`, onclick: () => studio.openColumn(column) }, column));

/* A range of a number or a date. Two thumbs, one at each end, are what the keyboard moves. */
studio.Histogram = class {
  constructor(chart, large) {
    this.bars = tabweave.svg("svg", { preserveAspectRatio: "none", "aria-hidden": "true" });
    this.range = tabweave.el("div", { class: "range", hidden: true });
    this.thumbs = ["from", "to"].map((end, i) => tabweave.el("div", {
      class: "thumb", role: "slider", tabindex: "0", "aria-label": `${chart.column} ${end}`, onkeydown: (event) => this.key(event, i),
    }));
    this.plot = tabweave.el("div", { class: "plot" }, this.bars, this.range, this.thumbs);
    this.said = tabweave.el("p", { class: "ends" });
    this.root = tabweave.el("div", { class: large ? "chart large" : "chart", "data-column": chart.column }, large ? null : studio.chartHead(chart.column), this.plot, this.said);
    this.listen();
    this.fill(chart);
  }

  fill(chart) {
    this.chart = chart;
    const n = chart.all.length;
    const top = Math.max(1, ...chart.all);
    const height = (count) => (count ? Math.max(1.5, 40 * Math.sqrt(count / top)) : 0);
    this.bars.setAttribute("viewBox", `0 0 ${10 * n} 40`);
    tabweave.fill(this.bars, chart.all.map((count, i) => [
      tabweave.svg("rect", { class: "all", x: 10 * i + 0.5, width: 9, y: 40 - height(count), height: height(count) }),
      tabweave.svg("rect", { class: "passing", x: 10 * i + 0.5, width: 9, y: 40 - height(chart.passing[i]), height: height(chart.passing[i]) },
        tabweave.svg("title", {}, `${this.bar(i)}: ${tabweave.whole(chart.passing[i])} of ${tabweave.plural(count, "row")}`))]));
    const f = studio.filterOf(chart.column);
    const low = f && (f.min ?? f.above ?? null) !== null ? this.bin(f.min ?? f.above) : 0;
    const high = f && (f.below ?? f.max ?? null) !== null ? this.bin(f.below ?? f.max, true) : n;
    if (!this.held) [this.low, this.high] = [low, Math.max(high, low + 1)];
    this.place();
  }

  /* The end of a bar; a bar of single numbers ends with its own. */
  edge(i, isEnd) {
    const { edges, type, single } = this.chart;
    if (single && isEnd) return tabweave.number(edges[i] - 1, 6);
    return type === "date" || type === "datetime" ? String(edges[i]).slice(0, type === "date" ? 10 : 16).replace(/[ T]00:00$/, "") : typeof edges[i] === "number" ? tabweave.number(edges[i], 6) : String(edges[i]);
  }

  bar(i) {
    return this.chart.single ? this.edge(i) : `${this.edge(i)} to ${this.edge(i + 1)}`;
  }

  bin(value, isEnd) {
    const { edges } = this.chart;
    const n = edges.length - 1;
    for (let i = 0; i < n; i++) if (isEnd ? edges[i + 1] >= value : edges[i + 1] > value) return isEnd ? i + 1 : i;
    return isEnd ? n : n - 1;
  }

  place() {
    const n = this.chart.all.length;
    const whole = this.low === 0 && this.high === n;
    this.range.hidden = whole;
    this.range.style.setProperty("left", `${(100 * this.low) / n}%`);
    this.range.style.setProperty("width", `${(100 * (this.high - this.low)) / n}%`);
    [this.low, this.high].forEach((at, i) => {
      const thumb = this.thumbs[i];
      thumb.style.setProperty("left", `${(100 * at) / n}%`);
      for (const [name, value] of [["valuemin", 0], ["valuemax", n], ["valuenow", at], ["valuetext", this.edge(at)]]) thumb.setAttribute(`aria-${name}`, String(value));
    });
    const { missing } = this.chart;
    tabweave.fill(this.said, tabweave.el("span", {}, this.edge(this.low)), missing && missing.all ? tabweave.el("button", {
      type: "button", class: "link gap", "aria-pressed": String(Boolean((studio.filterOf(this.chart.column) || {}).missing)),
      onclick: () => (studio.filterOf(this.chart.column) || {}).missing ? studio.unfilter(this.chart.column) : studio.filterBy({ column: this.chart.column, missing: true }),
    }, `${tabweave.whole(missing.passing)} missing`) : null, tabweave.el("span", {}, this.edge(this.high, true)));
  }

  /* Say it to the page; a step of the history once the hand is off. */
  apply(done) {
    const { column, edges, all } = this.chart;
    if (this.low === 0 && this.high === all.length) studio.unfilter(column, { history: done });
    else {
      const last = this.high === all.length;
      studio.filterBy({ column, ...(this.low ? { min: edges[this.low] } : {}), ...(last ? {} : { below: edges[this.high] }) }, { history: done });
    }
  }

  key(event, i) {
    const n = this.chart.all.length;
    const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 4, PageDown: -4, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Escape") { [this.low, this.high] = [0, n]; } else if (!by) return;
    event.preventDefault();
    if (by && i === 0) this.low = Math.max(0, Math.min(this.high - 1, this.low + by));
    if (by && i === 1) this.high = Math.min(n, Math.max(this.low + 1, this.high + by));
    this.place();
    this.apply(true);
  }

  listen() {
    let from = null;
    const at = (event) => {
      const box = this.plot.getBoundingClientRect();
      return Math.max(0, Math.min(this.chart.all.length - 1e-9, (this.chart.all.length * (event.clientX - box.left)) / box.width));
    };
    this.plot.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      this.plot.setPointerCapture(event.pointerId);
      from = at(event);
      this.held = true;
      event.preventDefault();
    });
    this.plot.addEventListener("pointermove", (event) => {
      if (from === null) return;
      const to = at(event);
      const [low, high] = [Math.floor(Math.min(from, to)), Math.floor(Math.max(from, to)) + 1];
      if (low === this.low && high === this.high) return;
      [this.low, this.high] = [low, high];
      this.place();
      this.apply(false);
    });
    const end = (event) => {
      if (from === null) return;
      const to = at(event);
      const n = this.chart.all.length;
      const pressed = Math.floor(from) === Math.floor(to);
      // A press within the range lets it go; elsewhere it takes one bar.
      if (pressed && !(this.low === 0 && this.high === n) && this.low <= to && to < this.high && this.high - this.low === 1 && this.before) [this.low, this.high] = [0, n];
      else if (pressed) [this.low, this.high] = [Math.floor(to), Math.floor(to) + 1];
      this.before = this.high - this.low === 1;
      from = null;
      this.held = false;
      this.place();
      this.apply(true);
    };
    for (const name of ["pointerup", "pointercancel"]) this.plot.addEventListener(name, end);
    this.plot.addEventListener("dblclick", () => { [this.low, this.high] = [0, this.chart.all.length]; this.place(); this.apply(true); });
  }
};

/* Values, the most frequent first; a press takes one as a filter, or lets it go. */
studio.Bars = class {
  constructor(chart, large) {
    this.list = tabweave.el("ul", { class: "values" });
    this.root = tabweave.el("div", { class: large ? "chart large" : "chart", "data-column": chart.column }, large ? null : studio.chartHead(chart.column), this.list);
    this.few = large ? Infinity : 5;
    this.fill(chart);
  }

  fill(chart) {
    this.chart = chart;
    const f = studio.filterOf(chart.column);
    const chosen = new Set(f && f.in ? f.in.map(String) : []);
    const lines = chart.values.slice(0, this.few).map(({ value, all, passing }) => ({ value, all, passing }));
    for (const value of f && f.in ? f.in : []) if (!lines.some((line) => String(line.value) === String(value))) lines.push(chart.values.find((v) => String(v.value) === String(value)) || { value, all: null, passing: null });
    const { missing, others } = chart;
    if (missing && missing.all && !lines.some((line) => line.value === null)) lines.push({ value: null, ...missing });
    const rest = chart.values.slice(this.few).reduce((sum, v) => ({ values: sum.values + 1, all: sum.all + v.all, passing: sum.passing + v.passing }), others || { values: 0, all: 0, passing: 0 });
    const top = Math.max(1, ...lines.map((line) => line.all || 0));
    const held = this.list.contains(document.activeElement) ? document.activeElement.dataset.value : null;
    tabweave.fill(this.list, lines.map(({ value, all, passing }) => tabweave.el("li", {}, tabweave.el("button", {
      type: "button", class: "value", "data-value": String(value), "aria-pressed": String(chosen.has(String(value))), onclick: () => this.press(value),
    }, tabweave.el("span", { class: "fill all", vars: { "--w": (all || 0) / top } }), tabweave.el("span", { class: "fill passing", vars: { "--w": (passing || 0) / top } }),
    tabweave.el("span", { class: "name" }, tabweave.value(value === null ? null : String(value))), tabweave.el("span", { class: "count" }, passing === null ? "" : tabweave.whole(passing))))),
    rest.values ? tabweave.el("li", { class: "others" }, tabweave.el("button", { type: "button", class: "link", onclick: () => studio.openColumn(chart.column) }, `${tabweave.plural(rest.values, "other")}, ${tabweave.whole(rest.passing)}`)) : null);
    if (held !== null) { const again = [...this.list.querySelectorAll(".value")].find((b) => b.dataset.value === held); if (again) again.focus({ preventScroll: true }); }
  }

  press(value) {
    const { column } = this.chart;
    const f = studio.filterOf(column);
    const chosen = f && f.in ? f.in : [];
    const next = chosen.includes(value) ? chosen.filter((v) => v !== value) : [...chosen, value];
    if (next.length) studio.filterBy({ column, in: next });
    else studio.unfilter(column);
  }
};

studio.bigChart = (chart) => {
  if (chart.form === "histogram") return new studio.Histogram(chart, true).root;
  if (chart.form === "bars") return new studio.Bars(chart, true).root;
  return tabweave.el("p", { class: "quiet small" }, `${tabweave.plural(chart.distinct, "distinct value")}: too many to draw. Find looks into them.`);
};

/* -- find: a text, a number, column = value, column > number ---------------------------------------- */

/* A filter that is written: `dep_delay > 300`, `carrier = UA`. */
studio.written = (text) => {
  const table = studio.state.table;
  const [, left, sign, right] = text.match(/^\s*(.+?)\s*(<=|>=|≤|≥|=|<|>)\s*(.*?)\s*$/) || [];
  const column = table && left && table.columns.find((c) => c.name.toLowerCase() === left.toLowerCase());
  if (!column || right === "") return null;
  const { name, type } = column;
  const isNumber = type === "number" || type === "integer";
  const number = Number(right.replaceAll(",", ""));
  if (isNumber && Number.isNaN(number) && right !== "missing") return null;
  const value = isNumber ? number : right;
  if (sign === "=") return right === "missing" ? { column: name, missing: true } : isNumber ? { column: name, min: value, max: value } : type === "date" || type === "datetime" ? { column: name, min: value, max: value } : { column: name, in: [right] };
  if (sign === "<") return { column: name, below: value };
  if (sign === ">=" || sign === "≥") return { column: name, min: value };
  if (sign === "<=" || sign === "≤") return { column: name, max: value };
  return { column: name, above: value };
};

studio.finder = () => {
  const list = tabweave.el("ul", { id: "found", role: "listbox", class: "found", "aria-label": "What was found", hidden: true });
  const input = tabweave.el("input", {
    id: "find", type: "search", class: "find", placeholder: "Find, or column > 300", spellcheck: "false", autocomplete: "off",
    role: "combobox", "aria-label": "Find a text, a number, row 12, or column > number", "aria-expanded": "false", "aria-controls": "found", "aria-autocomplete": "list",
  });
  const says = tabweave.el("span", { class: "hidden", role: "status" });
  let [choices, at] = [[], -1];
  const close = () => { list.hidden = true; input.setAttribute("aria-expanded", "false"); input.removeAttribute("aria-activedescendant"); at = -1; };
  const mark = (next) => {
    at = next;
    [...list.querySelectorAll("[role=option]")].forEach((option, i) => option.setAttribute("aria-selected", String(i === at)));
    if (at >= 0) { input.setAttribute("aria-activedescendant", `found-${at}`); byId(`found-${at}`).scrollIntoView({ block: "nearest" }); }
  };
  const show = (heading, offered) => {
    choices = offered;
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    tabweave.fill(list, tabweave.el("li", { role: "presentation", class: "quiet small" }, heading), choices.map(({ words }, i) => tabweave.el("li", {
      role: "option", id: `found-${i}`, "aria-selected": "false", onpointerdown: (event) => { event.preventDefault(); take(i); },
    }, words)));
    says.textContent = heading;
    at = -1;
  };
  const take = (i) => {
    const choice = choices[i];
    if (!choice) return; // nothing was found
    close();
    choice.act();
  };
  const look = studio.attempt(async () => {
    const text = input.value.trim();
    if (!text) { choices = []; close(); return; }
    const filter = studio.written(text);
    const row = text.match(/^(?:row\s*|#)(\d+)$/i);
    const start = performance.now();
    const found = await studio.latest("find", () => studio.ofTable("find", { text, limit: 12, filters: [] }));
    if (!found || input.value.trim() !== text) return;
    studio.findTook = performance.now() - start;
    const offered = [];
    if (filter) offered.push({ words: ["only rows with ", tabweave.el("b", {}, studio.filterText(filter))], act: () => { input.value = ""; studio.filterBy(filter); } });
    if (row && Number(row[1]) < studio.shown[0].data.rows) offered.push({ words: ["row ", tabweave.el("b", {}, row[1])], act: () => studio.look(Number(row[1])) });
    for (const hit of found.hits) {
      const one = hit.rows === 1;
      offered.push({
        words: [tabweave.el("span", { class: "quiet" }, `${hit.column} `), tabweave.el("b", {}, tabweave.value(hit.value === null ? null : String(hit.value))), tabweave.el("span", { class: "quiet" }, one ? ` ${studio.rowText(hit.row, hit.name)}` : ` ${tabweave.plural(hit.rows, "row")}`)],
        act: () => (one ? studio.look(hit.row) : studio.filterBy(typeof hit.value === "number" ? { column: hit.column, min: hit.value, max: hit.value } : { column: hit.column, in: [hit.value] })),
      });
    }
    show(found.total || !offered.length ? `${tabweave.plural(found.total, "value")} found` : "Press Enter to filter", offered);
  });
  input.addEventListener("input", look);
  input.addEventListener("focus", () => { if (input.value.trim()) look(); });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (choices.length && !list.hidden) mark((at + (event.key === "ArrowDown" ? 1 : -1) + choices.length + (at < 0 && event.key === "ArrowUp" ? 1 : 0)) % choices.length);
    } else if (event.key === "Enter") { event.preventDefault(); take(Math.max(0, at)); } else if (event.key === "Escape") close();
  });
  return tabweave.el("span", { class: "finder" }, input, list, says);
};
