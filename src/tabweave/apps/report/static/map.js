/* The map of rows: one component for reports, the studio, `tabweave map` and notebooks.

   One unit is as long across as it is up, whatever the shape of the page, so what lies twice as far
   is twice as far. Marks are stamped into pixels: 100,000 of them move with the mouse. Rows at one
   point are one mark with their number, and every one of them can be reached by keyboard. */

tabweave.sections.push({
  id: "map", title: "Map of rows",
  draw: (d) => (d.map && d.map.rows.length ? tabweave.mapSection(d) : [tabweave.el("p", { class: "empty" }, d.method ? "There are too few rows to map." : tabweave.nothingLeft)]),
});

tabweave.mapSection = (d) => {
  const m = d.map;
  const inspector = tabweave.el("div", { class: "inspector", "aria-live": "polite" });
  const map = new tabweave.Map(d, {
    height: d.only ? () => Math.max(360, innerHeight - 330) : null,
    look: (i) => tabweave.inspect(inspector, map, i),
    select: (chosen) => tabweave.fill(inspector, chosen ? tabweave.standsOut(map, chosen) : tabweave.hint()),
  });
  tabweave.fill(inspector, tabweave.hint());
  const drawn = m.rows.length < m.of
    ? `${tabweave.whole(m.rows.length)} rows drawn at random, of ${tabweave.whole(m.of)}${d.only ? "" : " distinct ones"}. `
    : d.only ? `All ${tabweave.whole(m.of)} rows. ` : `All ${tabweave.whole(m.of)} distinct rows${m.copies.some((n) => n > 1) ? "; larger marks stand for many equal rows" : ""}. `;
  return [
    tabweave.el("p", {}, "Similar rows lie close together. ", tabweave.el("span", { class: "quiet" }, drawn,
      m.layouts[0].explained ? `The first axis holds ${tabweave.percent(m.layouts[0].explained[0])} of the variance, the second ${tabweave.percent(m.layouts[0].explained[1])}. ` : null,
      m.without ? `${m.without}.` : null)),
    map.tools,
    tabweave.el("div", { class: "mapframe" }, tabweave.el("div", {}, map.stage, map.legend, map.says), inspector),
    map.table,
  ];
};

tabweave.hint = () => tabweave.el("p", { class: "quiet" }, "Choose a mark to see its row: click it, or focus the map and use the arrow keys; " +
  "Page Down goes through all rows. Draw around marks with the lasso to see what they share.");

/* What rows can be coloured by: the target, clusters, columns, odd cells, and how many lie around. */
tabweave.colours = (d) => {
  const m = d.map;
  const own = d.clusters ? [{ title: "cluster", column: { name: "cluster", labels: tabweave.clusterNames(d), codes: m.clusters, fixed: true } }] : [];
  const columns = m.columns.map((column) => ({ title: column.name, column }));
  const rest = d.target ? [columns[0], ...own, ...columns.slice(1)] : [...own, ...columns];
  return [...rest, ...tabweave.moreColours(m)];
};
tabweave.moreColours = (m) => [
  ...(m.odd && m.odd.labels.length ? [{ title: "odd cells", column: { name: "odd cells", ...m.odd, fixed: true, rest: "no odd cell" } }] : []),
  { title: "density", density: true },
];

tabweave.clusterNames = (d) => d.clusters.groups.map((_, i) => `cluster ${tabweave.letter(i)}`);

/* A cluster by the values it has more of, for its name on the map. */
tabweave.clusterTitle = (d, i, letters) => {
  const top = d.clusters.groups[i].values.slice(0, 2).map((v) => `${v.column} ${tabweave.text(v.value)}`);
  return tabweave.shorten([tabweave.letter(i), ...(top.length ? [top.join(", ")] : [])].join(": "), letters);
};

/* What rows are told apart by: the seven most frequent values, or five ranges of a number. */
tabweave.groups = (column) => {
  if (column.numbers) return tabweave.ranges(column.numbers);
  const counts = column.labels.map(() => 0);
  for (const code of column.codes) if (code >= 0) counts[code]++;
  const order = counts.map((_, i) => i).slice(0, column.others ? -1 : undefined); // the last stands for many
  if (!column.fixed) order.sort((a, b) => counts[b] - counts[a] || a - b);
  const kept = order.slice(0, order.length <= 8 ? 8 : 7);
  const index = new Map(kept.map((code, i) => [code, i]));
  const names = kept.map((code) => column.labels[code]);
  const of = column.codes.map((code) => (code < 0 ? (column.rest ? -1 : -2) : index.has(code) ? index.get(code) : -1));
  return { names, of, ordered: false, rest: column.rest || "other values" };
};

tabweave.ranges = (numbers, whole = false) => {
  const present = Float64Array.from(numbers.filter((x) => x !== null)).sort();
  const edges = [...new Set([1, 2, 3, 4].map((q) => present[Math.floor((q * present.length) / 5)]))]
    .filter((edge) => edge !== undefined && edge > present[0]);
  let digits = 4; // as many as tell the edges apart
  while (digits < 15 && new Set(edges.map((edge) => tabweave.number(edge, digits))).size < edges.length) digits++;
  const show = whole ? tabweave.whole : (x) => tabweave.number(x, digits);
  const step = present.every(Number.isInteger) ? 1 : 0; // 3 to 4 are whole numbers below 5
  const range = (low, high) => (show(low) === show(high) ? show(low) : `${show(low)} to ${show(high)}`);
  const names = edges.length ? [`< ${show(edges[0])}`,
    ...edges.slice(1).map((edge, i) => range(edges[i], edge - step)),
    `≥ ${show(edges[edges.length - 1])}`] : [present.length ? show(present[0]) : "none"];
  const of = numbers.map((x) => (x === null ? -2 : edges.reduce((n, edge) => n + (x >= edge), 0)));
  return { names, of, ordered: true };
};

