/* What every part of the studio uses: questions to the server, what is open, and what to say. */

const studio = {
  facts: JSON.parse(document.getElementById("facts").textContent),
  table: null,   // {source, name, columns, preview}
  shown: [],     // [{job, method, data}], method A first
  picked: [],    // at most two numbers of rows
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
  throw new Error(text || `The studio answered with ${answer.status}.`);
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
/* Run something that may fail, and show why if it does. */
studio.attempt = (work) => async (...given) => {
  try {
    studio.problem(null);
    return await work(...given);
  } catch (error) {
    studio.problem(error);
    return null;
  }
};

studio.size = (bytes) => (bytes >= 2 ** 20 ? `${tabweave.number(bytes / 2 ** 20, 3)} MB` : bytes >= 1024 ? `${tabweave.whole(bytes / 1024)} kB` : `${bytes} B`);
studio.letters = ["A", "B"];
/* A column for each method on screen, with its name above it. */
studio.pair = (build) => tabweave.el("div", { class: studio.shown.length > 1 ? "pair both" : "pair" },
  studio.shown.map((one, i) => tabweave.el("div", { "data-side": studio.letters[i] },
    studio.shown.length > 1 ? tabweave.el("h3", {}, tabweave.el("span", { class: "letter" }, studio.letters[i]), one.method) : null, build(one, i))));
