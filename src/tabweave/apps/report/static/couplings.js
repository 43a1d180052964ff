/* Which columns depend on each other: a circle of columns, a line for each coupling. */

tabweave.sections.push({
  id: "couplings", title: "Couplings of columns",
  draw: (d) => {
    const c = d.couplings;
    if (!c) return [tabweave.el("p", { class: "empty" }, d.method ? "There is only one column." : tabweave.nothingLeft)];
    const intro = tabweave.el("p", {},
      "How strongly two columns hang together in the rows that have both: Cramér's V less what chance brings. " +
      "0 is independent; at 1 one tells the other. Numbers take part in ten bins. The tests are below, of the same strengths.");
    if (!c.pairs.length)
      return [intro, tabweave.el("p", { class: "empty" }, "No two columns depend on each other.")];
    const table = (part, caption) => tabweave.table(caption, heads, part.map(line), { classes: "pairs" });
    const heads = [{ name: "column" }, { name: "with" }, { name: "strength", number: true }];
    const line = (p) => [tabweave.value(p.a), tabweave.value(p.b), [p.strength.toFixed(3), tabweave.bar(p.strength)]];
    const first = table(c.pairs.slice(0, 12), "The strongest couplings");
    const all = c.pairs.length > 12 ? tabweave.more(`${c.pairs.length < c.found ? "The" : "All"} ${c.pairs.length} ${c.pairs.length < c.found ? "strongest" : "couplings"} listed`, () => table(c.pairs, "Couplings, strongest first")) : null;
    if (c.matrix) return [intro, tabweave.couplingMatrix(c), first, all];
    const stage = tabweave.el("div", { class: "stage" });
    const ties = tabweave.mostTies(c);
    const few = [c.nodes.length < c.of ? `the ${c.nodes.length} most coupled of ${c.of} columns` : null,
      ties < c.pairs.length ? `the ${ties} strongest couplings` : null].filter((words) => words);
    const drawn = few.length ? tabweave.el("p", { class: "quiet small centred" }, `Drawn: ${few.join(", ")}.`) : null;
    tabweave.onLook(stage, (width) => tabweave.circle(stage, Math.min(width, 560), c, d.target));
    return [intro, tabweave.el("div", { class: "two" }, tabweave.el("div", {}, stage, drawn), tabweave.el("div", {}, first, all))];
  },
});

/* Many columns: a cell for each pair, like columns side by side. */
tabweave.couplingMatrix = (c) => {
  const names = c.nodes.map((node) => node.name);
  const caption = `Couplings of ${names.length < c.of ? `the ${names.length} most coupled of ${c.of}` : `all ${c.of}`} columns; dark is strong`;
  return [tabweave.heat(caption, names, c.matrix, 1, (i, j) => `${names[i]} – ${names[j]}: ${i === j ? 1 : c.matrix[i][j]}`), tabweave.el("p", { class: "quiet small" }, `${caption}.`)];
};

/* More lines than these hide each other. */
tabweave.mostTies = (c) => Math.min(c.pairs.length, Math.max(12, 2 * c.nodes.length));

