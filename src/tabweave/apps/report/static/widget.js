/* The map in a notebook: what is drawn around goes back to Python. */

const render = ({ model, el }) => {
  // A tree of its own: the style of the page does not reach the notebook, nor the other way round.
  const root = el.attachShadow({ mode: "open" });
  const frame = tabweave.el("div", { class: "widget" });
  root.append(tabweave.el("style", {}, STYLE), frame);
  tabweave.root = el;
  tabweave.shades.clear();
  const d = model.get("description");
  const told = (name, value) => { model.set(name, value); model.save_changes(); };
  const inspector = tabweave.el("div", { class: "inspector", "aria-live": "polite" }, tabweave.hint());
  const map = new tabweave.Map(d, {
    height: () => 420,
    look: (i) => { tabweave.inspect(inspector, map, i); told("picked", d.map.rows[i]); },
    select: (chosen) => {
      tabweave.fill(inspector, chosen ? tabweave.standsOut(map, chosen) : tabweave.hint());
      told("selection", chosen ? chosen.map((i) => d.map.rows[i]) : []);
    },
  });
  model.on("change:selection", () => { // Python may choose, too
    const wanted = new Set(model.get("selection"));
    map.chosen = wanted.size ? Uint8Array.from(d.map.rows, (row) => (wanted.has(row) ? 1 : 0)) : null;
    map.judge();
    map.draw();
  });
  tabweave.fill(frame, map.tools, tabweave.el("div", { class: "mapframe" }, tabweave.el("div", {}, map.stage, map.legend, map.says), inspector), map.table);
};

export default { render };
