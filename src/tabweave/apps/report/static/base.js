"use strict";
/* Small parts that every section is made of. Text enters the page as text only. */

const tabweave = { sections: [], root: document.documentElement };
const SVG = "http://www.w3.org/2000/svg";

tabweave.set = (node, attributes) => {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "vars") for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  return node;
};

tabweave.add = (node, children) => {
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
};

tabweave.fill = (node, ...children) => {
  node.replaceChildren();
  return tabweave.add(node, children);
};

tabweave.el = (tag, attributes, ...children) =>
  tabweave.add(tabweave.set(document.createElement(tag), attributes), children);

tabweave.svg = (tag, attributes, ...children) =>
  tabweave.add(tabweave.set(document.createElementNS(SVG, tag), attributes), children);

/* -- numbers and values as text -------------------------------------------------------------- */

tabweave.whole = (n) => Math.round(n).toLocaleString("en");
tabweave.number = (x, digits = 4) => {
  if (x === null || x === undefined) return "–";
  const size = Math.abs(x);
  if (x !== 0 && (size >= 1e15 || size < 1e-4)) return Number(x.toPrecision(digits)).toExponential();
  const near = size >= 10 ** digits ? Math.round(x) : Number(x.toPrecision(digits)); // no digit before the point is lost
  return near.toLocaleString("en", { maximumFractionDigits: 12, useGrouping: "min2" }); // 1983 may be a year
};
/* Whether a number is the one that is meant, as it is shown: with six digits. */
tabweave.isSame = (x, other) => x !== null && tabweave.number(x, 6) === tabweave.number(other, 6);
tabweave.distance = (x) => (x < 1e4 ? x.toPrecision(4) : tabweave.number(x));
tabweave.percent = (x) => {
  const p = 100 * x;
  if (p > 0 && p < 0.1) return "< 0.1 %";
  return (p >= 9.95 || p === 0 ? p.toFixed(0) : p.toFixed(1)) + " %";
};
tabweave.plural = (n, one, many) => `${tabweave.whole(n)} ${n === 1 ? one : many || one + "s"}`;
/* A row: its position and, where rows have one, its id. */
tabweave.row = (row, id) => (id === undefined || id === null ? tabweave.whole(row) : `${tabweave.whole(row)} (${id})`);
tabweave.rowOf = (m, i) => tabweave.row(m.rows[i], m.ids && m.ids[i]);
tabweave.rowHead = (d) => (d.id ? `row (${d.id})` : "row");
tabweave.letter = (i) => String.fromCharCode(65 + i);
tabweave.nothingLeft = "All columns are dropped, so there is nothing to compare rows by.";
tabweave.text = (value) => (value === null ? "missing" : value);
/* A value as text, whatever it holds. Names break where their parts meet; a word is cut only where
   no line would hold it. */
tabweave.value = (value) => {
  if (value === null) return tabweave.el("span", { class: "missing" }, "missing");
  const parts = String(value).split(/(?<=[_/\\.,;:|-])(?=[^\s\d])/);
  const long = parts.some((part) => /\S{25}/.test(part));
  return tabweave.el("bdi", { class: long ? "long" : null }, parts.map((part, i) => (i ? [tabweave.el("wbr"), part] : part)));
};

/* How the cells of a column were read, where that is not plain. */
tabweave.asRead = (column) => (column.read ? tabweave.el("div", { class: "quiet small", title: column.read }, column.read) : null);

/* -- parts ----------------------------------------------------------------------------------- */

/* A table that scrolls by itself, by keyboard too, where it is wider than the page. With `keys`, a
   function from a row's number and a column's to what it is sorted by, its heads sort it. */
tabweave.table = (caption, heads, rows, options) => {
  const { classes = "", visible = false, keys = null } = options || {};
  const kind = (i) => (heads[i].number ? "num" : null);
  const body = rows.map((cells) =>
    tabweave.el("tr", { role: "row" }, cells.map((cell, i) =>
      tabweave.el(i ? "td" : "th", {
        role: i ? "cell" : "rowheader", scope: i ? null : "row",
        class: kind(i), "data-label": heads[i].name,
      }, cell))));
  const into = tabweave.el("tbody", { role: "rowgroup" }, body);
  const names = heads.map((head, i) => tabweave.el("th", { scope: "col", role: "columnheader", class: kind(i) },
    keys && !head.fixed ? tabweave.el("button", { type: "button", class: "sort", onclick: () => tabweave.sort(names, body, into, keys, i, heads[i].number) }, head.name) : head.name));
  const table = tabweave.el("table", { role: "table", class: classes },
    tabweave.el("caption", { class: visible ? null : "hidden" }, caption),
    tabweave.el("thead", { role: "rowgroup" }, tabweave.el("tr", { role: "row" }, names)), into);
  const frame = tabweave.scroll(caption, table);
  frame.rows = body;
  return frame;
};

