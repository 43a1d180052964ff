/* The map of rows: colours and shapes by column, a row to look at, all of it by keyboard. */

tabweave.sections.push({
  id: "map", title: "Map of rows",
  draw: (d) => (d.map && d.map.rows.length ? tabweave.mapSection(d) : [tabweave.el("p", { class: "empty" }, "There are too few rows to map.")]),
});

tabweave.mapSection = (d) => {
  const m = d.map;
  const colours = [{ name: "cluster", labels: d.clusters.groups.map((_, i) => `cluster ${tabweave.letter(i)}`), codes: m.clusters },
    ...m.columns];
  if (d.target) colours.unshift(...colours.splice(1, 1)); // the target first
  const state = { layout: 0, groups: tabweave.groups(colours[0]), lit: null, at: null };
  const canvas = tabweave.el("canvas", { tabindex: "0", role: "img" });
  const stage = tabweave.el("div", { class: "stage map" }, canvas);
  const legend = tabweave.el("ul", { class: "legend", "aria-label": "Legend; press an entry to bring it out" });
  const inspector = tabweave.el("div", { class: "inspector", "aria-live": "polite" });
  const table = tabweave.el("div", {});
  let colour = 0;
  const redraw = () => tabweave.drawMap(canvas, stage.clientWidth, m, state);
  const look = (i) => { state.at = i; tabweave.inspect(inspector, d, i); redraw(); };
  const refresh = () => {
    state.groups = tabweave.groups(colours[colour]);
    state.lit = null;
    canvas.setAttribute("aria-label", `Map of ${m.rows.length} rows by ${m.layouts[state.layout].name}, coloured by ` +
      `${colours[colour].name}. Arrow keys go from row to row. The table below says the same in numbers.`);
    tabweave.legend(legend, state, redraw);
    table.replaceChildren(tabweave.more("The map as a table", () => tabweave.mapTable(m, state, colours[colour].name)));
    redraw();
  };
  canvas.addEventListener("click", (event) => look(tabweave.nearest(canvas, m, state, event)));
  canvas.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!way) return;
    event.preventDefault();
    look(tabweave.step(m.layouts[state.layout].points, state.at, way));
  });
  tabweave.inspect(inspector, d, null);
  requestAnimationFrame(() => { refresh(); tabweave.onLook(stage, redraw); });
  const choosers = [tabweave.chooser("Colour by", colours.map((c) => c.name), (i) => { colour = i; refresh(); })];
  if (m.layouts.length > 1)
    choosers.push(tabweave.chooser("Layout", m.layouts.map((l) => l.name), (i) => { state.layout = i; refresh(); }));
  const [across, up] = m.layouts[0].explained;
  const share = `The first axis holds ${tabweave.percent(across)} of the variance, the second ${tabweave.percent(up)}.`;
  const drawn = m.rows.length < m.of
    ? `${tabweave.whole(m.rows.length)} rows drawn at random, of ${tabweave.whole(m.of)} distinct ones. `
    : `All ${tabweave.whole(m.of)} distinct rows${m.copies.some((n) => n > 1) ? "; larger marks stand for many equal rows" : ""}. `;
  return [
    tabweave.el("p", {}, "Rows that are alike lie close together. ", tabweave.el("span", { class: "quiet" }, drawn, share)),
    tabweave.el("p", { class: "choosers" }, choosers),
    tabweave.el("div", { class: "mapframe" }, tabweave.el("div", {}, stage, legend), inspector),
    table,
  ];
};

/* What rows are told apart by: the seven most frequent values, or five ranges of a number. */
tabweave.groups = (column) => {
  if (column.numbers) return tabweave.ranges(column.numbers);
  const counts = column.labels.map(() => 0);
  for (const code of column.codes) if (code >= 0) counts[code]++;
  const order = counts.map((_, i) => i);
  if (column.name !== "cluster") order.sort((a, b) => counts[b] - counts[a] || a - b);
  const kept = order.slice(0, order.length <= 8 ? 8 : 7);
  const place = new Map(kept.map((code, i) => [code, i]));
  const names = kept.map((code) => column.labels[code]);
  const of = column.codes.map((code) => (code < 0 ? -2 : place.has(code) ? place.get(code) : -1));
  return { names, of, ordered: false };
};