/* With `open`, pairs and columns can be opened: {pair: (a, b) => …, column: (name) => …}. */
tabweave.circle = (stage, width, c, target, open) => {
  // Room for most names; the few longest ones are cut short.
  const lengths = c.nodes.map((node) => node.name.length).sort((a, b) => a - b);
  const long = lengths[Math.floor(0.85 * (lengths.length - 1))];
  const margin = Math.max(56, Math.min(width * 0.26, long * 7 + 24));
  const radius = width / 2 - margin;
  const spokes = c.nodes.length > 14; // names along the radius, where side by side they would collide
  const high = 2 * radius + (spokes ? 2 * margin : 72);
  const [cx, cy] = [width / 2, high / 2];
  const room = (name) => (spokes ? margin - 14 : { start: width - name.x, end: name.x, middle: 2 * Math.min(name.x, width - name.x) }[name["text-anchor"]] - 2);
  const place = new Map(c.nodes.map((node, i) => {
    const angle = (2 * Math.PI * (i + 0.5)) / c.nodes.length - Math.PI / 2;
    return [node.name, { angle, x: cx + radius * Math.cos(angle), y: cy + radius * Math.sin(angle) }];
  }));
  const most = tabweave.mostTies(c);
  const lines = c.pairs.filter((p) => place.has(p.a) && place.has(p.b)).slice(0, most).reverse().map((p) => {
    const [a, b] = [place.get(p.a), place.get(p.b)];
    const t = Math.sqrt(p.strength); // on an absolute scale: weak is thin, whatever else there is
    const line = tabweave.svg("path", {
      d: `M${a.x} ${a.y}Q${cx + (a.x + b.x - 2 * cx) * 0.2} ${cy + (a.y + b.y - 2 * cy) * 0.2} ${b.x} ${b.y}`,
      "stroke-width": (0.6 + 7 * t).toFixed(2), class: open ? "tie can" : "tie", onclick: open ? () => open.pair(p.a, p.b) : null,
    }, tabweave.svg("title", {}, `${p.a} – ${p.b}: ${p.strength.toFixed(3)}`));
    line.style.setProperty("--o", (0.12 + 0.68 * t).toFixed(3));
    return { line, pair: p };
  });
  const light = (name) => lines.forEach(({ line, pair }) => {
    line.classList.toggle("lit", name === pair.a || name === pair.b);
    line.classList.toggle("dim", name !== null && name !== pair.a && name !== pair.b);
  });
  const names = c.nodes.map((node) => (spokes ? tabweave.spoke : tabweave.beside)(place.get(node.name)));
  const nodes = c.nodes.map((node, i) => {
    const p = place.get(node.name);
    const best = c.pairs.filter((q) => q.a === node.name || q.b === node.name).slice(0, 3)
      .map((q) => `${q.a === node.name ? q.b : q.a} ${q.strength.toFixed(2)}`);
    const said = `${node.name}: ${best.length ? "coupled with " + best.join(", ") : "coupled with nothing"}`;
    return tabweave.svg("g", {
      class: node.name === target ? "node target" : "node", tabindex: i ? "-1" : "0", role: open ? "button" : "img", "aria-label": said,
      onclick: open ? () => open.column(node.name) : null, onkeydown: open ? (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open.column(node.name); } } : null,
      onmouseenter: () => light(node.name), onmouseleave: () => light(null),
      onfocus: () => light(node.name), onblur: () => light(null),
    },
    tabweave.svg("title", {}, said),
    node.name === target
      ? tabweave.svg("rect", { x: p.x - 6, y: p.y - 6, width: 12, height: 12, transform: `rotate(45 ${p.x} ${p.y})` })
      : tabweave.svg("circle", { cx: p.x, cy: p.y, r: 5.5 }),
    tabweave.svg("text", { "dominant-baseline": "central", ...names[i] }, tabweave.shorten(node.name, 30)));
  });
  const graph = tabweave.svg("svg", {
    viewBox: `0 0 ${width} ${high}`, width, height: high, class: "circle", role: "group",
    "aria-label": "Graph of the couplings; arrow keys go round. The table beside it lists them.",
    onkeydown: (event) => tabweave.goRound(event, nodes),
  }, lines.map(({ line }) => line), nodes);
  stage.replaceChildren(graph);
  tabweave.cutTexts(graph.querySelectorAll("text"), c.nodes.map((node) => node.name), (i) => room(names[i]));
};

/* One stop of the Tab key for the whole circle; arrow keys go from column to column. */
tabweave.goRound = (event, nodes) => {
  const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const at = nodes.indexOf(document.activeElement);
  if (!way || at < 0) return;
  event.preventDefault();
  const next = nodes[(at + way + nodes.length) % nodes.length];
  nodes[at].setAttribute("tabindex", "-1");
  next.setAttribute("tabindex", "0");
  next.focus();
};

/* Where a name stands: beside its mark, or turned so that it leads away from the centre. */
tabweave.beside = (p) => {
  const across = Math.cos(p.angle);
  const side = Math.abs(across) < 0.12 ? "middle" : across > 0 ? "start" : "end";
  return { x: p.x + 13 * across, y: p.y + 15 * Math.sin(p.angle), "text-anchor": side };
};

tabweave.spoke = (p) => {
  const left = Math.cos(p.angle) < 0;
  const turn = (p.angle * 180) / Math.PI + (left ? 180 : 0);
  const [x, y] = [p.x + 13 * Math.cos(p.angle), p.y + 13 * Math.sin(p.angle)];
  return { x, y, "text-anchor": left ? "end" : "start", transform: `rotate(${turn} ${x} ${y})` };
};
