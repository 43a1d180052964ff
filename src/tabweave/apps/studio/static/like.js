/* Rows like this one, but …: a row as a card of cells that can be edited, must be equal, are ignored
   or weigh more, and the rows that are nearest to what the card says. The card stays where it is
   while its neighbours are looked at. */

const like = { card: null, near: [], cells: {}, row: null };

/* How much a column counts: by a weight, as a condition, or not at all. */
like.rules = [
  ["as it is", {}], ["half", { weight: 0.5 }], ["twice", { weight: 2 }], ["5 times", { weight: 5 }], ["20 times", { weight: 20 }],
  ["must be equal", { rule: "equal" }], ["not at all", { rule: "ignore" }],
];
like.others = [["not at all", {}], ["must be equal", { rule: "equal" }]];

like.change = (column, part) => {
  const before = studio.state.like.cells; // which the card may not show yet
  const cell = { ...before[column], ...part };
  for (const [key, value] of Object.entries(cell)) if (value === undefined) delete cell[key];
  const cells = { ...before };
  if (Object.keys(cell).length) cells[column] = cell;
  else delete cells[column];
  studio.set({ like: { row: like.row, cells } });
};

/* The text of an input as a cell of its column. */
like.read = (text, { type }) => {
  if (text === "") return null;
  if ((type === "number" || type === "integer") && /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text))
    return Number.isSafeInteger(Number(text)) || type === "number" ? Number(text) : text;
  if (type === "bool") return /^(true|yes|1)$/i.test(text);
  if (type === "set") return text.split(",").map((part) => part.trim()).filter(Boolean);
  return text;
};
like.write = (value) => (value === null || value === undefined ? "" : Array.isArray(value) ? value.join(", ") : String(value));

like.line = (cell, i) => {
  const { column } = cell;
  const said = like.cells[column] || {};
  const id = `like-value-${i}`;
  const options = tabweave.el("datalist", { id: `${id}-list` });
  const input = tabweave.el("input", {
    id, type: "text", list: `${id}-list`, spellcheck: "false", autocomplete: "off", "aria-label": `${column}, cell`, placeholder: "missing",
    disabled: !cell.compared && said.rule !== "equal",
    onfocus: () => like.offer(column, options, ""),
    oninput: () => like.offer(column, options, input.value),
    onchange: () => {
      const value = like.read(input.value.trim(), cell);
      like.change(column, { value: JSON.stringify(value) === JSON.stringify(cell.value) ? undefined : value });
    },
  });
  input.value = like.write("value" in said ? said.value : cell.value);
  const rules = cell.compared ? like.rules : like.others;
  const now = rules.findIndex(([, rule]) => (rule.rule || "") === (said.rule || "") && (rule.weight || 1) === (said.weight || 1));
  const rule = tabweave.el("select", {
    "aria-label": `${column} counts`, onchange: () => like.change(column, { rule: undefined, weight: undefined, ...rules[Number(rule.value)][1] }),
  }, rules.map(([text], at) => tabweave.el("option", { value: at, selected: at === Math.max(0, now) }, text)));
  const edited = "value" in said ? tabweave.el("span", { class: "hidden" }, "edited") : null;
  return tabweave.el("tr", { class: "value" in said ? "edited" : null }, tabweave.el("th", { scope: "row", title: column }, tabweave.value(column), edited), tabweave.el("td", {}, input, options), tabweave.el("td", {}, rule));
};

/* The most frequent values that hold what is typed. */
like.offer = async (column, options, text) => {
  const found = await studio.latest(`like-${column}`, () => studio.ofTable("values", { column, text: text.trim(), limit: 30 })).catch(() => null);
  if (found) tabweave.fill(options, found.values.map(({ value }) => tabweave.el("option", { value: like.write(value) })));
};

like.drawCard = (into) => {
  const { card } = like;
  const edited = Object.keys(like.cells).length;
  const lines = card.cells.map(like.line);
  const [compared, others] = [true, false].map((is) => lines.filter((_, i) => card.cells[i].compared === is));
  const table = (caption, part) => tabweave.el("table", { class: "like-cells" }, tabweave.el("caption", { class: "hidden" }, caption),
    tabweave.el("thead", {}, tabweave.el("tr", {}, ["column", "cell", "counts"].map((name) => tabweave.el("th", { scope: "col" }, name)))), tabweave.el("tbody", {}, part));
  tabweave.fill(into,
    tabweave.el("h3", {}, "Rows like ", tabweave.el("bdi", {}, studio.rowText(card.row, card.name)), edited ? ", but …" : null),
    tabweave.el("details", { open: like.open || edited > 0, class: "like-card" },
      tabweave.el("summary", {}, edited ? `The card: ${tabweave.plural(edited, "column")} changed` : "The card: edit cells, weights and rules"),
      tabweave.el("div", { class: "like-scroll", role: "region", tabindex: "0", "aria-label": "The cells of the row, to be edited" }, table("The cells of the row", compared)),
      others.length ? tabweave.more(`${tabweave.plural(others.length, "column")} that rows are not compared by`, () => table("Columns that rows are not compared by", others)) : null));
  into.querySelector("details").addEventListener("toggle", (event) => { like.open = event.target.open; });
};

/* -- the rows that are near -------------------------------------------------------------------- */

like.find = studio.attempt(async () => {
  const body = { row: like.row, cells: like.cells, k: 20, filters: like.filtered ? studio.where() : [] };
  byId("like-says").textContent = "Looking for rows …";
  const found = await studio.latest("like", () => studio.ofJob("like", body)).catch((error) => { byId("like-says").textContent = ""; throw error; });
  if (!found) return;
  like.near = found.near;
  like.drawNear(found);
  studio.set({ nearMarks: found.near.filter((one) => !one.is_anchor && one.mark !== null).map((one) => one.mark) }, { history: false });
});