/* How many rows lie in the cell of a grid and those around it. */
tabweave.density = (xs, ys, copies) => {
  const [low, high] = [[Infinity, Infinity], [-Infinity, -Infinity]];
  for (let i = 0; i < xs.length; i++) for (const [a, v] of [[0, xs[i]], [1, ys[i]]]) { low[a] = Math.min(low[a], v); high[a] = Math.max(high[a], v); }
  const side = Math.max(high[0] - low[0], high[1] - low[1]) / 48 || 1;
  const wide = Math.floor((high[0] - low[0]) / side) + 3;
  const cell = (i) => (Math.floor((ys[i] - low[1]) / side) + 1) * wide + Math.floor((xs[i] - low[0]) / side) + 1;
  const counts = new Float64Array(wide * (Math.floor((high[1] - low[1]) / side) + 3));
  for (let i = 0; i < xs.length; i++) counts[cell(i)] += copies[i];
  return Array.from(xs, (_, i) => { const c = cell(i); let n = 0; for (const dy of [-wide, 0, wide]) for (let dx = -1; dx < 2; dx++) n += counts[c + dy + dx] || 0; return n; });
};

/* -- marks: a shape and a colour for each group ------------------------------------------------ */

tabweave.SHAPES = {
  0: (p, r) => p.arc(0, 0, r, 0, 2 * Math.PI),
  1: (p, r) => p.rect(-r * 0.9, -r * 0.9, 1.8 * r, 1.8 * r),
  2: (p, r) => { p.moveTo(0, -1.2 * r); p.lineTo(1.1 * r, 0.8 * r); p.lineTo(-1.1 * r, 0.8 * r); p.closePath(); },
  3: (p, r) => { p.moveTo(0, -1.3 * r); p.lineTo(1.3 * r, 0); p.lineTo(0, 1.3 * r); p.lineTo(-1.3 * r, 0); p.closePath(); },
  4: (p, r) => { p.moveTo(0, 1.2 * r); p.lineTo(1.1 * r, -0.8 * r); p.lineTo(-1.1 * r, -0.8 * r); p.closePath(); },
  5: (p, r) => { p.rect(-r * 1.2, -r * 0.4, 2.4 * r, 0.8 * r); p.rect(-r * 0.4, -r * 1.2, 0.8 * r, 2.4 * r); },
  6: (p, r) => { for (let i = 0; i < 10; i++) { const s = i % 2 ? 0.55 * r : 1.35 * r; const a = (Math.PI * i) / 5 - Math.PI / 2; p[i ? "lineTo" : "moveTo"](s * Math.cos(a), s * Math.sin(a)); } p.closePath(); },
  7: (p, r) => { for (let i = 0; i < 6; i++) { const a = (Math.PI * i) / 3; p[i ? "lineTo" : "moveTo"](1.15 * r * Math.cos(a), 1.15 * r * Math.sin(a)); } p.closePath(); },
};

tabweave.mark = (context, group, ordered, radius) => {
  context.beginPath();
  if (group < 0) context.arc(0, 0, radius * (group === -1 ? 0.6 : 0.8), 0, 2 * Math.PI);
  else tabweave.SHAPES[group](context, radius);
  const shade = tabweave.colour(tabweave.shadeName(group, ordered));
  if (group === -2) { context.strokeStyle = shade; context.lineWidth = 1.3; context.stroke(); return; }
  context.fillStyle = shade;
  context.fill();
};
tabweave.shadeName = (group, ordered) => (group < 0 ? "--others" : ordered ? `--s${group}` : `--c${group}`);

tabweave.canvas = (width, height, ratio) => {
  const canvas = tabweave.el("canvas", { "aria-hidden": "true" });
  [canvas.width, canvas.height] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  return canvas;
};

tabweave.glyph = (group, ordered) => {
  const ratio = window.devicePixelRatio || 1;
  const canvas = tabweave.canvas(18, 18, ratio);
  canvas.setAttribute("class", "glyph");
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 9 * ratio, 9 * ratio);
  tabweave.mark(context, group, ordered, 5.4);
  return canvas;
};

/* A mark as pixels: how far from its middle, and how much of the pixel it covers. */
tabweave.stamp = (group, ordered, radius, ratio) => {
  const reach = Math.ceil(1.5 * radius * ratio) + 1;
  const canvas = tabweave.canvas(2 * reach + 1, 2 * reach + 1, 1);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.setTransform(ratio, 0, 0, ratio, reach + 0.5, reach + 0.5);
  tabweave.mark(context, group, ordered, radius);
  const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data;
  const [dx, dy, cover] = [[], [], []];
  let colour = [0, 0, 0];
  let most = 0;
  for (let k = 0; k < pixels.length / 4; k++) {
    const alpha = pixels[4 * k + 3];
    if (alpha < 20) continue;
    dx.push((k % canvas.width) - reach); dy.push(Math.floor(k / canvas.width) - reach); cover.push(alpha);
    if (alpha > most) { most = alpha; colour = [pixels[4 * k], pixels[4 * k + 1], pixels[4 * k + 2]]; }
  }
  return { dx: Int16Array.from(dx), dy: Int16Array.from(dy), cover: Uint8Array.from(cover), colour, reach };
};

/* -- the component ----------------------------------------------------------------------------- */

