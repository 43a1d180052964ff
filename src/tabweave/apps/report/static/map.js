/* The map of rows: one component for reports, the studio, `tabweave map` and notebooks.

   One unit is as long across as it is up, whatever the shape of the page, so what lies twice as far
   is twice as far. Marks are stamped into pixels, or poured where they are dense: a million of them
   move with the mouse, without a graphics card. Rows at one point are one mark with their number,
   and every one of them can be reached by keyboard. */

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
  const own = d.clusters ? [{ title: "cluster", clusters: true, column: { name: "cluster", labels: tabweave.clusterNames(d), codes: m.clusters, fixed: true } }] : [];
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

/* What rows are told apart by: the eight most frequent values, values in their order, or five
   ranges of a number. `of` has a group for each mark: -1 for all other values, -2 for missing. */
tabweave.groups = (column) => {
  if (column.numbers) return tabweave.ranges(column.numbers, { date: column.date });
  const counts = column.labels.map(() => 0);
  for (const code of column.codes) if (code >= 0) counts[code]++;
  const order = counts.map((_, i) => i).slice(0, column.others ? -1 : undefined); // the last stands for many
  if (!column.fixed && !column.ordered) order.sort((a, b) => counts[b] - counts[a] || a - b);
  const kept = order.slice(0, order.length <= 8 ? 8 : 7);
  const index = new Int8Array(column.labels.length).fill(-1);
  kept.forEach((code, i) => { index[code] = i; });
  const names = kept.map((code) => column.labels[code]);
  const of = Int8Array.from(column.codes, (code) => (code < 0 ? (column.rest ? -1 : -2) : index[code]));
  return { names, of, ordered: Boolean(column.ordered) && kept.length <= 5, rest: column.rest || "other values" };
};

tabweave.ranges = (numbers, options) => {
  const { whole = false, date = false } = options || {};
  const is = (x) => x !== null && !Number.isNaN(x);
  const present = Float64Array.from(numbers.filter(is)).sort();
  const edges = [...new Set([1, 2, 3, 4].map((q) => present[Math.floor((q * present.length) / 5)]))]
    .filter((edge) => edge !== undefined && edge > present[0]);
  let digits = 4; // as many as tell the edges apart
  while (digits < 15 && new Set(edges.map((edge) => tabweave.number(edge, digits))).size < edges.length) digits++;
  const show = date ? tabweave.date : whole ? tabweave.whole : (x) => tabweave.number(x, digits);
  const step = !date && present.every(Number.isInteger) ? 1 : 0; // 3 to 4 are whole numbers below 5
  const range = (low, high) => (show(low) === show(high) ? show(low) : `${show(low)} to ${show(high)}`);
  const names = edges.length ? [`${date ? "before" : "<"} ${show(edges[0])}`,
    ...edges.slice(1).map((edge, i) => range(edges[i], edge - step)),
    `${date ? "from" : "≥"} ${show(edges[edges.length - 1])}`] : [present.length ? show(present[0]) : "none"];
  const of = new Int8Array(numbers.length);
  for (let i = 0; i < of.length; i++) {
    const x = numbers[i];
    if (!is(x)) { of[i] = -2; continue; }
    for (const edge of edges) if (x >= edge) of[i]++;
  }
  return { names, of, ordered: true };
};
/* Milliseconds since 1970 as a day. */
tabweave.date = (time) => new Date(time).toISOString().slice(0, 10);

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

/* The first of the marks at each point, for each mark. */
tabweave.heads = (xs, ys) => {
  const n = xs.length;
  const [bx, by] = [xs, ys].map((list) => new Int32Array(Float32Array.from(list).buffer));
  let size = 2;
  while (size < 2 * n) size *= 2;
  const table = new Int32Array(size).fill(-1);
  const head = new Int32Array(n);
  for (let i = 0; i < n; i++) {
    let slot = (Math.imul(bx[i], 0x9e3779b1) ^ Math.imul(by[i], 0x85ebca6b)) >>> 0;
    slot = (slot ^ (slot >>> 15)) & (size - 1);
    while (table[slot] >= 0 && (bx[table[slot]] !== bx[i] || by[table[slot]] !== by[i])) slot = (slot + 1) & (size - 1);
    if (table[slot] < 0) table[slot] = i;
    head[i] = table[slot];
  }
  return head;
};