tabweave.ranges = (numbers) => {
  const present = numbers.filter((x) => x !== null).sort((a, b) => a - b);
  const edges = [...new Set([1, 2, 3, 4].map((q) => present[Math.floor((q * present.length) / 5)]))]
    .filter((edge) => edge !== undefined && edge > present[0]);
  const names = edges.length ? [`< ${tabweave.number(edges[0])}`,
    ...edges.slice(1).map((edge, i) => `${tabweave.number(edges[i])} to ${tabweave.number(edge)}`),
    `≥ ${tabweave.number(edges[edges.length - 1])}`] : [present.length ? tabweave.number(present[0]) : "none"];
  const of = numbers.map((x) => (x === null ? -2 : edges.filter((edge) => x >= edge).length));
  return { names, of, ordered: true };
};

/* -- drawing --------------------------------------------------------------------------------- */

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
  const name = group < 0 ? "--others" : ordered ? `--s${group}` : `--c${group}`;
  if (group === -2) { context.strokeStyle = tabweave.shade(name); context.lineWidth = 1.3; context.stroke(); return; }
  context.fillStyle = tabweave.shade(name);
  context.fill();
};

tabweave.shades = {};
tabweave.shade = (name) => tabweave.shades[name] || (tabweave.shades[name] = tabweave.colour(name));

tabweave.frameOf = (points, width, height) => {
  const [xs, ys] = [points.map((p) => p[0]), points.map((p) => p[1])];
  const span = (list) => { const low = Math.min(...list); return [low, Math.max(...list) - low || 1]; };
  const [[x0, dx], [y0, dy]] = [span(xs), span(ys)];
  return (p) => [16 + ((p[0] - x0) / dx) * (width - 32), height - 16 - ((p[1] - y0) / dy) * (height - 32)];
};

tabweave.drawMap = (canvas, width, m, state) => {
  if (!width) return;
  tabweave.shades = {};
  const height = Math.round(Math.min(560, Math.max(300, width * 0.72)));
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.setProperty("width", `${width}px`);
  canvas.style.setProperty("height", `${height}px`);
  const context = canvas.getContext("2d");
  const { points } = m.layouts[state.layout];
  const at = tabweave.frameOf(points, width, height);
  const put = (i, radius) => {
    const [x, y] = at(points[i]);
    context.setTransform(ratio, 0, 0, ratio, x * ratio, y * ratio);
    tabweave.mark(context, state.groups.of[i], state.groups.ordered, radius);
  };
  const small = points.length > 1000 ? 2.8 : points.length > 200 ? 3.6 : 5;
  const size = (i) => small + Math.min(7, Math.log2(m.copies[i]));
  const order = points.map((_, i) => i).sort((a, b) => m.copies[b] - m.copies[a]);
  for (const i of order) {
    const group = state.groups.of[i];
    context.globalAlpha = state.lit !== null && state.lit !== group ? 0.08 : group < 0 ? 0.55 : 0.8;
    put(i, size(i));
  }
  context.globalAlpha = 1;
  if (state.at !== null) {
    put(state.at, size(state.at) + 1);
    context.beginPath();
    context.arc(0, 0, size(state.at) + 7, 0, 2 * Math.PI);
    context.strokeStyle = tabweave.shade("--ink");
    context.lineWidth = 2;
    context.stroke();
  }
};

tabweave.glyph = (group, ordered) => {
  const canvas = tabweave.el("canvas", { "aria-hidden": "true", class: "glyph" });
  const ratio = window.devicePixelRatio || 1;
  canvas.width = canvas.height = 18 * ratio;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 9 * ratio, 9 * ratio);
  tabweave.mark(context, group, ordered, 5.4);
  return canvas;
};