/* Numbers begin with the largest, text with the first; what is missing comes last. */
tabweave.sort = (names, body, into, keys, i, number) => {
  const before = names[i].getAttribute("aria-sort");
  const falling = number ? before !== "descending" : before === "ascending";
  for (const name of names) name.removeAttribute("aria-sort");
  names[i].setAttribute("aria-sort", falling ? "descending" : "ascending");
  const value = body.map((_, row) => keys(row, i));
  const order = body.map((_, row) => row).sort((a, b) => {
    const [p, q] = [value[a], value[b]];
    if (p === null || q === null) return (p === null) - (q === null) || a - b;
    const by = typeof p === "number" && typeof q === "number" ? p - q : String(p).localeCompare(String(q));
    return (falling ? -by : by) || a - b;
  });
  into.append(...order.map((row) => body[row]));
};

/* Only what has to be scrolled is worth a stop of the Tab key. */
tabweave.scroll = (caption, table) => {
  const frame = tabweave.el("div", { class: "scroll" }, table);
  new ResizeObserver(() => {
    const wide = frame.scrollWidth > frame.clientWidth + 1 || frame.scrollHeight > frame.clientHeight + 1;
    for (const [name, value] of [["tabindex", "0"], ["role", "region"], ["aria-label", caption]])
      if (wide) frame.setAttribute(name, value);
      else frame.removeAttribute(name);
  }).observe(frame);
  return frame;
};

tabweave.more = (summary, build) => {
  const details = tabweave.el("details", {}, tabweave.el("summary", {}, summary));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) tabweave.add(details, [build()]);
  });
  return details;
};

let chooserNumber = 0;
tabweave.chooser = (label, options, change) => {
  const id = `choose-${chooserNumber++}`;
  const select = tabweave.el("select", { id }, options.map((name, i) => tabweave.el("option", { value: i }, name)));
  select.addEventListener("change", () => change(Number(select.value)));
  return tabweave.el("span", { class: "chooser" }, tabweave.el("label", { for: id }, label), select);
};

tabweave.bar = (share, mark) =>
  tabweave.el("span", { class: "bar", "aria-hidden": "true" },
    tabweave.el("span", { class: "fill", vars: { "--w": Math.max(0, Math.min(1, share)) } }),
    mark === undefined ? null : tabweave.el("span", { class: "mark", vars: { "--w": Math.min(1, mark) } }));

tabweave.shorten = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

/* How wide letters are is known on the page only: cut the texts of a picture that need more room than there is. */
tabweave.cutTexts = (texts, names, room) => texts.forEach((text, i) => {
  const words = [...text.childNodes].find((node) => node.nodeType === Node.TEXT_NODE);
  for (let n = words.data.length - 1; n > 2 && text.getComputedTextLength() > room(i); n--) words.data = tabweave.shorten(names[i], n);
});

/* Call draw(width) now, and again whenever the width or the colours change. */
tabweave.onLook = (node, draw) => {
  let width = 0;
  const look = () => {
    const now = Math.floor(node.clientWidth);
    if (now > 0 && now !== width) draw((width = now));
  };
  new ResizeObserver(() => requestAnimationFrame(look)).observe(node);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (width) draw(width); });
  look();
};

/* The colours of the page, as it is seen now. */
tabweave.shades = new Map();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => tabweave.shades.clear());
tabweave.colour = (name) => {
  if (!tabweave.shades.has(name)) tabweave.shades.set(name, getComputedStyle(tabweave.root).getPropertyValue(name).trim());
  return tabweave.shades.get(name);
};
tabweave.rgb = (name) => [1, 3, 5].map((i) => parseInt(tabweave.colour(name).slice(i, i + 2), 16));
