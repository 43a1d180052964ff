/* The table under the map: any number of rows, of which those in sight are asked for. */

studio.ROW = 26;          // pixels a row
studio.PAGE = 100;        // rows asked for at once
studio.TALLEST = 15e6;    // pixels a browser scrolls; longer tables are scrolled in larger steps

studio.Grid = class {
  constructor() {
    this.pages = new Map();
    this.turn = 0;
    this.columns = [];
    this.total = 0;
    this.active = { line: 0, column: 0 };
    this.head = tabweave.el("div", { class: "line heads", role: "row", "aria-rowindex": "1" });
    this.body = tabweave.el("div", { class: "lines", role: "rowgroup" });
    this.tall = tabweave.el("div", { class: "tall" }, this.body);
    this.frame = tabweave.el("div", {
      class: "frame-of-rows", role: "grid", tabindex: "0", "aria-label": "Rows of the table; arrow keys go from cell to cell, Enter opens the column of a cell",
      onscroll: () => this.later(), onkeydown: (event) => this.key(event), onfocus: () => this.point(), 
    }, tabweave.el("div", { role: "rowgroup", class: "gridtop" }, this.head), this.tall);
    this.scope = tabweave.chooser("Rows", ["in view", "all", "selection"], (i) => studio.set({ scope: ["view", "all", "selection"][i] }));
    this.said = tabweave.el("span", { class: "quiet small", role: "status" });
    this.special = tabweave.el("label", { class: "small" }, tabweave.el("input", { type: "checkbox", checked: true, onchange: (event) => { this.telling = event.target.checked; this.reload(); } }), " Telling columns first");
    this.telling = true;
    this.root = [tabweave.el("p", { class: "gridbar" }, this.scope, this.special, this.said), this.frame];
    this.body.addEventListener("click", (event) => this.press(event));
    this.body.addEventListener("pointerover", (event) => {
      const line = event.target.closest(".line");
      studio.set({ hover: line ? Number(line.dataset.row) : null });
    });
    this.body.addEventListener("pointerleave", () => studio.set({ hover: null }));
    new ResizeObserver(() => this.later()).observe(this.frame);
  }

  where() {
    const { scope } = studio.state;
    return scope === "all" ? [] : studio.where({ filters: scope === "view" });
  }

  /* Everything anew: filters, order, or the table have changed. */
  async reload() {
    const turn = ++this.turn;
    const filters = this.where();
    const order = filters.length && this.telling ? await studio.ofTable("differences", { a: filters, b: null }).catch(() => null) : null;
    if (turn !== this.turn) return;
    const names = studio.state.table.columns.map((c) => c.name);
    const first = order ? order.columns.filter((c) => c.strength > 0).map((c) => c.column) : [];
    this.columns = [...new Set([...first, ...names])].filter((name) => names.includes(name));
    this.kinds = new Map(studio.state.table.columns.map((c) => [c.name, c.type]));
    this.special.hidden = !filters.length;
    this.pages = new Map();
    this.filters = filters;
    await this.ask(0, turn);
    if (turn !== this.turn) return;
    this.frame.scrollTop = 0;
    this.active = { line: 0, column: 0 };
    this.drawHead();
    this.draw();
  }

  async ask(page, turn) {
    if (this.pages.has(page)) return;
    this.pages.set(page, null);
    const answer = await studio.ofTable("rows", { filters: this.filters, sort: studio.state.sort, offset: page * studio.PAGE, limit: studio.PAGE, columns: this.columns });
    if (turn !== this.turn) return;
    this.pages.set(page, answer.rows);
    this.total = answer.total;
    const all = studio.state.table.rows;
    this.said.textContent = answer.total === all ? tabweave.plural(all, "row") : `${tabweave.whole(answer.total)} of ${tabweave.plural(all, "row")}`;
    this.frame.setAttribute("aria-rowcount", String(answer.total + 1));
    this.frame.setAttribute("aria-colcount", String(this.columns.length + 1));
    this.height = Math.min(studio.TALLEST, this.total * studio.ROW);
    this.tall.style.setProperty("height", `${this.height}px`);
  }

  drawHead() {
    const [order] = studio.state.sort;
    const named = studio.state.table.names && studio.state.table.names.length;
    const head = (name, shown, i) => tabweave.el("div", { class: this.classes(name), role: "columnheader", "aria-colindex": String(i + 1), "aria-sort": order && order.column === name ? (order.descending ? "descending" : "ascending") : "none" },
      tabweave.el("button", { type: "button", class: "sort", tabindex: "-1", title: `Sort by ${shown}`, onclick: () => this.sort(name) }, shown));
    tabweave.fill(this.head, head("#", named ? studio.state.table.names.join(" – ") : "row", 0), this.columns.map((name, i) => head(name, name, i + 1)));
  }

  classes(name) {
    const type = this.kinds && this.kinds.get(name);
    return `cell${name === "#" ? " first" : ""}${type === "number" || type === "integer" ? " num" : ""}`;
  }

  sort(name) {
    const [order] = studio.state.sort;
    const now = order && order.column === name ? order : null;
    studio.set({ sort: now && now.descending ? [] : [{ column: name, descending: Boolean(now) }] });
  }

  /* Draw at the next frame. */
  later() {
    if (this.asked) return;
    this.asked = requestAnimationFrame(() => { this.asked = 0; this.draw(); });
  }

  /* The number of the first line in sight. */
  first() {
    const room = this.frame.clientHeight - this.head.offsetHeight;
    const scrolled = Math.max(1, this.height - room);
    const lines = Math.max(0, this.total - Math.floor(room / studio.ROW));
    return this.height < studio.TALLEST ? Math.floor(this.frame.scrollTop / studio.ROW) : Math.round((this.frame.scrollTop / scrolled) * lines);
  }

  draw() {
    if (!this.total) { tabweave.fill(this.body, this.filters ? tabweave.el("div", { role: "row", class: "line" }, tabweave.el("div", { role: "gridcell", class: "cell" }, "No row passes the filters.")) : null); return; }
    const first = this.first();
    const count = Math.ceil(this.frame.clientHeight / studio.ROW) + 2;
    const last = Math.min(this.total, first + count);
    const top = this.height < studio.TALLEST ? first * studio.ROW : this.frame.scrollTop;
    this.body.style.setProperty("transform", `translateY(${top}px)`);
    const turn = this.turn;
    for (let page = Math.floor(first / studio.PAGE); page <= Math.floor(Math.max(first, last - 1) / studio.PAGE); page++)
      if (!this.pages.has(page)) this.ask(page, turn).then(() => { if (turn === this.turn) this.later(); }, studio.problem);
    const lines = [];
    for (let k = first; k < last; k++) {
      const page = this.pages.get(Math.floor(k / studio.PAGE));
      lines.push(this.line(k, page ? page[k % studio.PAGE] : null));
    }
    tabweave.fill(this.body, lines);
    this.light();
    this.point();
  }

  line(k, found) {
    if (!found) return tabweave.el("div", { class: "line", role: "row", "aria-rowindex": String(k + 2) }, tabweave.el("div", { class: "cell first quiet", role: "gridcell" }, "…"));
    const name = found.name ? [found.name, tabweave.el("span", { class: "quiet" }, ` ${tabweave.whole(found.row)}`)] : tabweave.whole(found.row);
    const id = (c) => `cell-${k}-${c}`;
    return tabweave.el("div", { class: "line", role: "row", "aria-rowindex": String(k + 2), "data-row": found.row, "data-line": k },
      tabweave.el("div", { class: "cell first", role: "rowheader", id: id(0), "data-c": 0, "aria-colindex": "1" }, name),
      found.cells.map((value, c) => tabweave.el("div", { class: value === null ? `${this.classes(this.columns[c])} missing` : this.classes(this.columns[c]), role: "gridcell", id: id(c + 1), "data-c": c + 1, "aria-colindex": String(c + 2), title: studio.cellText(value) }, studio.cellText(value))));
  }

  /* Rows that are pointed at on the map, or looked at. */
  light() {
    const { hover, picked } = studio.state;
    const [map] = studio.maps;
    const marks = map && map.m.markOf && hover !== null ? map.m.markOf[hover] : -2;
    for (const line of this.body.children) {
      const row = Number(line.dataset.row);
      line.classList.toggle("pointed", row === hover || (marks >= 0 && map.m.markOf[row] === marks));
      line.classList.toggle("picked", picked.includes(row));
    }
  }

  press(event) {
    const cell = event.target.closest(".cell");
    const line = event.target.closest(".line");
    if (!cell || !line || line.dataset.row === undefined) return;
    this.active = { line: Number(line.dataset.line), column: Number(cell.dataset.c) };
    this.point();
    this.open(Number(line.dataset.row), Number(cell.dataset.c));
  }

  /* The row's name leads to the row, a cell to its column. */
  open(row, c) {
    if (c === 0) studio.look(row);
    else studio.set({ ...studio.looked(row), column: this.columns[c - 1], tab: "column" });
  }

  key(event) {
    if (event.target !== this.frame) return;
    const { line, column } = this.active;
    const page = Math.floor(this.frame.clientHeight / studio.ROW) - 2;
    const move = {
      ArrowDown: [line + 1, column], ArrowUp: [line - 1, column], ArrowRight: [line, column + 1], ArrowLeft: [line, column - 1], PageDown: [line + page, column],
      PageUp: [line - page, column], Home: [event.ctrlKey ? 0 : line, 0], End: [event.ctrlKey ? this.total - 1 : line, this.columns.length],
    }[event.key];
    if (event.key === "Enter" || event.key === " ") {
      const cells = this.pages.get(Math.floor(line / studio.PAGE));
      const found = cells && cells[line % studio.PAGE];
      if (found) this.open(found.row, column);
      event.preventDefault();
    } else if (event.key.toLowerCase() === "s" && !event.ctrlKey && !event.metaKey) this.sort(column ? this.columns[column - 1] : "#");
    else if (move) {
      event.preventDefault();
      this.active = { line: Math.max(0, Math.min(this.total - 1, move[0])), column: Math.max(0, Math.min(this.columns.length, move[1])) };
      this.reach();
    }
  }

  /* Bring the active cell into sight. */
  reach() {
    const { line } = this.active;
    const room = Math.floor((this.frame.clientHeight - this.head.offsetHeight) / studio.ROW) - 1;
    const first = this.first();
    const to = line < first ? line : line > first + room - 1 ? line - room + 1 : first;
    if (to !== first) this.frame.scrollTop = this.height < studio.TALLEST ? to * studio.ROW : (to / Math.max(1, this.total - room)) * this.height;
    this.draw();
    const cell = byId(`cell-${line}-${this.active.column}`);
    if (cell) cell.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  point() {
    for (const cell of this.body.querySelectorAll(".active")) cell.classList.remove("active");
    const cell = byId(`cell-${this.active.line}-${this.active.column}`);
    if (cell) { cell.classList.add("active"); this.frame.setAttribute("aria-activedescendant", cell.id); } else this.frame.removeAttribute("aria-activedescendant");
  }

  /* Where a row stands that was chosen on the map, if the table has its own order. */
  go(row) {
    for (const [page, rows] of this.pages) {
      const at = rows ? rows.findIndex((r) => r.row === row) : -1;
      if (at >= 0) { this.active = { line: page * studio.PAGE + at, column: 0 }; this.reach(); return; }
    }
    if (!this.filters.length && !studio.state.sort.length) { this.active = { line: row, column: 0 }; this.reach(); }
  }
};

studio.grid = new studio.Grid();
tabweave.fill(byId("grid"), studio.grid.root);
studio.on(["table", "filters", "selection", "sort", "scope"], (state) => {
  studio.grid.scope.querySelector("select").value = ["view", "all", "selection"].indexOf(state.scope);
  clearTimeout(studio.grid.waits); // a brush that moves on: the map comes first
  if (state.table) studio.grid.waits = setTimeout(studio.attempt(() => studio.grid.reload()), studio.grid.total ? 150 : 0);
  else { studio.grid.total = 0; studio.grid.filters = null; studio.grid.draw(); }
});
studio.on(["hover", "picked"], () => studio.grid.light());
studio.on(["row"], (state) => { if (state.row !== null && state.table) studio.grid.go(state.row); });