tabweave.Map = class {
  constructor(d, options) {
    const m = d.map;
    Object.assign(this, { d, m, options: options || {}, layout: 0, colour: 0, lit: new Set(), matches: null, chosen: null, cursor: null, lasso: null, lassoing: false, named: true });
    this.colours = this.options.colours || tabweave.colours(d);
    this.canvas = tabweave.el("canvas", { tabindex: "0", role: "application", "aria-roledescription": "map" });
    this.tip = tabweave.el("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    this.stage = tabweave.el("div", { class: "stage map" }, this.canvas, this.tip);
    this.stage.map = this;
    this.legend = tabweave.el("ul", { class: "legend", "aria-label": "Legend; press an entry to highlight it" });
    this.says = tabweave.el("p", { class: "quiet small says", "aria-live": "polite" });
    this.table = tabweave.el("div", {});
    this.tools = this.build();
    this.listen();
    this.lay();
    requestAnimationFrame(() => { this.refresh(); tabweave.onLook(this.stage, () => this.resize()); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.drawLegend());
  }

  build() {
    const button = (name, label, press) => tabweave.el("button", { type: "button", class: "tool", "aria-label": label, title: label, onclick: press }, name);
    this.search = tabweave.el("input", { type: "search", class: "find", placeholder: "row, text or column=value", "aria-label": "Find rows: a number, a text, or column=value", spellcheck: "false" });
    this.search.addEventListener("input", () => this.find(this.search.value));
    this.search.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); this.next(1, true); } });
    this.lassoButton = tabweave.el("button", { type: "button", class: "tool", "aria-pressed": "false", title: "Draw around marks; or drag with Shift", onclick: () => this.arm(!this.lassoing) }, "Lasso");
    this.nameButton = this.d.clusters && this.d.clusters.groups.length > 1
      ? tabweave.el("button", { type: "button", class: "tool", "aria-pressed": "true", onclick: () => { this.named = !this.named; this.nameButton.setAttribute("aria-pressed", String(this.named)); this.draw(); } }, "Names") : null;
    this.colourChooser = tabweave.chooser("Colour by", this.colours.map((c) => c.title), (i) => this.paint(i));
    this.layoutChooser = tabweave.chooser("Layout", this.m.layouts.map((l) => l.name), (i) => this.arrange(i));
    this.layoutChooser.hidden = this.m.layouts.length < 2;
    return tabweave.el("div", { class: "choosers maptools" }, this.options.bare ? null : [this.colourChooser, this.layoutChooser], this.search,
      tabweave.el("span", { class: "toolset", role: "group", "aria-label": "View" }, button("+", "Zoom in", () => this.zoom(1.5)),
        button("−", "Zoom out", () => this.zoom(1 / 1.5)), button("Fit", "Fit all rows into the view", () => this.fit(true)), this.lassoButton, this.nameButton));
  }

  /* -- where marks lie -- */

  lay() {
    const { points } = this.m.layouts[this.layout];
    this.xs = Float64Array.from(points, (p) => p[0]);
    this.ys = Float64Array.from(points, (p) => p[1]);
    const heads = new Map();
    this.head = new Int32Array(points.length);
    this.piles = new Map(); // first row at a point → all rows there
    for (let i = 0; i < points.length; i++) {
      const key = `${points[i][0]},${points[i][1]}`;
      const first = heads.get(key);
      if (first === undefined) { heads.set(key, i); this.head[i] = i; continue; }
      this.head[i] = first;
      if (this.piles.has(first)) this.piles.get(first).push(i);
      else this.piles.set(first, [first, i]);
    }
    this.heads = Int32Array.from(heads.values());
    const sizes = new Map([...this.piles].map(([i, all]) => [i, all.reduce((n, j) => n + this.m.copies[j], 0)]));
    this.weight = (i) => sizes.get(i) || this.m.copies[i];
    this.order = this.heads.slice().sort((a, b) => this.weight(b) - this.weight(a) || a - b);
    this.radii = Float32Array.from(this.xs, (_, i) => Math.round(2 * this.size(this.weight(i))) / 2);
    this.tour = this.middles = null;
  }

  /* The order in which Page Down goes: from left to right, the rows of one mark after each other. */
  route() {
    if (!this.tour) {
      const heads = Array.from(this.heads).sort((a, b) => this.xs[a] - this.xs[b] || this.ys[b] - this.ys[a]);
      this.tour = heads.flatMap((i) => this.piles.get(i) || [i]);
      this.stop = new Int32Array(this.head.length);
      this.tour.forEach((i, k) => { this.stop[i] = k; });
    }
    return this.tour;
  }

  fit(redraw) {
    const span = (list) => { let [low, high] = [Infinity, -Infinity]; for (const v of list) { if (v < low) low = v; if (v > high) high = v; } return [(low + high) / 2, high - low]; };
    const [[cx, dx], [cy, dy]] = [span(this.xs), span(this.ys)];
    const pad = 2 * (this.size(1) + 14);
    const unit = Math.min((this.width - pad) / (dx || 1e-9), (this.height - pad) / (dy || 1e-9));
    this.view = { cx, cy, unit: Number.isFinite(unit) && unit < 1e9 && unit > 0 ? unit : 1 };
    this.fitted = this.view.unit;
    if (redraw) this.draw();
  }

  pixel(i) {
    const { cx, cy, unit } = this.view;
    return [this.width / 2 + (this.xs[i] - cx) * unit, this.height / 2 - (this.ys[i] - cy) * unit];
  }

  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const { cx, cy, unit } = this.view;
    const now = Math.min(Math.max(unit * factor, this.fitted * 0.5), this.fitted * 1e4);
    const [px, py] = [cx + (x - this.width / 2) / unit, cy - (y - this.height / 2) / unit];
    this.view = { cx: px - (x - this.width / 2) / now, cy: py + (y - this.height / 2) / now, unit: now };
    this.draw();
  }

  pan(dx, dy) {
    const { unit } = this.view;
    this.view = { cx: this.view.cx - dx / unit, cy: this.view.cy + dy / unit, unit };
    this.draw();
  }

  resize() {
    this.width = this.stage.clientWidth;
    const room = this.options.height ? this.options.height() : Math.min(560, Math.max(300, this.width * 0.72));
    this.height = Math.round(room);
    if (this.width) { this.fit(false); this.draw(true); }
  }

  /* -- colours, filters, selections -- */

  paint(i) {
    this.colour = i;
    this.refresh();
  }

  arrange(i) {
    this.layout = Math.min(i, this.m.layouts.length - 1);
    this.lay();
    if (this.width) this.fit(false);
    this.refresh();
  }

  /* Another layout became ready: offer it. */
  addLayout(layout) {
    this.m.layouts.push(layout);
    const select = this.layoutChooser.querySelector("select");
    select.append(tabweave.el("option", { value: this.m.layouts.length - 1 }, layout.name));
    this.layoutChooser.hidden = false;
  }

  refresh() {
    const colour = this.colours[this.colour];
    this.groups = colour.density ? tabweave.ranges(tabweave.density(this.xs, this.ys, this.m.copies), true) : tabweave.groups(colour.column);
    this.lit.clear();
    this.canvas.setAttribute("aria-label", `${this.options.name || "Map"} of ${tabweave.plural(this.m.rows.length, "row")} by ${this.m.layouts[this.layout].name}, coloured by ${colour.title}. ` +
      "Arrow keys go from mark to mark, Page Down through all rows, plus and minus zoom, 0 shows all, Enter chooses. The table below says the same in numbers.");
    this.drawLegend();
    this.table.replaceChildren(tabweave.more("The map as a table", () => tabweave.mapTable(this, colour.title)));
    if (!this.width) this.resize();
    else this.draw();
  }

  drawLegend() {
    const { names, of, ordered } = this.groups;
    const counts = new Map();
    of.forEach((group, i) => counts.set(group, (counts.get(group) || 0) + this.m.copies[i]));
    const entries = names.map((name, i) => [i, tabweave.value(name)]).filter(([i]) => counts.get(i));
    if (counts.get(-1)) entries.push([-1, this.groups.rest]);
    if (counts.get(-2)) entries.push([-2, tabweave.value(null)]);
    this.legend.replaceChildren(...entries.map(([group, name]) => {
      const button = tabweave.el("button", { type: "button", "aria-pressed": String(this.lit.has(group)) },
        tabweave.glyph(group, ordered), tabweave.el("span", {}, name), tabweave.el("span", { class: "quiet" }, tabweave.whole(counts.get(group))));
      button.addEventListener("click", () => {
        if (!this.lit.delete(group)) this.lit.add(group);
        button.setAttribute("aria-pressed", String(this.lit.has(group)));
        this.draw();
      });
      return tabweave.el("li", {}, button);
    }));
  }

  find(text) {
    const wanted = text.trim().toLowerCase();
    this.matches = null;
    if (wanted) {
      const { m } = this;
      this.matches = new Uint8Array(m.rows.length);
      const [, name, value] = wanted.match(/^([^=]+)=(.*)$/) || [];
      const column = name === undefined ? null : m.columns.find((c) => c.name.toLowerCase() === name.trim());
      const hits = (c, part, whole) => {
        const same = (label) => { const shown = tabweave.text(label).toLowerCase(); return whole ? shown === part : shown.includes(part); };
        const gap = same(null);
        if (c.numbers) { const n = Number(part.replaceAll(",", "") || NaN); c.numbers.forEach((x, i) => { if (x === null ? gap && whole : tabweave.isSame(x, n)) this.matches[i] = 1; }); return; }
        if (c.texts) { c.texts.forEach((text, i) => { if (text === null ? gap && whole : same(text)) this.matches[i] = 1; }); return; }
        const good = c.labels.map(same);
        c.codes.forEach((code, i) => { if (code < 0 ? gap && whole : good[code]) this.matches[i] = 1; });
      };
      if (column) hits(column, value.trim(), true);
      else if (/^\d+$/.test(wanted)) m.rows.forEach((row, i) => { if (row === Number(wanted)) this.matches[i] = 1; });
      if (!column && !this.matches.includes(1)) for (const c of m.columns) hits(c, wanted, false);
    }
    const n = this.matches ? this.matches.reduce((sum, hit, i) => sum + hit * this.m.copies[i], 0) : 0;
    this.says.textContent = this.matches ? `${tabweave.plural(n, "row")} found.${n ? " Enter goes from one to the next." : ""}` : "";
    this.draw();
  }

  /* Whether a row is brought out, by the legend and by what is searched for. */
  shows(i) {
    return (!this.lit.size || this.lit.has(this.groups.of[i])) && (!this.matches || this.matches[i] === 1) && (!this.chosen || this.chosen[i] === 1);
  }

  arm(on) {
    this.lassoing = on;
    this.lassoButton.setAttribute("aria-pressed", String(on));
    this.touch();
  }

  select(indices) {
    this.chosen = indices && indices.length ? new Uint8Array(this.m.rows.length) : null;
    if (this.chosen) for (const i of indices) this.chosen[i] = 1;
    this.says.textContent = this.chosen ? `${tabweave.plural(indices.length, "mark")} selected. Escape lets them go.` : "";
    this.draw();
    if (this.options.select) this.options.select(this.chosen ? indices : null);
  }

  inside(polygon) {
    const out = [];
    for (let i = 0; i < this.xs.length; i++) {
      const [x, y] = this.pixel(i);
      let within = false;
      for (let a = 0, b = polygon.length - 1; a < polygon.length; b = a++) {
        const [[ax, ay], [bx, by]] = [polygon[a], polygon[b]];
        if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) within = !within;
      }
      if (within) out.push(i);
    }
    return out;
  }

  /* -- drawing -- */

  size(i) {
    const n = this.m.rows.length;
    const small = n > 20000 ? 1.7 : n > 5000 ? 2.2 : n > 1000 ? 2.8 : n > 200 ? 3.6 : 5;
    return small + Math.min(n > 5000 ? 3 : 7, Math.log2(i));
  }

  /* Draw at the next frame, however often it is asked for. */
  draw(now) {
    if (now === true) { this.paintMarks(); return; }
    if (this.asked || !this.width) return;
    this.asked = true;
    requestAnimationFrame(() => { this.asked = false; this.paintMarks(); });
  }

  paintMarks() {
    const { width, height, groups, m } = this;
    if (!width || !groups) return;
    const ratio = m.rows.length > 20000 ? 1 : Math.min(window.devicePixelRatio || 1, 2);
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== w || this.canvas.height !== h) {
      [this.canvas.width, this.canvas.height] = [w, h];
      this.canvas.style.setProperty("width", `${width}px`);
      this.canvas.style.setProperty("height", `${height}px`);
    }
    const context = this.canvas.getContext("2d");
    const [layer, x, y] = this.findLayer(w, h, ratio);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(layer.canvas, x, y, w, h, 0, 0, w, h);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.write(context);
  }

  /* The image of all marks and where the view begins in it. It reaches beyond the view, so a map
     that is dragged moves its image; marks are stamped again when they or their scale change. */
  findLayer(w, h, ratio) {
    const { cx, cy, unit } = this.view;
    const look = [w, h, ratio, unit, this.groups, this.matches, this.chosen, String([...this.lit]), tabweave.colour("--surface")];
    const before = this.layer;
    if (before && look.every((part, i) => part === before.look[i])) {
      const x = before.left + Math.round((cx - before.cx) * unit * ratio);
      const y = before.top - Math.round((cy - before.cy) * unit * ratio);
      if (x >= 0 && y >= 0 && x <= 2 * before.left && y <= 2 * before.top) return [before, x, y];
    }
    const [left, top] = [Math.round(w / 4), Math.round(h / 4)];
    this.layer = { look, cx, cy, left, top, canvas: this.stampAll(w, h, left, top, ratio) };
    return [this.layer, left, top];
  }

  stampAll(w, h, left, top, ratio) {
    const { groups, m } = this;
    const old = this.layer && this.layer.canvas;
    const canvas = old && old.width === w + 2 * left && old.height === h + 2 * top ? old : tabweave.canvas(w + 2 * left, h + 2 * top, 1);
    const context = canvas.getContext("2d");
    if (!this.image || this.image.width !== canvas.width || this.image.height !== canvas.height) this.image = context.createImageData(canvas.width, canvas.height);
    const pixels = new Uint32Array(this.image.data.buffer);
    const [r, g, b] = tabweave.rgb("--surface");
    pixels.fill(0xff000000 | (b << 16) | (g << 8) | r);
    const stamps = [];
    const into = { pixels, w: canvas.width, h: canvas.height, left, top, ratio, stamps };
    const filtered = this.lit.size || this.matches || this.chosen;
    for (const dim of filtered ? [true, false] : [false])
      for (const i of this.order) {
        let one = i;
        if (filtered) {
          const pile = this.piles.get(i);
          one = pile ? pile.find((j) => this.shows(j)) : this.shows(i) ? i : undefined;
          if ((one === undefined) !== dim) continue;
        }
        const group = groups.of[one === undefined ? i : one];
        this.put(into, i, group, dim ? 0.13 : group < 0 ? 0.6 : m.rows.length > 20000 ? 0.6 : 0.85);
      }
    context.putImageData(this.image, 0, 0);
    return canvas;
  }

  put({ pixels, w, h, left, top, ratio, stamps }, i, group, alpha) {
    const key = (group + 2) * 64 + 2 * this.radii[i];
    let stamp = stamps[key];
    if (!stamp) stamp = stamps[key] = tabweave.stamp(group, this.groups.ordered, this.radii[i], ratio);
    const { cx, cy, unit } = this.view;
    const x = left + Math.round((this.width / 2 + (this.xs[i] - cx) * unit) * ratio);
    const y = top + Math.round((this.height / 2 - (this.ys[i] - cy) * unit) * ratio);
    const { dx, dy, cover, reach } = stamp;
    const cr = stamp.colour[0];
    const cg = stamp.colour[1];
    const cb = stamp.colour[2];
    if (x < -reach || y < -reach || x >= w + reach || y >= h + reach) return;
    const edge = x < reach || y < reach || x >= w - reach || y >= h - reach;
    const much = Math.round(alpha * 256);
    for (let k = 0; k < dx.length; k++) {
      const px = x + dx[k];
      const py = y + dy[k];
      if (edge && (px < 0 || py < 0 || px >= w || py >= h)) continue;
      const at = py * w + px;
      const a = (cover[k] * much) >> 8;
      const old = pixels[at];
      const r = old & 255;
      const g = (old >> 8) & 255;
      const b = (old >> 16) & 255;
      pixels[at] = 0xff000000 | ((b + (((cb - b) * a) >> 8)) << 16) | ((g + (((cg - g) * a) >> 8)) << 8) | (r + (((cr - r) * a) >> 8));
    }
  }

  /* What is written over the marks: how many rows are one mark, names of clusters, rings, the lasso. */
  write(context) {
    const font = (size, bold) => `${bold ? 700 : 400} ${size}px ${tabweave.colour("--sans")}`;
    const label = (text, x, y, size, bold) => {
      context.font = font(size, bold);
      context.lineWidth = 3.5;
      context.lineJoin = "round";
      context.strokeStyle = tabweave.colour("--surface");
      context.fillStyle = tabweave.colour("--ink");
      context.strokeText(text, x, y);
      context.fillText(text, x, y);
    };
    context.textAlign = "left";
    context.textBaseline = "middle";
    let written = 0;
    if (this.piles.size && this.m.rows.length <= 5000)
      for (const [i, all] of this.piles) {
        const [x, y] = this.pixel(i);
        if (x < 0 || y < 0 || x > this.width || y > this.height || written++ > 300) continue;
        label(String(all.length), x + this.size(this.weight(i)) + 2, y - 5, 11, true);
      }
    if (this.named && this.nameButton) this.writeNames(label, context);
    context.textAlign = "left";
    if (this.cursor !== null && this.isFocused()) this.ring(context, this.cursor, true);
    for (const [row, text] of this.options.rings ? this.options.rings() : this.cursor === null ? [] : [[this.m.rows[this.cursor], ""]]) {
      const i = this.indexOf(row);
      if (i < 0) continue;
      const [x, y] = this.ring(context, i, false);
      if (text) label(text, Math.min(x + 15, this.width - 12), Math.max(y - 9, 14), 14, true);
    }
    if (this.lasso && this.lasso.length > 1) {
      context.beginPath();
      this.lasso.forEach(([x, y], k) => context[k ? "lineTo" : "moveTo"](x, y));
      context.setLineDash([5, 4]);
      context.lineWidth = 1.6;
      context.strokeStyle = tabweave.colour("--ink");
      context.stroke();
      context.setLineDash([]);
    }
  }

  indexOf(row) {
    if (!this.byRow) this.byRow = new Map(this.m.rows.map((r, i) => [r, i]));
    return this.byRow.has(row) ? this.byRow.get(row) : -1;
  }

  isFocused() { return this.canvas.getRootNode().activeElement === this.canvas; }

  /* The mark of each cluster that is nearest to its median: there its name stands. */
  findMiddles() {
    const every = Math.max(1, Math.floor(this.m.rows.length / 20000));
    return this.d.clusters.groups.map((_, k) => {
      const own = [];
      for (let i = 0; i < this.m.rows.length; i += every) if (this.m.clusters[i] === k) own.push(i);
      if (!own.length) return null;
      const [x, y] = [this.xs, this.ys].map((list) => Float64Array.from(own, (i) => list[i]).sort()[Math.floor(own.length / 2)]);
      const far = (i) => (this.xs[i] - x) ** 2 + (this.ys[i] - y) ** 2;
      const nearest = own.reduce((best, i) => (far(i) < far(best) ? i : best));
      return [this.xs[nearest], this.ys[nearest]];
    });
  }

  writeNames(label, context) {
    const taken = (this.written = []);
    context.textAlign = "center";
    if (!this.middles) this.middles = this.findMiddles();
    for (let k = 0; k < this.middles.length; k++) {
      if (!this.middles[k]) continue;
      const [mx, my] = this.middles[k];
      const { cx, cy, unit } = this.view;
      const text = tabweave.clusterTitle(this.d, k, Math.max(20, Math.min(44, Math.floor(this.width / 15))));
      context.font = `700 12px ${tabweave.colour("--sans")}`;
      const half = context.measureText(text).width / 2 + 4;
      const x = Math.min(Math.max(this.width / 2 + (mx - cx) * unit, half), Math.max(half, this.width - half));
      const [at, above] = [this.height / 2 - (my - cy) * unit, this.m.rows.length < 500 ? 18 : 0];
      const wanted = Math.min(Math.max(at - above < 12 ? at + above : at - above, 12), this.height - 12);
      const free = (y) => y >= 12 && y <= this.height - 12 && !taken.some(([tx, ty, th]) => Math.abs(ty - y) < 16 && Math.abs(tx - x) < th + half);
      const steps = Array.from({ length: Math.ceil(this.height / 16) }, (_, i) => 16 * i);
      const y = steps.flatMap((step) => [wanted + step, wanted - step]).find(free) ?? wanted;
      taken.push([x, y, half]);
      label(text, x, y, 12, true);
    }
  }

  ring(context, i, dash) {
    const [x, y] = this.pixel(i);
    for (const [colour, line] of [["--surface", 5], ["--ink", 2]]) {
      context.beginPath();
      context.setLineDash(dash && line === 2 ? [4, 3] : []);
      context.arc(x, y, this.size(this.weight(this.head[i])) + 6, 0, 2 * Math.PI);
      context.strokeStyle = tabweave.colour(colour);
      context.lineWidth = line;
      context.stroke();
    }
    context.setLineDash([]);
    return [x, y];
  }

  /* -- mouse, touch, keyboard -- */

  nearest(x, y, reach = Infinity) {
    let [best, least] = [-1, reach * reach];
    for (const i of this.heads) {
      const [px, py] = this.pixel(i);
      const apart = (px - x) ** 2 + (py - y) ** 2;
      if (apart < least && (this.piles.get(i) || [i]).some((j) => this.shows(j))) [best, least] = [i, apart];
    }
    return best;
  }

  where(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  /* A finger drags the map only where that cannot be meant for the page. */
  touch() {
    const held = this.lassoing || (this.view && this.view.unit > 1.01 * this.fitted);
    this.canvas.style.setProperty("touch-action", held ? "none" : "manipulation");
  }

  listen() {
    const held = new Map();
    let [from, moved, pinch] = [null, 0, 0];
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      held.set(event.pointerId, this.where(event));
      try { canvas.setPointerCapture(event.pointerId); } catch { /* a pointer that is gone already */ }
      [from, moved] = [this.where(event), 0];
      this.lasso = this.lassoing || event.shiftKey ? [from] : null;
      this.hover(null);
    });
    canvas.addEventListener("pointermove", (event) => {
      const now = this.where(event);
      if (!held.size) { this.hover(now); return; }
      const before = held.get(event.pointerId);
      if (!before) return;
      held.set(event.pointerId, now);
      moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
      if (held.size === 2) {
        const [a, b] = [...held.values()];
        const apart = Math.hypot(a[0] - b[0], a[1] - b[1]);
        if (pinch) this.zoom(apart / pinch, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
        pinch = apart;
      } else if (this.lasso) { this.lasso.push(now); this.draw(); } else if (moved > 4) this.pan(now[0] - before[0], now[1] - before[1]);
    });
    const end = (event) => {
      if (!held.delete(event.pointerId)) return;
      pinch = 0;
      if (this.lasso) {
        const polygon = this.lasso;
        this.lasso = null;
        if (polygon.length > 3) { this.chosen = null; this.select(this.inside(polygon)); this.arm(false); return; }
      }
      if (event.type === "pointerup" && moved <= 4 && !held.size) this.click(from);
      this.touch();
    };
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, end);
    canvas.addEventListener("pointerleave", () => this.hover(null));
    canvas.addEventListener("wheel", (event) => {
      if (!(event.ctrlKey || event.metaKey || this.options.wheel || this.isFocused())) return; // else the page scrolls
      event.preventDefault();
      this.zoom(Math.exp(-Math.max(-120, Math.min(120, event.deltaY)) / 300), ...this.where(event));
      this.touch();
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
    for (const name of ["blur", "focus"]) canvas.addEventListener(name, () => this.draw());
  }

  click([x, y]) {
    const i = this.nearest(x, y, 24);
    if (i < 0) return;
    // Another click on the same mark goes on to the next of its rows.
    const pile = (this.piles.get(i) || [i]).filter((j) => this.shows(j));
    const at = pile.indexOf(this.cursor);
    this.go(pile[(at + 1) % pile.length]);
    this.choose();
  }

  key(event) {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    const act = {
      "+": () => this.zoom(1.4), "=": () => this.zoom(1.4), "-": () => this.zoom(1 / 1.4), "0": () => this.fit(true),
      PageDown: () => this.next(1), PageUp: () => this.next(-1), Home: () => this.next(0), End: () => this.next(-Infinity),
      Enter: () => this.choose(), " ": () => this.choose(), Escape: () => { this.lasso = null; this.select(null); },
    }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || !(way || act)) return;
    event.preventDefault();
    if (way) this.go(this.step(way));
    else act();
  }

  /* The next row that is shown, in the order of the route; 0 is the first, -Infinity the last. */
  next(by, choose) {
    const route = this.route();
    const n = route.length;
    let k = by === 0 ? 0 : by === -Infinity ? n - 1 : this.cursor === null ? (by > 0 ? 0 : n - 1) : (this.stop[this.cursor] + by + n) % n;
    const way = by === -Infinity || by < 0 ? -1 : 1;
    for (let tries = 0; tries < n && !this.shows(route[k]); tries++) k = (k + way + n) % n;
    this.go(route[k]);
    if (choose) this.choose();
  }

  /* The nearest mark that lies more in the direction of the arrow than across it. */
  step([wx, wy]) {
    if (this.cursor === null) return this.nearest(this.width / 2, this.height / 2);
    let [best, least] = [this.cursor, Infinity];
    const [x, y] = [this.xs[this.cursor], this.ys[this.cursor]];
    for (const i of this.heads) {
      const [dx, dy] = [this.xs[i] - x, this.ys[i] - y];
      const along = dx * wx + dy * wy;
      const across = Math.abs(dx * wy) + Math.abs(dy * wx);
      if (along > 0 && across <= 2 * along && along + 2 * across < least) {
        const shown = (this.piles.get(i) || [i]).find((j) => this.shows(j));
        if (shown !== undefined) [best, least] = [shown, along + 2 * across];
      }
    }
    return best;
  }

  go(i) {
    if (i === undefined || i < 0) return;
    this.cursor = i;
    const [x, y] = this.pixel(i);
    if (x < 8 || y < 8 || x > this.width - 8 || y > this.height - 8) this.view = { cx: this.xs[i], cy: this.ys[i], unit: this.view.unit };
    const pile = this.piles.get(this.head[i]);
    this.says.textContent = `Row ${tabweave.rowOf(this.m, i)}${pile ? `, ${pile.indexOf(i) + 1} of ${pile.length} rows at this point` : ""}: ${this.cells(i, 6)}`;
    if (this.options.look) this.options.look(i);
    this.draw();
  }

  choose() { if (this.cursor !== null && this.options.pick) this.options.pick(this.cursor); }

  cell(column, i) {
    if (column.numbers) return column.numbers[i] === null ? null : tabweave.number(column.numbers[i], 6);
    return column.texts ? column.texts[i] : column.codes[i] < 0 ? null : column.labels[column.codes[i]];
  }

  cells(i, most) {
    const shown = this.m.columns.slice(0, most).map((c) => `${c.name} ${tabweave.text(this.cell(c, i))}`);
    return shown.join(", ") + (this.m.columns.length > most ? ", …" : "");
  }

  hover(at) {
    const i = at ? this.nearest(...at, 12) : -1;
    this.tip.hidden = i < 0;
    if (i < 0) return;
    const rows = this.piles.get(i) || [i];
    const copies = this.weight(i);
    tabweave.fill(this.tip, tabweave.el("b", {}, rows.length > 1 ? `${rows.length} distinct rows here` : `Row ${tabweave.rowOf(this.m, i)}`),
      copies > rows.length ? ` (${tabweave.plural(copies, "row")})` : null,
      this.m.columns.slice(0, 8).map((c) => {
        const values = [...new Set(rows.slice(0, 50).map((j) => tabweave.text(this.cell(c, j))))];
        return tabweave.el("div", {}, tabweave.el("span", { class: "quiet" }, `${c.name} `), values.slice(0, 3).join(", ") + (values.length > 3 ? ", …" : ""));
      }), this.m.columns.length > 8 ? tabweave.el("div", { class: "quiet" }, `and ${tabweave.plural(this.m.columns.length - 8, "column")} more`) : null);
    const [x, y] = this.pixel(i);
    this.tip.style.setProperty("left", `${Math.max(4, x > this.width / 2 ? x - this.tip.offsetWidth - 14 : x + 14)}px`);
    this.tip.style.setProperty("top", `${Math.max(4, Math.min(y, this.height - this.tip.offsetHeight - 4))}px`);
  }
};

