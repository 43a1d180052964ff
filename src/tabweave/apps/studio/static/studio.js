/* What every part of the studio uses: questions to the server, the state of the page and its
   history, and what to say. */

const studio = {
  facts: JSON.parse(document.getElementById("facts").textContent),
  table: null,   // {source, name, columns, kinds, preview, origin}
  shown: [],     // [{job, method, data, whole}], method A first
  columns: {},   // what was chosen: {name: {keep, kind, weight}}
  maps: [],
  panels: [],
  turn: 0,       // of runs: what belongs to an earlier one is dropped
};
const byId = (id) => document.getElementById(id);

studio.ask = async (path, options) => {
  let answer;
  try {
    answer = await fetch(path, { ...options, headers: { "X-Tabweave-Token": studio.facts.token, ...(options || {}).headers } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The studio does not answer; was it stopped?");
  }
  if (answer.ok) return answer;
  const said = await answer.text();
  let text = said;
  try { text = JSON.parse(said).error; } catch { /* not JSON: plain text */ }
  const error = new Error(text || `The studio answered with ${answer.status}.`);
  Object.assign(error, { changed: answer.status === 409, status: answer.status });
  throw error;
};
studio.send = (path, body) => studio.ask(path, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
});
studio.json = async (path, options) => (await studio.ask(path, options)).json();
studio.post = async (path, body) => (await studio.send(path, body)).json();
studio.array = async (path, Kind, body) => new Kind(await (await (body ? studio.send(path, body) : studio.ask(path))).arrayBuffer());
studio.ofTable = (path, body) => {
  const url = `/api/tables/${studio.state.source}${path ? `/${path}` : ""}`;
  return body === undefined ? studio.json(url) : studio.post(url, body);
};
studio.ofJob = (path, body) => {
  const url = `/api/jobs/${studio.state.job}/${path}`;
  return body === undefined ? studio.json(url) : studio.post(url, body);
};
/* The answer of what was asked last under a name; null for those that were overtaken. */
studio.latest = async (key, question) => {
  const number = (studio.latest.numbers[key] = (studio.latest.numbers[key] || 0) + 1);
  try {
    const answer = await question();
    return number === studio.latest.numbers[key] ? answer : null;
  } catch (error) {
    if (number === studio.latest.numbers[key]) throw error;
    return null;
  }
};
studio.latest.numbers = {};

studio.say = (text) => { byId("status").textContent = text; };
studio.problem = (error) => {
  const box = byId("problem");
  const text = error ? error.message || String(error) : "";
  box.hidden = !text;
  tabweave.fill(box, text ? [tabweave.el("b", {}, "That did not work. "), text] : null);
  if (text) { studio.say(""); box.scrollIntoView({ block: "nearest" }); }
};
/* Run something that may fail, and show why if it does. A file that was written again is looked at
   again: what is on screen belongs to the file as it is. */
studio.attempt = (work) => async (...given) => {
  try {
    studio.problem(null);
    return await work(...given);
  } catch (error) {
    if (error.changed && studio.table) {
      const { name } = studio.table;
      const found = await studio.post("/api/open", { source: studio.table.source }).catch((again) => { studio.problem(again); return null; });
      studio.opened(found, true);
      if (found) studio.say(`${name} was written again; this is the file as it is now.`);
      return null;
    }
    studio.problem(error);
    return null;
  }
};

studio.size = (bytes) => (bytes >= 2 ** 20 ? `${tabweave.number(bytes / 2 ** 20, 3)} MB` : bytes >= 1024 ? `${tabweave.whole(bytes / 1024)} kB` : `${bytes} B`);
studio.seconds = (s) => (s < 90 ? `${Math.max(1, Math.round(s))} s` : `${Math.round(s / 60)} min`);
studio.letters = ["A", "B"];
/* A column for each method on screen, with its name above it. */
studio.pair = (build) => tabweave.el("div", { class: studio.shown.length > 1 ? "pair both" : "pair" },
  studio.shown.map((one, i) => tabweave.el("div", { "data-side": studio.letters[i] },
    studio.shown.length > 1 ? tabweave.el("h3", {}, tabweave.el("span", { class: "letter" }, studio.letters[i]), one.method) : null, build(one, i))));

/* -- the state of the page ------------------------------------------------------------------- */

studio.START = {
  source: null, job: null, table: null, filters: [], selection: null, row: null, picked: [], colour: "", layout: "", column: null,
  tab: "", like: null, hover: null, nearMarks: [], rings: [], groups: [], sort: [], scope: "view",
};
studio.state = { ...studio.START };
/* What a step back brings back; the rest follows from it, or passes. */
studio.STEPS = ["filters", "selection", "row", "picked", "colour", "layout", "column", "tab", "sort", "scope", "like"];
studio.listeners = [];
studio.changed = new Set();

studio.set = (part, options) => {
  let steps = false;
  for (const [key, value] of Object.entries(part)) {
    if (studio.state[key] === value || JSON.stringify(studio.state[key]) === JSON.stringify(value)) continue;
    studio.state[key] = value;
    studio.changed.add(key);
    steps = steps || studio.STEPS.includes(key);
  }
  if (steps) studio.remember(!(options && options.history === false));
  if (studio.changed.size && !studio.asked) studio.asked = requestAnimationFrame(studio.tell);
};
studio.tell = () => {
  studio.asked = 0;
  const changed = studio.changed;
  studio.changed = new Set();
  for (const { keys, call } of [...studio.listeners]) if (keys.some((key) => changed.has(key))) call(studio.state, changed);
};
studio.on = (keys, call) => {
  const listener = { keys, call };
  studio.listeners.push(listener);
  return () => { studio.listeners = studio.listeners.filter((each) => each !== listener); };
};

/* -- filters and the selection --------------------------------------------------------------- */

studio.where = (options) => {
  const { selection = true, filters = true, except = null } = options || {};
  const kept = filters ? studio.state.filters.filter((f) => except === null || f.column !== except) : [];
  return selection && studio.state.selection ? [...kept, { set: studio.state.selection.set }] : kept;
};
studio.filterBy = (filter, options) => {
  const others = studio.state.filters.filter((f) => f.column === undefined || f.column !== filter.column);
  studio.set({ filters: [...others, filter] }, options);
};
studio.unfilter = (which, options) => studio.set({
  filters: studio.state.filters.filter((f, i) => (typeof which === "number" ? i !== which : f.column !== which)),
}, options);
studio.filterOf = (column) => studio.state.filters.find((f) => f.column === column);
/* Rows of marks, or that pass filters, become the selection; the server keeps them as a set. */
studio.selectBy = studio.attempt(async (what, title) => {
  const body = what.marks ? { job: what.job || studio.state.job, marks: what.marks } : what;
  const found = await studio.latest("select", () => studio.ofTable("sets", body));
  if (found) studio.set({ selection: { ...found, title } });
});
studio.filterText = (f) => {
  const not = f.not ? "not " : "";
  const number = (x) => (typeof x === "number" ? tabweave.number(x, 6) : x);
  if (f.in) {
    const texts = f.in.map((v) => tabweave.text(v === null ? null : String(v)));
    return `${not}${f.column} = ${texts.slice(0, 3).join(", ")}${texts.length > 3 ? ` and ${texts.length - 3} more` : ""}`;
  }
  if (f.text !== undefined) return `${f.column} ${not}holds “${f.text}”`;
  if (f.missing) return `${f.column} is ${f.not ? "not " : ""}missing`;
  if (f.cluster !== undefined) return `${not}cluster ${tabweave.letter(f.cluster)}`;
  if (f.group) return `${not}group ${(studio.state.groups.find((g) => g.group === f.group) || { name: f.group }).name}`;
  if (f.rows) return `${not}${f.rows.length === 1 ? `row ${f.rows[0]}` : tabweave.plural(f.rows.length, "row")}`;
  const [low, high] = [f.min ?? f.above ?? null, f.max ?? f.below ?? null];
  const above = f.above !== undefined && f.above !== null ? ">" : "≥";
  if (low !== null && low === high && above === "≥" && f.max !== undefined) return `${not}${f.column} = ${number(low)}`;
  if (low === null && high === null) return `${not}${f.column} is there`;
  const below = f.below !== undefined && f.below !== null ? "<" : "≤";
  if (low === null) return `${not}${f.column} ${below} ${number(high)}`;
  if (high === null) return `${not}${f.column} ${above} ${number(low)}`;
  return `${not}${number(low)} ${above === ">" ? "<" : "≤"} ${f.column} ${below} ${number(high)}`;
};

/* -- rows and their names -------------------------------------------------------------------- */

studio.rowText = (row, name) => (name === null || name === undefined || name === "" ? `row ${tabweave.whole(row)}` : name);
studio.rowLink = (row, name, label) => tabweave.el("button", {
  type: "button", class: "link", "data-row": row, "aria-label": label || null,
  onclick: () => studio.look(row), onmouseenter: () => studio.set({ hover: row }), onmouseleave: () => studio.set({ hover: null }),
  onfocus: () => studio.set({ hover: row }), onblur: () => studio.set({ hover: null }),
}, studio.rowText(row, name));
/* The row that is looked at, and the last two: the pair that is compared. */
studio.looked = (row) => {
  const { picked } = studio.state;
  return { row, picked: picked.includes(row) ? [...picked.filter((r) => r !== row), row] : [...picked, row].slice(-2) };
};
studio.look = (row, tab = "rows") => studio.set({ ...studio.looked(row), tab });

/* -- what is on screen, as an address: a reload, a link, or a step back brings it back ------------ */

studio.address = () => {
  const { table, columns, state } = studio;
  const chosen = (key) => Object.entries(columns).filter(([, c]) => c[key] !== undefined).map(([name, c]) => [name, c[key]]);
  const packed = (value) => (value && Object.keys(value).length ? JSON.stringify(value) : "");
  const question = {
    [table.origin[0]]: table.origin[1], source: table.source, target: byId("target").value, a: byId("method-a").value, b: byId("method-b").value,
    keep: packed(Object.fromEntries(chosen("keep"))), kind: packed(Object.fromEntries(chosen("kind"))), weight: packed(Object.fromEntries(chosen("weight"))),
  };
  const view = {
    rows: state.picked.join(","), row: state.row === null ? "" : String(state.row), colour: state.colour, layout: state.layout, tab: state.tab,
    column: state.column || "", filters: packed(state.filters), selection: packed(state.selection), sort: packed(state.sort), scope: state.scope === "view" ? "" : state.scope,
    like: packed(state.like),
  };
  const some = (parts) => Object.entries(parts).filter(([, value]) => value);
  return [new URLSearchParams(some(question)).toString(), new URLSearchParams(some(view)).toString()];
};
studio.remember = (step) => {
  if (!studio.table) return;
  const hash = `#${studio.address().filter(Boolean).join("&")}`;
  if (hash === location.hash) return;
  history[step ? "pushState" : "replaceState"](null, "", `${location.pathname}${location.search}${hash}`);
};
studio.parts = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
studio.unpacked = (text, otherwise) => { try { return JSON.parse(text || "null") ?? otherwise; } catch { return otherwise; } };

/* The view that the address asks for. */
studio.viewOf = (parts) => ({
  picked: (parts.rows || "").split(",").filter((row) => /^\d+$/.test(row)).map(Number).slice(0, 2),
  row: /^\d+$/.test(parts.row || "") ? Number(parts.row) : null, colour: parts.colour || "", layout: parts.layout || "", tab: parts.tab || "",
  column: parts.column || null, filters: studio.unpacked(parts.filters, []), selection: studio.unpacked(parts.selection, null),
  sort: studio.unpacked(parts.sort, []), scope: parts.scope || "view", like: studio.unpacked(parts.like, null),
});
studio.recall = async () => {
  const parts = studio.parts();
  const origin = ["file", "table", "upload"].find((key) => parts[key]);
  if (!origin) return false;
  const columns = {};
  for (const key of ["keep", "kind", "weight"])
    for (const [name, value] of Object.entries(studio.unpacked(parts[key], {}))) columns[name] = { ...columns[name], [key]: value };
  const body = origin === "file" ? { path: parts.file } : origin === "table" ? { table: parts.table } : { source: parts.source };
  const found = await studio.post("/api/open", body);
  studio.opened(found, false, [origin, parts[origin]], studio.viewOf(parts));
  studio.columns = columns;
  byId("target").value = found.columns.includes(parts.target) ? parts.target : "";
  studio.offer();
  for (const side of ["a", "b"]) if ([...byId(`method-${side}`).options].some((o) => o.value === (parts[side] || ""))) byId(`method-${side}`).value = parts[side] || "";
  await studio.run();
  return true;
};
/* A step back or forth: of the view only, unless it leads to another question. */
addEventListener("popstate", studio.attempt(async () => {
  const parts = studio.parts();
  const asked = (p) => JSON.stringify(["file", "table", "upload", "target", "a", "b", "keep", "kind", "weight"].map((key) => p[key] || ""));
  const here = Object.fromEntries(new URLSearchParams(studio.table ? studio.address()[0] : ""));
  if (studio.table && asked(parts) === asked(here)) studio.set(studio.viewOf(parts), { history: false });
  else if (location.hash.length > 1) await studio.recall();
}));
