/* Warnings, some rows, what each column holds, and which cells are missing together. */

tabweave.sections.push({
  id: "warnings", title: "Look at first",
  draw: (d) => {
    if (!d.warnings.length)
      return [tabweave.el("p", { class: "empty" },
        "Nothing odd: no identifiers, constants, duplicates, missing values or target leakage.")];
    const list = (notes) => tabweave.el("ul", { class: "notes" }, notes.map((note) =>
      tabweave.el("li", { class: note.level },
        tabweave.el("span", { class: "tag" }, note.level === "warning" ? "Warning" : "Note"),
        tabweave.el("span", {}, tabweave.noted(note.columns), note.text, note.text.endsWith("?") ? null : "."))));
    const notes = tabweave.joinNotes(d.warnings);
    return [list(notes.slice(0, 12)),
      notes.length > 12 ? tabweave.more(`The other ${notes.length - 12}`, () => list(notes.slice(12))) : null];
  },
});

/* Notes that say the same of several columns are one. */
tabweave.joinNotes = (notes) => {
  const out = new Map();
  for (const { level, text, column } of notes) {
    const key = `${level} ${text}`;
    if (!out.has(key)) out.set(key, { level, text, columns: [] });
    if (column !== null) out.get(key).columns.push(column);
  }
  return [...out.values()];
};
tabweave.noted = (columns) => {
  const few = columns.slice(0, columns.length > 6 ? 5 : 6);
  return few.map((name, i) => [i ? ", " : "", tabweave.el("b", {}, tabweave.value(name))])
    .concat(columns.length > few.length ? ` and ${tabweave.plural(columns.length - few.length, "other column")}` : "", columns.length > 1 ? ": each " : columns.length ? " " : "");
};

tabweave.sections.push({
  id: "rows", title: "Some rows",
  draw: (d) => {
    const { rows, ids, columns, cells } = d.some;
    return [tabweave.table("Some rows, evenly from the whole table", [{ name: tabweave.rowHead(d) }, ...columns.map((name) => ({ name }))],
      rows.map((row, i) => [tabweave.row(row, ids && ids[i]), ...cells[i].map(tabweave.value)]), { classes: "cells" }),
    columns.length < d.columns.length ? tabweave.el("p", { class: "quiet small" }, `The first ${columns.length} of ${tabweave.whole(d.columns.length)} columns.`) : null];
  },
});

tabweave.sections.push({
  id: "columns", title: "Columns",
  draw: (d) => {
    const few = 25; // more are folded
    const heads = [{ name: "column" }, { name: "kind" }, { name: "missing", number: true }, { name: "distinct", number: true },
      { name: "what it holds", fixed: true }];
    const rows = d.columns.map((column) => [
      [tabweave.value(column.name), column.role === "column" ? null
        : tabweave.el("span", { class: "role", title: column.why }, column.role), tabweave.asRead(column)],
      column.kind,
      column.missing ? [tabweave.percent(column.missing / d.rows), tabweave.bar(column.missing / d.rows)] : "none",
      tabweave.whole(column.distinct),
      column.top ? tabweave.frequencies(column, d.rows) : tabweave.distribution(column),
    ]);
    const keys = (row, i) => [(c) => c.name, (c) => c.kind, (c) => c.missing, (c) => c.distinct][i](d.columns[row]);
    const table = tabweave.table("The columns: kind, missing and distinct values, most frequent values", heads, rows, { classes: "cards columns", keys });
    return [tabweave.folded(table, d.columns, few), tabweave.more("All statistics as a table", () => tabweave.statistics(d)), tabweave.gaps(d)];
  },
});

/* A long table shows its first rows and those whose name holds what is searched for. */
tabweave.folded = (table, columns, few) => {
  if (columns.length <= few) return table;
  const said = tabweave.el("span", { class: "quiet small", "aria-live": "polite" });
  const search = tabweave.el("input", { type: "search", class: "find", placeholder: "name of a column", "aria-label": "Find columns by name" });
  let all = false;
  const button = tabweave.el("button", { type: "button", class: "tool", "aria-expanded": "false", onclick: () => { all = !all; show(); } });
  const show = () => {
    const part = search.value.trim().toLowerCase();
    const rows = [...table.querySelectorAll("tbody > tr")]; // as they are sorted now
    const names = new Map(table.rows.map((row, i) => [row, columns[i].name.toLowerCase()]));
    let n = 0;
    for (const row of rows) row.hidden = !((!part || names.get(row).includes(part)) && (n++ < few || all));
    said.textContent = `${tabweave.whole(Math.min(n, all ? n : few))} of ${tabweave.plural(columns.length, "column")}`;
    button.textContent = all ? "Show fewer" : "Show all";
    button.setAttribute("aria-expanded", String(all));
  };
  search.addEventListener("input", show);
  table.addEventListener("click", (event) => { if (event.target.closest(".sort")) show(); });
  show();
  return [tabweave.el("p", { class: "choosers" }, search, button, said), table];
};