/* -- looking at a row, at a selection, and the map in numbers ----------------------------------- */

tabweave.inspect = (into, map, i) => {
  const { m, d } = map;
  const pile = map.piles.get(map.head[i]);
  const copies = m.copies[i] > 1 ? `, and ${tabweave.plural(m.copies[i] - 1, "row")} like it` : "";
  tabweave.fill(into,
    tabweave.el("h3", {}, `Row ${tabweave.rowOf(m, i)}`),
    tabweave.el("p", { class: "quiet small" }, d.clusters ? `In cluster ${tabweave.letter(m.clusters[i])}${copies}.` : copies ? `${copies.slice(2)}.` : null),
    pile ? tabweave.el("p", { class: "small" }, `${pile.length} distinct rows lie here: `, pile.slice(0, 40).map((j, k) => [k ? ", " : "",
      tabweave.el("button", { type: "button", class: "link", "aria-pressed": String(j === i), onclick: () => map.go(j) }, tabweave.whole(m.rows[j]))]), pile.length > 40 ? ", …" : null) : null,
    tabweave.el("dl", {}, m.columns.map((c) => [tabweave.el("dt", {}, tabweave.value(c.name)), tabweave.el("dd", {}, tabweave.value(map.cell(c, i)))])));
};

/* What the rows of a selection have more often than all rows on the map. */
tabweave.standsOut = (map, indices) => {
  const { m } = map;
  const [here, all] = [indices.reduce((n, i) => n + m.copies[i], 0), m.copies.reduce((n, k) => n + k, 0)];
  const found = [];
  for (const column of m.columns) {
    const { names, of } = column.numbers ? tabweave.ranges(column.numbers) : { names: column.labels, of: column.codes };
    const count = (list) => { const out = new Map(); for (const i of list) out.set(of[i], (out.get(of[i]) || 0) + m.copies[i]); return out; };
    const [own, total] = [count(indices), count(of.map((_, i) => i))];
    for (const [code, n] of own) {
      const [share, overall] = [n / here, total.get(code) / all];
      const chance = Math.sqrt(here * overall * (1 - overall) * (1 - here / all));
      if (share / overall >= 1.2 && share >= 0.05 && chance > 0 && (n - here * overall) / chance > 3)
        found.push({ column: column.name, value: code < 0 ? null : names[code], share, overall, lift: share / overall });
    }
  }
  found.sort((a, b) => b.share * Math.log(b.lift) - a.share * Math.log(a.lift));
  const heads = [{ name: "value" }, { name: "here", number: true }, { name: "overall", number: true }, { name: "times", number: true }];
  return [
    tabweave.el("h3", {}, `${tabweave.plural(here, "row")} selected`),
    tabweave.el("p", { class: "quiet small" }, `${tabweave.plural(indices.length, "mark")}, ${tabweave.percent(here / all)} of the rows on the map.`),
    found.length ? tabweave.table("What the selected rows have more often than all", heads, found.slice(0, 10).map((v) => [
      [tabweave.el("span", { class: "quiet" }, tabweave.value(v.column)), " ", tabweave.value(v.value)],
      [tabweave.percent(v.share), tabweave.bar(v.share, v.overall)], tabweave.percent(v.overall), `${v.lift.toFixed(v.lift < 10 ? 1 : 0)}×`]), { classes: "over" })
      : tabweave.el("p", { class: "quiet" }, "Nothing stands out; these rows are much like all others."),
    tabweave.el("p", { class: "acts" }, tabweave.el("button", { type: "button", class: "tool", onclick: () => tabweave.saveRows(map, indices) }, "Save as CSV"), " ",
      tabweave.el("button", { type: "button", class: "tool", onclick: () => map.select(null) }, "Let go")),
  ];
};

