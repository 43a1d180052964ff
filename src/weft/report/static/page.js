/* Puts the sections together. */

weft.show = (d, main, contents, lead, made) => {
  const tiles = [[weft.whole(d.rows), d.rows === 1 ? "row" : "rows"],
    [weft.whole(d.columns.length), d.columns.length === 1 ? "column" : "columns"],
    [d.map ? weft.whole(d.map.of) : "–", "distinct rows"],
    [weft.percent(d.missing / d.cells), "cells missing"],
    [weft.whole(d.warnings.length), d.warnings.length === 1 ? "thing to look at" : "things to look at"]];
  weft.fill(lead, "What the columns hold, how they depend on each other, and which rows are alike.",
    d.target ? [" The target is ", weft.el("b", {}, weft.value(d.target)), "."] : null);
  main.append(weft.el("dl", { class: "tiles" }, tiles.map(([figure, name]) =>
    weft.el("div", {}, weft.el("dt", {}, name), weft.el("dd", {}, figure)))));
  const list = weft.el("ol", {});
  for (const section of weft.sections) {
    list.append(weft.el("li", {}, weft.el("a", { href: `#${section.id}` }, section.title)));
    main.append(weft.el("section", { id: section.id, "aria-labelledby": `${section.id}-title` },
      weft.el("h2", { id: `${section.id}-title` }, section.title), section.draw(d)));
  }
  contents.append(list);
  made.append(weft.el("p", {}, `Made by weft ${d.weft}`, d.method ? ` with ${d.method}` : "",
    ". Rows are counted from 0. Nothing on this page is loaded from elsewhere, and nothing leaves it."));
};

{
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  weft.show(data, byId("main"), byId("contents"), byId("lead"), byId("made"));
}