tabweave.statistics = (d) => {
  const figures = ["min", "q1", "median", "q3", "max", "mean", "deviation"];
  const heads = [{ name: "column" }, { name: "kind" }, ...["missing", "distinct", ...figures].map((name) => ({ name, number: true })), { name: "most frequent" }, { name: "its rows", number: true }];
  const value = (c, name) => (c.summary ? c.summary[name] : null);
  const rows = d.columns.map((c) => [tabweave.value(c.name), c.kind, tabweave.whole(c.missing), tabweave.whole(c.distinct),
    ...figures.map((name) => (typeof value(c, name) === "string" ? value(c, name) : tabweave.number(value(c, name), 6))), c.top && c.top.length ? tabweave.value(c.top[0][0]) : "–", c.top && c.top.length ? tabweave.whole(c.top[0][1]) : "–"]);
  const keys = (row, i) => {
    const c = d.columns[row];
    return [c.name, c.kind, c.missing, c.distinct, ...figures.map((name) => value(c, name)), c.top && c.top.length ? c.top[0][0] : null, c.top && c.top.length ? c.top[0][1] : null][i];
  };
  return tabweave.table("Statistics of all columns; press a heading to sort", heads, rows, { keys });
};

tabweave.gaps = (d) => {
  const { gaps } = d;
  if (!gaps || (gaps.patterns.length < 2 && !gaps.patterns[0].missing.length)) return null;
  return [tabweave.el("h3", { class: "sub" }, "Missing together"),
    tabweave.table("Which cells are missing in the same row", [{ name: "missing" }, { name: "rows", number: true }],
      gaps.patterns.map((p) => [p.missing.length ? p.missing.slice(0, 12).map((name, i) => [i ? ", " : "", tabweave.value(name)]).concat(p.missing.length > 12 ? [` and ${p.missing.length - 12} more`] : []) : tabweave.el("span", { class: "quiet" }, "nothing"),
        [tabweave.whole(p.rows), tabweave.bar(p.rows / d.rows)]]), { classes: "gaps" }),
    gaps.of > gaps.patterns.length ? tabweave.el("p", { class: "quiet small" }, `And ${tabweave.plural(gaps.of - gaps.patterns.length, "rarer pattern")}.`) : null];
};

tabweave.frequencies = (column, rows) => {
  if (!column.top.length) return tabweave.el("span", { class: "missing" }, "nothing");
  // The elements of sets add up to more than the rows: the strip then shows shares of elements.
  const whole = column.kind === "set" ? column.top.reduce((sum, [, count]) => sum + count, column.rest) : rows;
  const parts = column.top.map(([, count], i) =>
    tabweave.el("span", { class: `part p${i}`, vars: { "--w": count / whole } }));
  const rest = column.distinct - column.top.length;
  const words = column.top.map(([value, count]) => tabweave.el("span", { class: "word" },
    tabweave.value(value), " ", tabweave.el("span", { class: "quiet" }, tabweave.percent(count / rows))));
  return tabweave.el("div", { class: "holds" },
    tabweave.el("div", { class: "strip", "aria-hidden": "true" }, parts,
      tabweave.el("span", { class: "part others", vars: { "--w": column.rest / whole } })),
    tabweave.el("div", { class: "words" }, words,
      rest > 0 ? tabweave.el("span", { class: "word quiet" }, `and ${tabweave.plural(rest, "other")}`) : null));
};

tabweave.distribution = (column) => {
  if (!column.summary) return tabweave.el("span", { class: "missing" }, "nothing");
  const s = column.summary;
  const show = (x, digits) => (typeof x === "string" ? x : tabweave.number(x, digits)); // dates are text
  const words = [["min", s.min], ["median", s.median], ["max", s.max], ["mean", s.mean]].map(([name, x]) =>
    tabweave.el("span", { class: "word" }, tabweave.el("span", { class: "quiet" }, name), " ", show(x, name === "mean" ? 4 : 6)));
  if (!column.bars) return tabweave.el("div", { class: "holds" }, tabweave.el("div", { class: "words" }, words));
  const top = Math.max(...column.bars);
  const [from, to] = column.drawn || [s.min, s.max];
  const step = (to - from) / column.bars.length;
  if (column.beyond) words.push(tabweave.el("span", { class: "word quiet" }, `not drawn: ${tabweave.plural(column.beyond, "row")} far out`));
  const bars = column.bars.map((count, i) => {
    const height = count ? Math.max(1, (26 * count) / top) : 0;
    const range = typeof from === "string" ? `${from} to ${to}, part ${i + 1} of ${column.bars.length}` : column.whole ? tabweave.number(from + i, 6) : `${tabweave.number(from + i * step)} to ${tabweave.number(from + (i + 1) * step)}`;
    return tabweave.svg("rect", { x: i * 10 + 1, y: 27 - height, width: 8, height }, tabweave.svg("title", {}, `${range}: ${tabweave.plural(count, "row")}`));
  });
  return tabweave.el("div", { class: "holds" },
    tabweave.svg("svg", { class: "spark", viewBox: `0 0 ${column.bars.length * 10} 28`, "aria-hidden": "true",
      preserveAspectRatio: "none" }, bars),
    tabweave.el("div", { class: "words" }, words));
};