/* Marks in the order in which they are drawn: small ones over large ones. */
tabweave.largestFirst = (heads, halves) => {
  const counts = new Int32Array(257);
  for (const i of heads) counts[256 - halves[i]]++;
  for (let k = 1; k < 257; k++) counts[k] += counts[k - 1];
  const order = new Int32Array(heads.length);
  for (let k = heads.length - 1; k >= 0; k--) order[--counts[256 - halves[heads[k]]]] = heads[k];
  return order;
};

/* More marks than these in sight hide each other. */
tabweave.MAX_STAMPS = 50000;

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

tabweave.mark = (context, group, ordered, radius, mixed) => {
  context.beginPath();
  if (group < 0) context.arc(0, 0, radius * (group === -1 ? 0.6 : 0.8), 0, 2 * Math.PI);
  else tabweave.SHAPES[group](context, radius);
  const shade = tabweave.colour(tabweave.shadeName(group, ordered));
  if (group === -2) { context.strokeStyle = shade; context.lineWidth = 1.3; context.stroke(); return; }
  if (mixed && group !== 5) { context.moveTo(0.5 * radius, 0); context.arc(0, 0, 0.5 * radius, 0, 2 * Math.PI); }
  context.fillStyle = shade;
  context.fill(mixed ? "evenodd" : "nonzero"); // the middle stays open; that of a cross, too
};
tabweave.shadeName = (group, ordered) => (group < 0 ? "--others" : ordered ? `--s${group}` : `--c${group}`);

tabweave.canvas = (width, height, ratio) => {
  const canvas = tabweave.el("canvas", { "aria-hidden": "true" });
  [canvas.width, canvas.height] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  return canvas;
};

tabweave.glyph = (group, ordered, mixed) => {
  const ratio = window.devicePixelRatio || 1;
  const canvas = tabweave.canvas(18, 18, ratio);
  canvas.setAttribute("class", "glyph");
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 9 * ratio, 9 * ratio);
  tabweave.mark(context, group, ordered, 5.4, mixed);
  return canvas;
};

