/* Groups: what is selected or passes the filters gets a name and a colour; any two are compared, and
   the whole table is exported with their names as a new column. */

const groups = { a: null, b: "" };

groups.swatch = (colour) => tabweave.el("span", { class: "groups-swatch", "aria-hidden": "true", vars: { "--swatch": `var(--c${colour % 8})` } });

groups.refresh = async () => {
  const found = await studio.latest("groups", () => studio.ofTable("groups"));
  if (found) studio.set({ groups: found }, { history: false });
};
groups.send = (path, method, body) => studio.json(`/api/tables/${studio.state.source}/groups${path}`, {
  method, headers: { "Content-Type": "application/json" }, body: body && JSON.stringify(body),
});

groups.make = studio.attempt(async () => {
  const input = byId("groups-name");
  const made = await groups.send("", "POST", { name: input.value, colour: studio.state.groups.length % 8, filters: studio.where() });
  input.value = "";
  studio.say(`${made.name}: ${tabweave.plural(made.rows, "row")}.`);
  await groups.refresh();
});

/* A group has the colour of its place, on the map too. */
groups.line = (group, i) => {
  const { name } = group;
  const rename = tabweave.el("input", { type: "text", "aria-label": `Name of ${name}`, maxlength: 200, onchange: studio.attempt(async () => { await groups.send(`/${group.group}`, "PATCH", { name: rename.value }).finally(groups.refresh); }) });
  rename.value = name;
  return [
    tabweave.el("span", { class: "groups-named" }, groups.swatch(i), rename),
    tabweave.whole(group.rows),
    tabweave.el("span", { class: "groups-acts" },
      tabweave.el("button", { type: "button", "aria-label": `Show only ${name}`, onclick: () => studio.set({ filters: [...studio.state.filters.filter((f) => f.group === undefined), { group: group.group }] }) }, "Show only"),
      tabweave.el("button", { type: "button", "aria-label": `Remove ${name}`, onclick: studio.attempt(async () => {
        await groups.send(`/${group.group}`, "DELETE");
        studio.set({ filters: studio.state.filters.filter((f) => f.group !== group.group) });
        await groups.refresh();
      }) }, "Remove")),
  ];
};

/* What would get a name: the selection, or what passes the filters. */
groups.subject = () => {
  const { filters, selection } = studio.state;
  const parts = [selection ? `the ${tabweave.plural(selection.rows, "row")} ${selection.title || "selected"}` : "", ...filters.map(studio.filterText)].filter(Boolean);
  return parts.join(", ");
};

/* -- two groups side by side ---------------------------------------------------------------------- */

groups.sides = () => [...studio.state.groups.map((g) => [g.group, g.name]), ["selection", "what is selected"]].filter(([key]) => key !== "selection" || studio.where().length);
groups.filters = (key) => (key === "selection" ? studio.where() : [{ group: key }]);

groups.compare = studio.attempt(async () => {
  const into = byId("groups-compared");
  const sides = groups.sides();
  const named = Object.fromEntries(sides);
  if (!sides.length) { tabweave.fill(into, tabweave.el("p", { class: "empty" }, "Name a group first, or select rows.")); return; }
  const [a, b] = [groups.filters(groups.a), groups.b === "" ? null : groups.filters(groups.b)];
  const names = [named[groups.a], groups.b === "" ? "all other rows" : named[groups.b]];
  const found = await studio.latest("groups-compare", () => Promise.all([studio.ofTable("differences", { a, b }), studio.ofJob("between", { a, b }).catch((error) => ({ error: error.message, columns: [] }))]));
  if (!found) return;
  const [differences, between] = found;
  tabweave.fill(into,
    tabweave.el("p", { class: "groups-key" }, tabweave.el("span", {}, groups.mark("a"), `${names[0]}: ${tabweave.plural(differences.a, "row")}`), tabweave.el("span", {}, groups.mark("b"), `${names[1]}: ${tabweave.plural(differences.b, "row")}`)),
    groups.between(between, names),
    tabweave.el("h3", {}, "Where they differ most"),
    differences.columns.filter((column) => column.strength > 0).slice(0, 12).map((column) => groups.mirror(column, names)),
    differences.columns.some((column) => column.strength > 0) ? null : tabweave.el("p", { class: "empty" }, "No column tells them apart beyond chance."));
});
groups.mark = (side) => tabweave.el("span", { class: `groups-mark ${side}`, "aria-hidden": "true" });

groups.between = (between) => {
  if (between.error) return tabweave.el("p", { class: "quiet small" }, between.error);
  const shares = between.columns.filter(({ share }) => share >= 0.005).slice(0, 8);
  if (!shares.length) return tabweave.el("p", { class: "quiet" }, "Rows of both are no farther apart than rows of each.");
  return [tabweave.el("h3", {}, "Shares of the distance between them"),
    tabweave.table("Shares of the distance between the groups", [{ name: "column" }, { name: "share", number: true }], shares.map(({ column, share }) => [tabweave.value(column), [tabweave.percent(share), tabweave.bar(share)]]), { classes: "pairs tight" }),
    tabweave.el("p", { class: "quiet small" }, `Their means are ${tabweave.distance(between.distance)} apart; two rows, one of each, ${tabweave.distance(between.between_rows)}.`)];
};