like.drawNear = (found) => {
  const others = found.near.filter((one) => !one.is_anchor);
  const anchor = found.near.find((one) => one.is_anchor);
  const same = anchor && anchor.copies > 1 ? `${tabweave.plural(anchor.copies - 1, "row")} ${anchor.copies > 2 ? "are" : "is"} equal to it. ` : "";
  const among = found.passing < studio.state.table.rows ? `Among ${tabweave.plural(found.passing, "row")} that pass. ` : "";
  byId("like-says").textContent = others.length ? `${same}${among}` : `${same}No row passes what must be equal.`;
  const lines = others.map((one) => {
    const shares = Object.entries(one.shares).filter(([, share]) => share >= 0.005).sort((a, b) => b[1] - a[1]).slice(0, 3);
    const differs = shares.map(([column, share], i) => [i ? ", " : "", tabweave.el("b", {}, tabweave.value(column)), " ", tabweave.value(studio.cellText(one.cells[column])), ` (${tabweave.percent(share)})`]);
    return [
      [like.rowLink(one), tabweave.el("div", { class: "quiet small", title: one.copies > 1 ? `rows ${one.copy_rows.join(", ")}${one.copies > one.copy_rows.length ? ", …" : ""}` : null },
        tabweave.number(one.distance, 3), one.copies > 1 ? `, ${tabweave.whole(one.copies)} equal rows` : null)],
      differs.length ? differs : tabweave.el("span", { class: "quiet" }, "nothing"),
    ];
  });
  const table = others.length ? tabweave.table("Rows like this one, the nearest first", [{ name: "row, distance" }, { name: "differs in" }], lines, { classes: "tight like-rows" }) : null;
  tabweave.fill(byId("like-near"), table);
};

/* A neighbour is looked at without leaving the list. */
like.rowLink = ({ row, name }) => tabweave.el("button", {
  type: "button", class: "link", "data-row": row, onclick: () => studio.look(row, "like"),
  onmouseenter: () => studio.set({ hover: row }), onmouseleave: () => studio.set({ hover: null }),
  onfocus: () => studio.set({ hover: row }), onblur: () => studio.set({ hover: null }),
}, studio.rowText(row, name));

/* -- the panel --------------------------------------------------------------------------------- */

like.begin = (row) => studio.set({ like: { row, cells: {} } });

like.drawOther = async () => {
  const { row } = studio.state;
  const into = byId("like-other");
  if (row === null || row === like.row) { tabweave.fill(into); return; }
  const found = await studio.latest("like-other", () => studio.ofTable("rows", { filters: [{ rows: [row] }], columns: [], limit: 1 })).catch(() => null);
  if (!found) return;
  const text = studio.rowText(row, found.rows[0].name);
  tabweave.fill(into, tabweave.el("span", { class: "small quiet" }, "Looking at ", tabweave.el("bdi", {}, text), ". "),
    tabweave.el("button", { type: "button", onclick: () => like.begin(row) }, `Rows like ${text}`));
};

studio.panel({
  id: "like", title: "Like", order: 25, watches: ["row", "like", "filters", "selection", "names"],
  build: (into) => {
    like.row = like.card = null;
    tabweave.fill(into,
      tabweave.el("p", { id: "like-none", class: "empty" }, "Choose a row: on the map, in the table, or by find. Its cells can then be edited: rows like this one, but with another carrier."),
      tabweave.el("div", { id: "like-card" }),
      tabweave.el("div", { id: "like-acts", class: "choosers", hidden: true },
        tabweave.el("span", { class: "chooser" }, tabweave.el("input", { type: "checkbox", id: "like-filtered", onchange: (event) => { like.filtered = event.target.checked; like.find(); } }), tabweave.el("label", { for: "like-filtered" }, "only rows that pass the filters")),
        tabweave.el("button", { type: "button", id: "like-reset", onclick: () => like.begin(like.row) }, "As the row is")),
      tabweave.el("p", { id: "like-says", class: "small quiet", role: "status" }),
      tabweave.el("div", { id: "like-near" }),
      tabweave.el("p", { id: "like-other" }));
  },
  update: async (state, changed) => {
    if (!state.like && state.row === null) return;
    if (!state.like) { studio.set({ like: { row: state.row, cells: {} } }, { history: false }); return; }
    const { row, cells } = state.like;
    const first = like.card === null || row !== like.row || changed.has("names");
    const moved = first || JSON.stringify(cells) !== JSON.stringify(like.cells);
    like.row = row;
    like.cells = cells;
    if (first) {
      const card = await studio.latest("like-card", () => studio.ofJob("card", { row }));
      if (!card) return;
      like.card = card;
    }
    for (const id of ["like-none", "like-acts"]) byId(id).hidden = id === "like-none";
    if (moved) {
      const held = document.activeElement && byId("like").contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
      like.drawCard(byId("like-card"));
      const again = held && [...byId("like").querySelectorAll("[aria-label]")].find((node) => node.getAttribute("aria-label") === held);
      if (again) again.focus({ preventScroll: true });
    }
    byId("like-reset").disabled = !Object.keys(cells).length;
    const filtered = like.filtered && (changed.has("filters") || changed.has("selection"));
    await Promise.all([like.drawOther(), moved || filtered ? like.find() : null]);
  },
});