tabweave.saveRows = (map, indices) => {
  const { m } = map;
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const plain = (c, i) => (c.numbers ? (c.numbers[i] === null ? "" : String(c.numbers[i])) : map.cell(c, i) ?? "");
  const lines = [["row", ...(m.ids ? ["id"] : []), "copies", ...m.columns.map((c) => c.name)], ...indices.slice().sort((a, b) => m.rows[a] - m.rows[b]).map((i) => [String(m.rows[i]), ...(m.ids ? [m.ids[i] ?? ""] : []), String(m.copies[i]), ...m.columns.map((c) => plain(c, i))])];
  tabweave.save(new Blob([lines.map((line) => line.map(quoted).join(",")).join("\n") + "\n"], { type: "text/csv" }), "selected-rows.csv");
};

tabweave.save = (blob, name) => {
  const link = tabweave.el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};

tabweave.mapTable = (map, name) => {
  const { names, of, rest } = map.groups;
  const groups = new Map();
  of.forEach((group, i) => { if (!groups.has(group)) groups.set(group, []); groups.get(group).push(i); });
  const rows = [...names.map((label, i) => [i, tabweave.value(label)]), [-1, rest], [-2, tabweave.value(null)]]
    .filter(([group]) => groups.has(group))
    .map(([group, label]) => {
      const own = groups.get(group);
      const middle = [map.xs, map.ys].map((list) => own.reduce((sum, i) => sum + list[i], 0) / own.length);
      const apart = Math.sqrt(own.reduce((sum, i) => sum + (map.xs[i] - middle[0]) ** 2 + (map.ys[i] - middle[1]) ** 2, 0) / own.length);
      return [label, tabweave.whole(own.length), tabweave.number(middle[0]), tabweave.number(middle[1]), tabweave.number(apart)];
    });
  return tabweave.table(`Where the rows of each value of ${name} lie`, [{ name }, { name: "marks", number: true },
    { name: "centre across", number: true }, { name: "centre up", number: true }, { name: "distance from it", number: true }], rows);
};
