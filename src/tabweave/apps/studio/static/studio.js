/* What every part of the studio uses: questions to the server, what is open, and what to say. */

const studio = {
  facts: JSON.parse(document.getElementById("facts").textContent),
  table: null,   // {source, name, columns, kinds, preview}
  shown: [],     // [{job, method, data, whole}], method A first
  picked: [],    // at most two numbers of rows
  columns: {},   // what was chosen: {name: {keep, kind, weight}}
  wish: {},      // what the address asks for: colour, layout, tab
  maps: [],
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
  error.changed = answer.status === 409;
  throw error;
};
studio.json = async (path, options) => (await studio.ask(path, options)).json();
studio.post = (path, body) => studio.json(path, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
});

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

/* -- what is on screen, as an address: a reload or a link brings it back -------------------------- */

studio.remember = () => {
  if (!studio.table) return;
  const { table, columns, wish } = studio;
  const chosen = (key) => Object.entries(columns).filter(([, c]) => c[key] !== undefined).map(([name, c]) => [name, c[key]]);
  const parts = {
    [table.origin[0]]: table.origin[1], source: table.source, target: byId("target").value, a: byId("method-a").value, b: byId("method-b").value,
    rows: studio.picked.join(","), colour: wish.colour, layout: wish.layout, tab: wish.tab,
    keep: chosen("keep").length ? JSON.stringify(Object.fromEntries(chosen("keep"))) : "",
    kind: chosen("kind").length ? JSON.stringify(Object.fromEntries(chosen("kind"))) : "",
    weight: chosen("weight").length ? JSON.stringify(Object.fromEntries(chosen("weight"))) : "",
  };
  const text = new URLSearchParams(Object.entries(parts).filter(([, value]) => value));
  history.replaceState(null, "", `${location.pathname}${location.search}#${text}`);
};

studio.recall = async () => {
  const parts = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const origin = ["file", "table", "upload"].find((key) => parts[key]);
  if (!origin) return false;
  const read = (key) => { try { return JSON.parse(parts[key] || "{}"); } catch { return {}; } };
  const columns = {};
  for (const key of ["keep", "kind", "weight"])
    for (const [name, value] of Object.entries(read(key))) columns[name] = { ...columns[name], [key]: value };
  const body = origin === "file" ? { path: parts.file } : origin === "table" ? { table: parts.table } : { source: parts.source };
  const found = await studio.post("/api/open", body);
  Object.assign(studio.wish, { colour: parts.colour, layout: parts.layout, tab: parts.tab });
  studio.opened(found, false, [origin, parts[origin]]);
  studio.columns = columns;
  byId("target").value = found.columns.includes(parts.target) ? parts.target : "";
  studio.offer();
  for (const side of ["a", "b"]) if ([...byId(`method-${side}`).options].some((o) => o.value === (parts[side] || ""))) byId(`method-${side}`).value = parts[side] || "";
  studio.picked = (parts.rows || "").split(",").filter((row) => /^\d+$/.test(row)).map(Number).slice(0, 2);
  await studio.run();
  return true;
};
