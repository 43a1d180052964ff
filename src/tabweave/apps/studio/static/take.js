/* What can be taken along: vectors, models, reports, and the program that makes all of it. */

/* Make a download, and say how it goes beside the button that was pressed. */
studio.download = async (one, kind, name, says) => {
  says.textContent = `Making ${kind} …`;
  try {
    const blob = await (await studio.ask(`/api/jobs/${one.job}/download/${kind}`)).blob();
    tabweave.save(blob, name);
    says.textContent = `${name} is ready, ${studio.size(blob.size)}.`;
  } catch (error) {
    says.textContent = error.message;
  }
};

studio.stem = () => studio.table.name.split("/").pop().replace(/\.gz$/i, "").replace(/\.[^.]*$/, "");

studio.take = () => [
  studio.pair((one) => {
    const says = tabweave.el("p", { class: "small says", role: "status" });
    return [tabweave.el("ul", { class: "downloads" }, studio.facts.downloads.filter((kind) => kind !== "program.py").map((kind) => {
      const [what, form] = kind.split(".");
      const name = `${studio.stem()}-${one.method}-${kind}`;
      return tabweave.el("li", {}, tabweave.el("button", { type: "button", "data-kind": kind, disabled: !one.whole, onclick: () => studio.download(one, kind, name, says) },
        { tabweave: "Model", sql: "SQL", onnx: "ONNX", html: "Report" }[form] || `${what[0].toUpperCase()}${what.slice(1)}, ${form === "csv" ? "CSV" : "Parquet"}`));
    })), says];
  }),
  tabweave.el("div", { class: "code" },
    tabweave.el("div", { class: "acts" }, tabweave.el("b", {}, "Python code for all of this"),
      tabweave.el("span", {}, tabweave.el("span", { id: "copied", class: "quiet small", role: "status" }), tabweave.el("button", { type: "button", id: "copy", onclick: studio.copy }, "Copy"),
        tabweave.el("button", { type: "button", onclick: () => tabweave.save(new Blob([byId("program").textContent], { type: "text/x-python" }), `${studio.stem()}.py`) }, "Download"))),
    tabweave.el("pre", { tabindex: "0", role: "region", "aria-label": "Program" }, tabweave.el("code", { id: "program" })),
    tabweave.el("p", { class: "quiet small" }, "Run it in the folder that holds the file.")),
];

studio.copy = studio.attempt(async () => {
  try {
    await navigator.clipboard.writeText(byId("program").textContent);
    byId("copied").textContent = "Copied.";
  } catch {
    getSelection().selectAllChildren(byId("program"));
    byId("copied").textContent = "Selected; copy it with Ctrl-C.";
  }
});

studio.fillProgram = async () => {
  const [a, b] = studio.state.picked;
  const rows = b === undefined ? "" : `&a=${a}&b=${b}`;
  const { program } = await studio.json(`/api/program?jobs=${studio.shown.map((one) => one.job).join(",")}${rows}`);
  if (byId("program")) byId("program").textContent = program;
};

studio.report = () => {
  const into = tabweave.el("div", {});
  const address = (one) => `/report/${one.job}?token=${encodeURIComponent(studio.facts.token)}`;
  const ready = studio.shown.filter((one) => one.whole);
  const buttons = ready.map((one) => tabweave.el("button", { type: "button", "aria-expanded": "false" }, `Show the report by ${one.method}`));
  buttons.forEach((button, i) => button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") === "true";
    for (const other of buttons) other.setAttribute("aria-expanded", "false");
    button.setAttribute("aria-expanded", String(!open));
    tabweave.fill(into, open ? null : tabweave.el("iframe", { src: address(ready[i]), sandbox: "allow-scripts", title: `Report by ${ready[i].method}` }));
  }));
  return [
    tabweave.el("p", {}, "Columns, couplings, values and odd cells, on a separate page."),
    tabweave.el("div", { class: "choosers" }, ready.map((one, i) => tabweave.el("span", { class: "chooser" }, buttons[i],
      tabweave.el("a", { href: address(one), target: "_blank", rel: "noopener", "aria-label": `Open the report by ${one.method} in a tab` }, "in a tab")))),
    into,
  ];
};

studio.panel({ id: "take", title: "Take along", order: 80, watches: ["picked"], build: (into) => tabweave.fill(into, studio.take()), update: () => studio.fillProgram() });
studio.panel({ id: "whole", title: "Report", order: 90, build: (into) => tabweave.fill(into, studio.report()) });

/* The rows in view as a file. */
studio.saveView = studio.attempt(async () => {
  const quoted = (value) => { const text = value === null ? "" : Array.isArray(value) ? value.join("; ") : String(value); return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; };
  const lines = [];
  for (let offset = 0, total = 1; offset < total; offset += 500) {
    const page = await studio.ofTable("rows", { filters: studio.where(), sort: studio.state.sort, offset, limit: 500 });
    if (!offset) lines.push(["row", ...page.columns].map(quoted).join(","));
    for (const row of page.rows) lines.push([row.row, ...row.cells].map(quoted).join(","));
    total = Math.min(page.total, 100000);
  }
  tabweave.save(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }), `${studio.stem()}-selected.csv`);
});

/* -- begin ----------------------------------------------------------------------------------- */

studio.listen();
studio.attempt(async () => {
  studio.files = (await studio.json("/api/files")).files;
  studio.list();
  if (await studio.recall()) return;
  if (studio.facts.first) await studio.openPath(studio.facts.first);
})();