/* A mark as pixels: how far from its middle, and how much of the pixel it covers. */
tabweave.stamp = (group, ordered, radius, ratio, mixed) => {
  const reach = Math.ceil(1.5 * radius * ratio) + 1;
  const canvas = tabweave.canvas(2 * reach + 1, 2 * reach + 1, 1);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.setTransform(ratio, 0, 0, ratio, reach + 0.5, reach + 0.5);
  tabweave.mark(context, group, ordered, radius, mixed);
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
    Object.assign(this, { d, m, options: options || {}, layout: 0, colour: (options && options.start) || 0, lit: new Set(), matches: null, chosen: null, passing: null, cursor: null, lasso: null, lassoing: false, named: true });
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
    return tabweave.el("div", { class: "choosers maptools" }, this.options.bare ? null : [this.colourChooser, this.layoutChooser, this.search],
      tabweave.el("span", { class: "toolset", role: "group", "aria-label": "View" }, button("+", "Zoom in", () => this.zoom(1.5)),
        button("−", "Zoom out", () => this.zoom(1 / 1.5)), button("Fit", "Fit all rows into the view", () => this.fit(true)), this.lassoButton, this.nameButton));
  }

  /* -- where marks lie -- */

  lay() {
    const { points, flat } = this.m.layouts[this.layout];
    const n = this.m.rows.length;
    this.xs = flat ? new Float32Array(n) : Float64Array.from(points, (p) => p[0]);
    this.ys = flat ? new Float32Array(n) : Float64Array.from(points, (p) => p[1]);
    if (flat) for (let i = 0; i < n; i++) { this.xs[i] = flat[2 * i]; this.ys[i] = flat[2 * i + 1]; }
    this.head = tabweave.heads(this.xs, this.ys);
    this.piles = new Map(); // first row at a point → all rows there
    const sizes = Float64Array.from(this.m.copies);
    let distinct = 0;
    for (let i = 0; i < n; i++) {
      const first = this.head[i];
      if (first === i) { distinct++; continue; }
      sizes[first] += this.m.copies[i];
      if (this.piles.has(first)) this.piles.get(first).push(i);
      else this.piles.set(first, [first, i]);
    }
    this.heads = new Int32Array(distinct);
    for (let i = 0, k = 0; i < n; i++) if (this.head[i] === i) this.heads[k++] = i;
    this.weight = (i) => (this.head[i] === i ? sizes[i] : this.m.copies[i]);
    this.halves = new Uint8Array(n); // radii in half pixels
    for (const i of this.heads) this.halves[i] = Math.round(2 * this.size(sizes[i]));
    this.order = tabweave.largestFirst(this.heads, this.halves);
    this.tour = this.middles = this.bins = this.layer = null;
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

  /* Show all marks; a few that lie far out do not squeeze the rest: they are told of, and shown when
     it is pressed again. */
  fit(redraw) {
    const every = Math.max(1, Math.floor(this.xs.length / 20000));
    const spans = [this.xs, this.ys].map((list) => {
      let [low, high] = [Infinity, -Infinity];
      for (const v of list) { if (v < low) low = v; if (v > high) high = v; }
      const drawn = Float64Array.from({ length: Math.ceil(list.length / every) }, (_, i) => list[i * every]).sort();
      const [first, last] = [drawn[Math.floor(0.005 * drawn.length)], drawn[Math.ceil(0.995 * drawn.length) - 1]];
      const near = (last - first) * 1.2;
      return { low, high, isFar: drawn.length >= 200 && high - low > 2.5 * near && near > 0, from: first - near / 12, to: last + near / 12 };
    });
    const trimmed = spans.some((span) => span.isFar) && !(redraw && this.trimmed);
    const [[cx, dx], [cy, dy]] = spans.map(({ low, high, from, to, isFar }) => (trimmed && isFar ? [(from + to) / 2, to - from] : [(low + high) / 2, high - low]));
    const pad = 2 * (this.size(1) + 14);
    const unit = Math.min((this.width - pad) / (dx || 1e-9), (this.height - pad) / (dy || 1e-9));
    this.view = { cx, cy, unit: Number.isFinite(unit) && unit < 1e9 && unit > 0 ? unit : 1 };
    this.fitted = this.view.unit;
    this.trimmed = trimmed;
    if (trimmed) {
      let out = 0;
      for (const i of this.heads) { const [x, y] = this.pixel(i); if (x < 0 || y < 0 || x > this.width || y > this.height) out++; }
      if (out) this.says.textContent = `${tabweave.plural(out, "mark")} far out ${out === 1 ? "is" : "are"} not in view; press Fit to see all.`;
    }
    if (redraw) this.draw();
  }

  pixel(i) {
    const { cx, cy, unit } = this.view;
    return [this.width / 2 + (this.xs[i] - cx) * unit, this.height / 2 - (this.ys[i] - cy) * unit];
  }

  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const { cx, cy, unit } = this.view;
    const now = Math.min(Math.max(unit * factor, this.fitted * (this.trimmed ? 0.01 : 0.5)), this.fitted * 1e4);
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
    const [width, height] = [this.width, this.height];
    this.width = this.stage.clientWidth;
    const room = this.options.height ? this.options.height() : Math.min(560, Math.max(300, this.width * 0.72));
    this.height = Math.round(room);
    if (!this.width) return;
    const isSame = this.width === width && this.height === height && this.view;
    if (isSame) { this.draw(); return; } // other colours, perhaps
    if (!this.view || this.view.unit === this.fitted) this.fit(false); // else it stays where it was moved
    this.draw(true);
  }

  /* -- colours, filters, selections -- */

  async paint(i) {
    this.colour = i;
    const colour = this.colours[i];
    if (colour.load && !colour.column) { // of many marks: cells come when they are asked for
      const column = await colour.load();
      colour.column = column;
      if (this.colour !== i) return;
    }
    this.lit.clear();
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
    if (!colour.density && !colour.column) { this.paint(this.colour); return; }
    this.groups = colour.density ? tabweave.ranges(tabweave.density(this.xs, this.ys, this.m.copies), { whole: true }) : tabweave.groups(colour.column);
    this.judge();
    this.canvas.setAttribute("aria-label", `${this.options.name || "Map"} of ${tabweave.plural(this.m.rows.length, "row")} by ${this.m.layouts[this.layout].name}, coloured by ${colour.title}. ` +
      "Arrow keys go from mark to mark, Page Down through all rows, plus and minus zoom, 0 shows all, Enter chooses. The table below says the same in numbers.");
    this.drawLegend();
    this.table.replaceChildren(tabweave.more("The map as a table", () => tabweave.mapTable(this, colour.title)));
    if (!this.width) this.resize();
    else this.draw();
  }

  /* What each mark shows: the group that most of its rows are in, of those that are shown; whether
     it is mixed, that is more than a tenth of its rows are in other groups; -3: none is shown. */
  judge() {
    const { m, groups } = this;
    if (!groups) return; // not painted yet
    const n = m.rows.length;
    const { lit, matches, chosen, passing } = this;
    this.filtered = Boolean(lit.size || matches || chosen || passing);
    this.visible = this.filtered ? new Uint8Array(n) : null;
    if (this.filtered)
      for (let i = 0; i < n; i++)
        if ((!lit.size || lit.has(groups.of[i])) && (!matches || matches[i]) && (!chosen || chosen[i]) && (!passing || passing[i])) this.visible[i] = 1;
    const { mixed } = this.colours[this.colour].column || {};
    const shown = new Int8Array(n);
    this.mixed = new Uint8Array(n);
    for (const i of this.heads) {
      shown[i] = this.visible && !this.visible[i] ? -3 : groups.of[i];
      if (mixed && mixed[i] < 90) this.mixed[i] = 1;
    }
    for (const [first, all] of this.piles) {
      const counts = new Map();
      let total = 0;
      for (const i of all) {
        if (this.visible && !this.visible[i]) continue;
        const rows = passing ? passing[i] : m.copies[i];
        counts.set(groups.of[i], (counts.get(groups.of[i]) || 0) + rows);
        total += rows;
      }
      let [best, most] = [-3, 0];
      for (const [group, rows] of counts) if (rows > most) [best, most] = [group, rows];
      shown[first] = best;
      this.mixed[first] = best !== -3 && most < 0.9 * total ? 1 : 0;
    }
    this.colouring = shown;
    this.isMixed = this.mixed.includes(1);
    this.layer = null;
  }

  drawLegend() {
    const { names, of, ordered } = this.groups;
    const counts = new Map();
    const passing = new Map();
    of.forEach((group, i) => {
      counts.set(group, (counts.get(group) || 0) + this.m.copies[i]);
      if (this.passing) passing.set(group, (passing.get(group) || 0) + this.passing[i]);
    });
    const entries = names.map((name, i) => [i, tabweave.value(name)]).filter(([i]) => counts.get(i));
    if (counts.get(-1)) entries.push([-1, this.groups.rest]);
    if (counts.get(-2)) entries.push([-2, tabweave.value(null)]);
    const rows = (group) => (this.passing ? `${tabweave.whole(passing.get(group) || 0)} of ${tabweave.whole(counts.get(group))}` : tabweave.whole(counts.get(group)));
    this.legend.replaceChildren(...entries.map(([group, name]) => {
      const button = tabweave.el("button", { type: "button", "aria-pressed": String(this.lit.has(group)), title: tabweave.plural(counts.get(group), "row") },
        tabweave.glyph(group, ordered), tabweave.el("span", {}, name), tabweave.el("span", { class: "quiet" }, rows(group)));
      button.addEventListener("click", () => {
        if (!this.lit.delete(group)) this.lit.add(group);
        button.setAttribute("aria-pressed", String(this.lit.has(group)));
        this.judge();
        this.draw();
      });
      return tabweave.el("li", {}, button);
    }), this.isMixed ? tabweave.el("li", { class: "quiet small mixedkey" }, tabweave.glyph(0, ordered, true), "with a hole: mixed, drawn as most of its rows are") : "");
  }

  /* Rows that pass the filters of a page, by mark; null: all do. */
  filter(passing) {
    this.passing = passing;
    if (!this.groups) return; // not painted yet
    this.judge();
    this.drawLegend();
    this.draw();
  }

  /* Text is looked for in columns of text, a number in numbers and among the numbers of rows;
     `column=value` in that column. */
  find(text) {
    const wanted = text.trim().toLowerCase();
    this.matches = null;
    if (wanted) {
      const { m } = this;
      this.matches = new Uint8Array(m.rows.length);
      const [, name, value] = wanted.match(/^([^=]+)=(.*)$/) || [];
      const column = name === undefined ? null : m.columns.find((c) => c.name.toLowerCase() === name.trim());
      const number = Number(wanted.replaceAll(",", ""));
      if (column) this.match(column, value.trim(), true);
      else if (Number.isFinite(number)) {
        m.rows.forEach((row, i) => { if (row === number) this.matches[i] = 1; });
        if (!this.matches.includes(1)) for (const c of m.columns) this.match(c, wanted, false);
      } else for (const c of m.columns) if (!c.numbers) this.match(c, wanted, false);
      if (m.ids && !column) m.ids.forEach((id, i) => { if (id !== null && String(id).toLowerCase().includes(wanted)) this.matches[i] = 1; });
    }
    let n = 0;
    if (this.matches) this.matches.forEach((hit, i) => { n += hit * this.m.copies[i]; });
    this.judge();
    this.says.textContent = this.matches ? `${tabweave.plural(n, "row")} found.${n ? " Enter goes from one to the next." : ""}` : "";
    this.draw();
  }

  /* The marks whose cell in a column holds a part, or is the whole of it. */
  match(c, part, whole) {
    const { matches } = this;
    if (c.numbers) {
      const wanted = Number(part.replaceAll(",", "") || NaN);
      const digits = part.replace(/e.*|[^0-9]/g, "").replace(/^0+/, "").length;
      const near = Math.abs(wanted) * 5 * 10 ** -Math.max(digits, 6); // numbers may be shown with six digits
      const gap = whole && part === "missing";
      for (let i = 0; i < matches.length; i++) if (c.numbers[i] === null ? gap : Math.abs(c.numbers[i] - wanted) <= near) matches[i] = 1;
      return;
    }
    const gap = whole && part === "missing";
    if (c.texts) {
      c.lowered = c.lowered || c.texts.map((text) => (text === null ? null : text.toLowerCase()));
      c.lowered.forEach((text, i) => { if (text === null ? gap : whole ? text === part : text.includes(part)) matches[i] = 1; });
      return;
    }
    const good = c.labels.map((label) => { const text = tabweave.text(label).toLowerCase(); return whole ? text === part : text.includes(part); });
    for (let i = 0; i < matches.length; i++) if (c.codes[i] < 0 ? gap : good[c.codes[i]]) matches[i] = 1;
  }

  /* Whether a row is brought out, by the legend and by what is searched for. */
  shows(i) { return !this.visible || this.visible[i] === 1; }

  arm(on) {
    this.lassoing = on;
    this.lassoButton.setAttribute("aria-pressed", String(on));
    this.touch();
  }

  select(indices) {
    this.chosen = indices && indices.length ? new Uint8Array(this.m.rows.length) : null;
    if (this.chosen) for (const i of indices) this.chosen[i] = 1;
    this.says.textContent = this.chosen ? `${tabweave.plural(indices.length, "mark")} selected. Escape lets them go.` : "";
    this.judge();
    this.draw();
    if (this.options.select) this.options.select(this.chosen ? indices : null);
  }

  inside(polygon) {
    const out = [];
    const [left, top] = [0, 1].map((axis) => Math.min(...polygon.map((p) => p[axis])));
    const [right, bottom] = [0, 1].map((axis) => Math.max(...polygon.map((p) => p[axis])));
    const { cx, cy, unit } = this.view;
    for (let i = 0; i < this.xs.length; i++) {
      const x = this.width / 2 + (this.xs[i] - cx) * unit;
      const y = this.height / 2 - (this.ys[i] - cy) * unit;
      if (x < left || x > right || y < top || y > bottom || !this.shows(i)) continue;
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
    const small = n > 200000 ? 1.2 : n > 20000 ? 1.7 : n > 5000 ? 2.2 : n > 1000 ? 2.8 : n > 200 ? 3.6 : 5;
    return small + Math.min(n > 200000 ? 1.5 : n > 5000 ? 3 : 7, Math.log2(i) / (n > 200000 ? 3 : 1));
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
    const { layer, x, y, zoom } = this.findLayer(w, h, ratio);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = tabweave.colour("--surface");
    context.fillRect(0, 0, w, h);
    context.imageSmoothingEnabled = zoom !== 1;
    context.drawImage(layer.canvas, x, y, w / zoom, h / zoom, 0, 0, w, h);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.write(context);
  }

  /* The image of all marks, where the view begins in it, and how much larger it is seen. It reaches
     beyond the view, so a map that is dragged moves its image. While a map that takes long to draw
     is zoomed, the image grows or shrinks; the marks follow when the hand rests. */
  findLayer(w, h, ratio) {
    const { cx, cy, unit } = this.view;
    const before = this.layer;
    const surface = tabweave.colour("--surface");
    if (before && before.w === w && before.h === h && before.ratio === ratio && before.surface === surface) {
      const zoom = unit / before.unit;
      const middle = [before.left + w / 2 + (cx - before.cx) * before.unit * ratio, before.top + h / 2 - (cy - before.cy) * before.unit * ratio];
      const x = middle[0] - w / 2 / zoom;
      const y = middle[1] - h / 2 / zoom;
      if (zoom === 1 && x >= 0 && y >= 0 && x <= 2 * before.left && y <= 2 * before.top) return { layer: before, x: Math.round(x), y: Math.round(y), zoom };
      if (before.took > 12 && zoom !== 1 && zoom < 8 && zoom > 0.2 && !this.rested) {
        clearTimeout(this.resting);
        this.resting = setTimeout(() => { this.rested = true; this.draw(); }, 120);
        return { layer: before, x, y, zoom };
      }
    }
    this.rested = false;
    clearTimeout(this.resting);
    const [left, top] = [Math.round(w / 4), Math.round(h / 4)];
    const start = performance.now();
    const canvas = this.drawLayer(w, h, left, top, ratio);
    this.layer = { w, h, ratio, unit, surface, cx, cy, left, top, canvas, took: performance.now() - start };
    return { layer: this.layer, x: left, y: top, zoom: 1 };
  }

  /* All marks that lie in the layer: as stamps, or, where they would only hide each other, as how
     many lie in each place and what they are. */
  drawLayer(w, h, left, top, ratio) {
    const [wide, high] = [w + 2 * left, h + 2 * top];
    const canvas = this.sheet && this.sheet.width === wide && this.sheet.height === high ? this.sheet : tabweave.canvas(wide, high, 1);
    this.sheet = canvas;
    const context = canvas.getContext("2d");
    if (!this.image || this.image.width !== wide || this.image.height !== high) this.image = context.createImageData(wide, high);
    const pixels = new Uint32Array(this.image.data.buffer);
    const [r, g, b] = tabweave.rgb("--surface");
    pixels.fill(0xff000000 | (b << 16) | (g << 8) | r);
    const into = { pixels, w: wide, h: high, left, top, ratio, stamps: [] };
    const near = this.within(into);
    if (near.length > tabweave.MAX_STAMPS) this.pour(into, near);
    else this.stampAll(into, near);
    context.putImageData(this.image, 0, 0);
    return canvas;
  }

  /* The marks that lie in the layer, largest first. */
  within({ left, top, ratio }) {
    const { cx, cy, unit } = this.view;
    const [dx, dy] = [(left / ratio + 12) / unit + this.width / 2 / unit, (top / ratio + 12) / unit + this.height / 2 / unit];
    if (!this.room || this.room.length < this.order.length) this.room = new Int32Array(this.order.length);
    let n = 0;
    const { xs, ys, order, room } = this;
    for (let k = 0; k < order.length; k++) {
      const i = order[k];
      if (Math.abs(xs[i] - cx) < dx && Math.abs(ys[i] - cy) < dy) room[n++] = i;
    }
    return room.subarray(0, n);
  }

  stampAll(into, near) {
    const { colouring, m } = this;
    const alpha = m.rows.length > 20000 ? 0.6 : 0.85;
    for (const dim of this.filtered ? [true, false] : [false])
      for (const i of near) {
        if ((colouring[i] === -3) !== dim) continue;
        const group = dim ? this.groups.of[i] : colouring[i];
        this.put(into, i, group, dim ? 0.13 : group < 0 ? 0.6 : alpha, this.mixed[i]);
      }
  }

  /* Density: cells of two pixels take the mean colour of their marks, the stronger the more there are. */
  pour({ pixels, w, h, left, top, ratio }, near) {
    const side = 2;
    const [across, down] = [Math.ceil(w / side), Math.ceil(h / side)];
    const size = across * down;
    if (!this.poured || this.poured.counts.length !== size) this.poured = { counts: new Float32Array(size), faint: new Float32Array(size), r: new Float32Array(size), g: new Float32Array(size), b: new Float32Array(size) };
    const { counts, faint, r, g, b } = this.poured;
    for (const list of Object.values(this.poured)) list.fill(0);
    const shades = Array.from({ length: 11 }, (_, k) => tabweave.rgb(tabweave.shadeName(Math.max(-2, k - 3), this.groups.ordered)));
    const { cx, cy, unit } = this.view;
    const { xs, ys, colouring } = this;
    const scale = (unit * ratio) / side;
    const [x0, y0] = [(left + (this.width * ratio) / 2) / side - cx * scale, (top + (this.height * ratio) / 2) / side + cy * scale];
    for (let k = 0; k < near.length; k++) {
      const i = near[k];
      const x = (x0 + xs[i] * scale) | 0;
      const y = (y0 - ys[i] * scale) | 0;
      if (x < 0 || y < 0 || x >= across || y >= down) continue;
      const at = y * across + x;
      const group = colouring[i];
      if (group === -3) { faint[at]++; continue; }
      const shade = shades[group + 3];
      counts[at]++;
      r[at] += shade[0]; g[at] += shade[1]; b[at] += shade[2];
    }
    let most = 1;
    for (let k = 0; k < size; k += 7) if (counts[k] > most) most = counts[k];
    const strength = 0.62 / Math.log(1 + most);
    const [sr, sg, sb] = tabweave.rgb("--surface");
    const [qr, qg, qb] = tabweave.rgb("--others");
    for (let y = 0; y < down; y++)
      for (let x = 0; x < across; x++) {
        const at = y * across + x;
        const n = counts[at];
        if (!n && !faint[at]) continue;
        const a = n ? 0.38 + strength * Math.log(1 + n) : 0.13;
        const [cr, cg, cb] = n ? [r[at] / n, g[at] / n, b[at] / n] : [qr, qg, qb];
        const pixel = 0xff000000 | ((sb + (cb - sb) * a) << 16) | ((sg + (cg - sg) * a) << 8) | (sr + (cr - sr) * a);
        const first = y * side * w + x * side;
        pixels[first] = pixel;
        if (x * side + 1 < w) pixels[first + 1] = pixel;
        if (y * side + 1 < h) { pixels[first + w] = pixel; if (x * side + 1 < w) pixels[first + w + 1] = pixel; }
      }
  }

  put({ pixels, w, h, left, top, ratio, stamps }, i, group, alpha, mixed) {
    const key = ((group + 2) * 64 + this.halves[i]) * 2 + mixed;
    let stamp = stamps[key];
    if (!stamp) stamp = stamps[key] = tabweave.stamp(group, this.groups.ordered, this.halves[i] / 2, ratio, mixed);
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
    if (this.named && this.nameButton && this.colours[this.colour].clusters) this.writeNames(label, context);
    context.textAlign = "left";
    if (this.cursor !== null && this.isFocused()) this.ring(context, this.cursor, true);
    for (const i of this.near || []) this.ring(context, i, true);
    if (this.pointed >= 0) this.ring(context, this.pointed, false);
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

  /* The mark of a row; -1: it is not drawn. */
  indexOf(row) {
    if (this.m.markOf) return this.m.markOf[row] ?? -1;
    if (!this.byRow) this.byRow = new Map(Array.from(this.m.rows, (r, i) => [r, i]));
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
      const [ax, ay] = [this.width / 2 + (mx - cx) * unit, at];
      if (ax < -20 || ay < -20 || ax > this.width + 20 || ay > this.height + 20) continue; // its cluster is out of sight
      const y = [0, 16, -16, 32, -32, 48, -48].map((step) => wanted + step).find(free);
      if (y === undefined) continue; // a name that is not beside its cluster names another one
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
    for (const i of this.around(x, y, reach)) {
      const [px, py] = this.pixel(i);
      const apart = (px - x) ** 2 + (py - y) ** 2;
      if (apart < least && (this.piles.get(i) || [i]).some((j) => this.shows(j))) [best, least] = [i, apart];
    }
    return best;
  }

  /* Marks within reach and some more: those of the cells around, where there are many. */
  around(x, y, reach) {
    if (this.heads.length < 20000 || reach === Infinity) return this.heads;
    const side = 300;
    if (!this.bins) {
      let [left, low, right, high] = [Infinity, Infinity, -Infinity, -Infinity];
      for (const i of this.heads) { left = Math.min(left, this.xs[i]); right = Math.max(right, this.xs[i]); low = Math.min(low, this.ys[i]); high = Math.max(high, this.ys[i]); }
      const [across, up] = [(right - left) / side || 1, (high - low) / side || 1];
      const cell = (i) => Math.min(side - 1, Math.floor((this.ys[i] - low) / up)) * side + Math.min(side - 1, Math.floor((this.xs[i] - left) / across));
      const starts = new Int32Array(side * side + 1);
      for (const i of this.heads) starts[cell(i) + 1]++;
      for (let k = 1; k < starts.length; k++) starts[k] += starts[k - 1];
      const [fill, list] = [starts.slice(), new Int32Array(this.heads.length)];
      for (const i of this.heads) list[fill[cell(i)]++] = i;
      this.bins = { left, low, across, up, starts, list };
    }
    const { left, low, across, up, starts, list } = this.bins;
    const { cx, cy, unit } = this.view;
    const [px, py, r] = [cx + (x - this.width / 2) / unit, cy - (y - this.height / 2) / unit, reach / unit];
    const at = (v) => Math.max(0, Math.min(side - 1, Math.floor(v)));
    const out = [];
    for (let row = at((py - r - low) / up); row <= at((py + r - low) / up); row++)
      for (let k = starts[row * side + at((px - r - left) / across)]; k < starts[row * side + at((px + r - left) / across) + 1]; k++) out.push(list[k]);
    return out;
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
    if (!this.shows(route[k])) return; // nothing was found
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
    const say = (name, cells) => {
      if (this.cursor === i) this.says.textContent = `${name}${pile ? `, ${pile.indexOf(i) + 1} of ${pile.length} rows at this point` : ""}: ${cells.slice(0, 6).map(([n, text]) => `${n} ${text}`).join(", ")}${cells.length > 6 ? ", …" : ""}`;
    };
    say(`Row ${tabweave.rowOf(this.m, i)}`, this.cells([i]));
    if (this.options.describe) this.options.describe([i]).then((found) => { if (found) say(found.name, found.cells); });
    if (this.options.look) this.options.look(i);
    this.draw();
  }

  choose() { if (this.cursor !== null && this.options.pick) this.options.pick(this.cursor); }

  cell(column, i) {
    if (column.numbers) return column.numbers[i] === null ? null : tabweave.number(column.numbers[i], 6);
    return column.texts ? column.texts[i] : column.codes[i] < 0 ? null : column.labels[column.codes[i]];
  }

  /* The columns of marks, and the values they have there. */
  cells(marks) {
    return this.m.columns.map((c) => {
      const values = [...new Set(marks.slice(0, 50).map((j) => tabweave.text(this.cell(c, j))))];
      return [c.name, values.slice(0, 3).join(", ") + (values.length > 3 ? ", …" : "")];
    });
  }

  hover(at) {
    const i = at ? this.nearest(...at, 12) : -1;
    if (this.options.hover && i !== this.hovered) this.options.hover(i);
    if (i >= 0 && i === this.hovered) return;
    this.hovered = i;
    this.tip.hidden = i < 0;
    if (i < 0) return;
    const marks = (this.piles.get(i) || [i]).filter((j) => this.shows(j));
    const rows = marks.reduce((sum, j) => sum + (this.passing ? this.passing[j] : this.m.copies[j]), 0);
    const fill = (name, cells) => {
      if (this.hovered !== i) return;
      tabweave.fill(this.tip, tabweave.el("b", {}, marks.length > 1 ? `${marks.length} distinct rows here` : name), rows > marks.length ? ` (${tabweave.plural(rows, "row")})` : null,
        marks.length > 1 ? this.shares(marks, rows) : null,
        cells.slice(0, 8).map(([column, text]) => tabweave.el("div", {}, tabweave.el("span", { class: "quiet" }, `${column} `), text)),
        cells.length > 8 ? tabweave.el("div", { class: "quiet" }, `and ${tabweave.plural(cells.length - 8, "column")} more`) : null);
      const [x, y] = this.pixel(i);
      this.tip.style.setProperty("left", `${Math.max(4, x > this.width / 2 ? x - this.tip.offsetWidth - 14 : x + 14)}px`);
      this.tip.style.setProperty("top", `${Math.max(4, Math.min(y, this.height - this.tip.offsetHeight - 4))}px`);
    };
    fill(`Row ${tabweave.rowOf(this.m, i)}`, this.cells(marks));
    if (this.options.describe) this.options.describe(marks).then((found) => { if (found) fill(found.name, found.cells); });
  }

  /* Of what the rows at a point are, where they are not all the same. */
  shares(marks, rows) {
    const { names, of, rest } = this.groups;
    const counts = new Map();
    for (const j of marks) counts.set(of[j], (counts.get(of[j]) || 0) + (this.passing ? this.passing[j] : this.m.copies[j]));
    if (counts.size < 2) return null;
    const name = (group) => (group === -2 ? "missing" : group === -1 ? rest : tabweave.text(names[group]));
    return tabweave.el("div", {}, [...counts].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([group, n]) => `${name(group)} ${tabweave.percent(n / rows)}`).join(", "));
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
    const [own, total] = [count(indices), count(of.keys())];
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