groups.valueText = (value) => {
  if (value.missing) return "missing";
  if (value.others !== undefined) return `${tabweave.whole(value.others)} others`;
  if ("value" in value) return studio.cellText(value.value);
  const end = (x) => (typeof x === "number" ? tabweave.number(x, 6) : x);
  if (value.from === null) return `< ${end(value.below)}`;
  return value.below === null ? `≥ ${end(value.from)}` : `${end(value.from)} to ${end(value.below)}`;
};

/* Bars of both groups from a common middle; the numbers are written beside them. */
groups.mirror = (column, names) => {
  const top = Math.max(...column.values.flatMap(({ a, b }) => [a, b]), 1e-9);
  const bar = (side, share) => tabweave.el("span", { class: `groups-bar ${side}`, vars: { "--w": share / top } });
  const lines = column.values.filter(({ a, b }) => a >= 0.001 || b >= 0.001).map((value) => [
    tabweave.value(groups.valueText(value)),
    [tabweave.percent(value.a), bar("a", value.a)], [bar("b", value.b), tabweave.percent(value.b)],
  ]);
  return tabweave.el("figure", { class: "groups-mirror" },
    tabweave.el("figcaption", {}, tabweave.el("button", { type: "button", class: "link", onclick: () => studio.set({ column: column.column, tab: "column" }) }, column.column), tabweave.el("span", { class: "quiet small" }, ` ${column.strength.toFixed(2)}`)),
    tabweave.table(`${column.column}: shares of values in both groups`, [{ name: "value" }, { name: names[0], number: true }, { name: names[1] }], lines, { classes: "tight groups-shares" }));
};

/* -- labels go with the table ---------------------------------------------------------------------- */

groups.export = studio.attempt(async (form) => {
  const label = byId("groups-label").value.trim() || "label";
  const says = byId("groups-says");
  says.textContent = "Writing every row …";
  try {
    const blob = await (await studio.ask(`/api/tables/${studio.state.source}/export?format=${form}&labels=${encodeURIComponent(label)}`)).blob();
    const name = `${studio.stem()}-labelled.${form}`;
    tabweave.save(blob, name);
    says.textContent = `${name} is ready: all ${tabweave.whole(studio.state.table.rows)} rows, ${studio.size(blob.size)}.`;
  } catch (error) {
    says.textContent = "";
    throw error;
  }
});

studio.panel({
  id: "groups", title: "Groups", order: 40, watches: ["filters", "selection", "groups"],
  build: (into) => {
    const choose = (side, label) => tabweave.el("span", { class: "chooser" }, tabweave.el("label", { for: `groups-${side}` }, label),
      tabweave.el("select", { id: `groups-${side}`, onchange: (event) => { groups[side] = event.target.value; groups.compare(); } }));
    tabweave.fill(into,
      tabweave.el("form", { class: "groups-make", onsubmit: (event) => { event.preventDefault(); groups.make(); } },
        tabweave.el("p", { id: "groups-subject", class: "small" }),
        tabweave.el("p", { class: "pathline" }, tabweave.el("label", { for: "groups-name", class: "hidden" }, "Name of the group"), tabweave.el("input", { id: "groups-name", type: "text", maxlength: 200, placeholder: "a name for these rows", autocomplete: "off" }),
          tabweave.el("button", { type: "submit", class: "main", id: "groups-add" }, "Name them"))),
      tabweave.el("div", { id: "groups-list" }),
      tabweave.el("h3", {}, "Compare"),
      tabweave.el("p", { class: "choosers" }, choose("a", "Group"), choose("b", "with")),
      tabweave.el("div", { id: "groups-compared" }),
      tabweave.el("h3", {}, "Export with labels"),
      tabweave.el("p", { class: "choosers" }, tabweave.el("span", { class: "chooser" }, tabweave.el("label", { for: "groups-label" }, "Name of the new column"), tabweave.el("input", { id: "groups-label", type: "text", value: "label", maxlength: 200 })),
        tabweave.el("button", { type: "button", id: "groups-csv", onclick: () => groups.export("csv") }, "CSV"), tabweave.el("button", { type: "button", id: "groups-parquet", onclick: () => groups.export("parquet") }, "Parquet")),
      tabweave.el("p", { class: "quiet small" }, "Every row of the table, those without a group too; a row of several groups has the name of the last."),
      tabweave.el("p", { id: "groups-says", class: "small", role: "status" }));
    studio.attempt(groups.refresh)();
  },
  update: async (state) => {
    const subject = groups.subject();
    byId("groups-subject").textContent = subject ? `To be named: ${subject}.` : "Select rows on the map with the lasso, or filter by the charts; then name them.";
    byId("groups-add").disabled = !subject;
    const list = state.groups;
    tabweave.fill(byId("groups-list"), list.length ? [
      tabweave.table("Groups", [{ name: "group" }, { name: "rows", number: true }, { name: "what to do" }], list.map(groups.line), { classes: "tight picking groups-table" }),
      tabweave.el("p", {}, tabweave.el("button", { type: "button", onclick: () => studio.set({ colour: "groups" }) }, "Colour the map by groups"))] : null);
    const sides = groups.sides();
    if (!sides.some(([key]) => key === groups.a)) groups.a = sides.length ? sides[0][0] : null;
    if (groups.b !== "" && !sides.some(([key]) => key === groups.b)) groups.b = "";
    for (const side of ["a", "b"]) {
      const options = side === "a" ? sides : [["", "all other rows"], ...sides];
      tabweave.fill(byId(`groups-${side}`), options.map(([key, name]) => tabweave.el("option", { value: key, selected: key === groups[side] }, name)));
    }
    await groups.compare();
  },
});