tabweave.legend = (list, state, redraw) => {
  const { names, of, ordered } = state.groups;
  tabweave.shades = {};
  const entries = names.map((name, i) => [i, tabweave.value(name)]);
  if (of.includes(-1)) entries.push([-1, "other values"]);
  if (of.includes(-2)) entries.push([-2, tabweave.value(null)]);
  list.replaceChildren(...entries.map(([group, name]) => {
    const button = tabweave.el("button", { type: "button", "aria-pressed": "false" },
      tabweave.glyph(group, ordered), tabweave.el("span", {}, name),
      tabweave.el("span", { class: "quiet" }, tabweave.whole(of.filter((g) => g === group).length)));
    button.addEventListener("click", () => {
      state.lit = state.lit === group ? null : group;
      for (const other of list.querySelectorAll("button")) other.setAttribute("aria-pressed", "false");
      button.setAttribute("aria-pressed", String(state.lit === group));
      redraw();
    });
    return tabweave.el("li", {}, button);
  }));
};

/* -- looking at a row ------------------------------------------------------------------------ */

tabweave.nearest = (canvas, m, state, event) => {
  const box = canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  const { points } = m.layouts[state.layout];
  const at = tabweave.frameOf(points, box.width, box.height);
  let [best, least] = [0, Infinity];
  points.forEach((p, i) => {
    const [px, py] = at(p);
    const apart = (px - x) ** 2 + (py - y) ** 2;
    if (apart < least) [best, least] = [i, apart];
  });
  return best;
};

/* The nearest point that lies more in the direction of the arrow than across it. */
tabweave.step = (points, from, [wx, wy]) => {
  if (from === null) return 0;
  let [best, least] = [from, Infinity];
  points.forEach((p, i) => {
    const [dx, dy] = [p[0] - points[from][0], p[1] - points[from][1]];
    const along = dx * wx + dy * wy;
    const across = Math.abs(dx * wy) + Math.abs(dy * wx);
    if (along > 1e-9 && across <= 2 * along && along + 2 * across < least) [best, least] = [i, along + 2 * across];
  });
  return best;
};

tabweave.inspect = (into, d, i) => {
  if (i === null) {
    into.replaceChildren(tabweave.el("p", { class: "quiet" }, "Choose a mark to see its row: click it, or focus the map and use the arrow keys."));
    return;
  }
  const m = d.map;
  const cell = (c) => (c.numbers ? (c.numbers[i] === null ? tabweave.value(null) : tabweave.number(c.numbers[i], 6))
    : tabweave.value(c.codes[i] < 0 ? null : c.labels[c.codes[i]]));
  const copies = m.copies[i] > 1 ? `, and ${tabweave.plural(m.copies[i] - 1, "row")} like it` : "";
  into.replaceChildren(
    tabweave.el("h3", {}, `Row ${tabweave.whole(m.rows[i])}`),
    tabweave.el("p", { class: "quiet small" }, `In cluster ${tabweave.letter(m.clusters[i])}${copies}.`),
    tabweave.el("dl", {}, m.columns.map((c) => [tabweave.el("dt", {}, tabweave.value(c.name)), tabweave.el("dd", {}, cell(c))])));
};

tabweave.mapTable = (m, state, name) => {
  const { names, of } = state.groups;
  const { points } = m.layouts[state.layout];
  const rows = [...names.map((label, i) => [i, tabweave.value(label)]), [-1, "other values"], [-2, tabweave.value(null)]]
    .map(([group, label]) => [label, points.filter((_, i) => of[i] === group)])
    .filter(([, own]) => own.length)
    .map(([label, own]) => {
      const middle = [0, 1].map((axis) => own.reduce((sum, p) => sum + p[axis], 0) / own.length);
      const spread = Math.sqrt(own.reduce((sum, p) => sum + (p[0] - middle[0]) ** 2 + (p[1] - middle[1]) ** 2, 0) / own.length);
      return [label, tabweave.whole(own.length), tabweave.number(middle[0]), tabweave.number(middle[1]), tabweave.number(spread)];
    });
  return tabweave.table(`Where the rows of each value of ${name} lie`, [{ name }, { name: "marks", number: true },
    { name: "centre across", number: true }, { name: "centre up", number: true }, { name: "spread", number: true }], rows);
};
