/* Puts the sections together. */

tabweave.show = (d, main, contents, lead, made) => {
  made.append(tabweave.el("p", {}, `Made by tabweave ${d.tabweave}`, d.method ? ` with ${d.method}` : "",
    ". Rows are counted from 0. Nothing on this page is loaded from elsewhere, and nothing leaves it."));
  if (d.only) { // a section as a separate page
    document.body.classList.add("alone");
    for (const section of tabweave.sections.filter((s) => d.only.includes(s.id))) main.append(tabweave.el("section", { id: section.id, "aria-label": section.title }, section.draw(d)));
    return;
  }
  const tiles = [[tabweave.whole(d.rows), d.rows === 1 ? "row" : "rows"],
    [tabweave.whole(d.columns.length), d.columns.length === 1 ? "column" : "columns"],
    [d.map ? tabweave.whole(d.map.of) : "–", "distinct rows"],
    [tabweave.percent(d.missing / d.cells), "cells missing"],
    [tabweave.whole(d.warnings.length), d.warnings.length === 1 ? "thing to look at" : "things to look at"]];
  tabweave.fill(lead, "What the columns hold, how they depend on each other, and which rows are similar.",
    d.target ? [" The target is ", tabweave.el("b", {}, tabweave.value(d.target)), "."] : null,
    d.dropped ? ` Columns ${d.dropped}.` : null);
  main.append(tabweave.el("dl", { class: "tiles" }, tiles.map(([figure, name]) =>
    tabweave.el("div", {}, tabweave.el("dt", {}, name), tabweave.el("dd", {}, figure)))));
  const list = tabweave.el("ol", {});
  for (const section of tabweave.sections) {
    list.append(tabweave.el("li", {}, tabweave.el("a", { href: `#${section.id}` }, section.title)));
    main.append(tabweave.el("section", { id: section.id, "aria-labelledby": `${section.id}-title` },
      tabweave.el("h2", { id: `${section.id}-title` }, section.title), section.draw(d)));
  }
  contents.append(list);
  tabweave.follow([...main.querySelectorAll("section[id]")], [...list.querySelectorAll("a")]);
};

/* Brings out in the contents which section is being read: the last one that begins in the upper part of the window. */
tabweave.follow = (sections, links) => {
  const show = () => {
    const end = innerHeight + scrollY >= document.documentElement.scrollHeight - 2;
    const begun = sections.filter((section) => section.getBoundingClientRect().top < innerHeight / 3).length;
    links.forEach((link, i) => {
      const here = i === (end && scrollY > 0 ? links.length : Math.max(1, begun)) - 1;
      if (here === link.hasAttribute("aria-current")) return;
      if (here) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
      const { parentElement: bar } = link.closest("ol"); // on a phone the contents are a strip: bring the entry into sight
      if (here && bar.scrollWidth > bar.clientWidth) bar.scrollTo({ left: link.offsetLeft - bar.clientWidth / 2 + link.offsetWidth / 2 });
    });
  };
  addEventListener("scroll", show, { passive: true });
  show();
};

{
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  tabweave.show(data, byId("main"), byId("contents"), byId("lead"), byId("made"));
}
