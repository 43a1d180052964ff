/* Opening a table, choosing methods, and the work until there is something to show. */

studio.opened = (table, again, origin, view) => {
  if (!table) return;
  if (!again) studio.columns = {};
  const target = again ? byId("target").value : table.target || "";
  Object.assign(studio, { table: { ...table, origin: origin || (studio.table && again ? studio.table.origin : ["upload", table.name]) }, shown: [], maps: [] });
  byId("title").textContent = table.name;
  document.title = `${table.name} – tabweave studio`;
  byId("lead").textContent = `${tabweave.plural(table.columns.length, "column")}.`;
  document.body.classList.add("working");
  byId("open").hidden = true;
  byId("results").hidden = byId("choose").hidden = false;
  tabweave.fill(byId("target"), tabweave.el("option", { value: "" }, "none"), table.columns.map((name) => tabweave.el("option", { value: name }, name)));
  byId("target").value = table.columns.includes(target) ? target : "";
  studio.offer();
  studio.titled();
  byId("encodings").hidden = !table.encoding || table.encoding === "utf-8";
  tabweave.fill(byId("encoding"), studio.facts.encodings.map((name) => tabweave.el("option", { value: name, selected: name === table.encoding }, name)));
  studio.say(`${table.name} is open.`);
  studio.set({ ...studio.START, ...(again ? { picked: studio.state.picked, row: studio.state.row, tab: studio.state.tab } : {}), ...view, source: table.source }, { history: false });
  studio.waiting();
  studio.drawTabs();
  studio.readTable();
  if (!again) byId("question").querySelector("summary").focus({ preventScroll: true });
  if (again) studio.run();
};

/* The rows themselves are there before anything was learned of them. */
studio.readTable = studio.attempt(async () => {
  const table = await studio.latest("table", () => studio.ofTable(""));
  if (!table) return;
  studio.set({ table, groups: table.groups || [] });
  const choices = table.name_choices || [];
  byId("namings").hidden = !choices.length;
  tabweave.fill(byId("naming"), tabweave.el("option", { value: "[]" }, "their numbers"),
    choices.map((names) => tabweave.el("option", { value: JSON.stringify(names), selected: String(names) === String(table.names) }, names.join(" – "))));
});
studio.nameBy = studio.attempt(async () => {
  const { names } = await studio.ofTable("names", { columns: JSON.parse(byId("naming").value) });
  studio.set({ table: { ...studio.state.table, names } });
});

/* What stands where the map will be. */
studio.waiting = () => tabweave.fill(byId("map"), tabweave.el("div", { class: "stage blank" }, tabweave.el("p", { class: "empty" }, "The map appears as soon as the first rows are compared.")));

/* The question in short: what opens to change it. */
studio.titled = () => {
  const [a, b, target] = ["method-a", "method-b", "target"].map((id) => byId(id).value);
  tabweave.fill(byId("question-title"), "Method ", tabweave.el("b", {}, b ? `${a}, ${b}` : a), target ? [", target ", tabweave.el("b", {}, target)] : null);
};

/* Methods that learn from classes need a target. */
studio.offer = () => {
  const { methods, embedders, supervised } = studio.facts;
  const option = (name) => {
    const idle = supervised.includes(name) && !byId("target").value;
    return tabweave.el("option", { value: name, disabled: idle }, idle ? `${name} (needs a target)` : name);
  };
  for (const side of ["a", "b"]) {
    const select = byId(`method-${side}`);
    const before = select.value;
    tabweave.fill(select, side === "b" ? tabweave.el("option", { value: "" }, "none") : null,
      tabweave.el("optgroup", { label: "Learned" }, embedders.map(option)),
      tabweave.el("optgroup", { label: "Measures of values" }, Object.keys(methods).filter((name) => !embedders.includes(name)).map(option)));
    const there = [...select.options].some((o) => o.value === before && !o.disabled);
    select.value = there ? before : side === "a" ? "auto" : "";
    studio.about(side);
  }
};
studio.about = (side) => {
  const select = byId(`method-${side}`);
  const words = select.value ? studio.facts.methods[select.value] : "compare with a second one";
  byId(`about-${side}`).textContent = select.title = words;
};

/* Open something, and look at it with what is chosen by default. */
studio.openAnd = (body, origin, words) => studio.attempt(async () => {
  studio.say(`Opening ${words} …`);
  studio.opened(await body(), false, origin);
  await studio.run();
})();
studio.openPath = (path) => studio.openAnd(() => studio.post("/api/open", { path }), ["file", path], path);
studio.openTable = (table) => studio.openAnd(() => studio.post("/api/open", { table }), ["table", table], table);
studio.upload = (file) => studio.openAnd(async () => {
  if (file.size > studio.facts.limit)
    throw new Error(`${file.name} has ${studio.size(file.size)}; uploads end at ${studio.size(studio.facts.limit)}. Put it into the folder the studio was started in, and open it by its path.`);
  return studio.json(`/api/upload?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
}, ["upload", file.name], file.name);

/* -- work ------------------------------------------------------------------------------------ */

/* Follow a job to its end; say how far it is, how long it took, how long it will. */
studio.follow = async (job, turn, words, bar, part) => {
  let step = "";
  for (;;) {
    if (job.state !== "running" || turn !== studio.turn) return job;
    bar.value = job.done;
    const left = job.done > 0.15 && job.seconds > 2 ? `, about ${studio.seconds((job.seconds * (1 - job.done)) / job.done)} left` : "";
    words.textContent = `${job.method}: ${job.step}, ${tabweave.percent(job.done)}, ${studio.seconds(job.seconds)}${left}`;
    if (job.step !== step) studio.say(`${job.method}: ${(step = job.step)}`);
    if (job.parts.includes("sample") && part) { await part(); part = null; }
    await new Promise((wake) => setTimeout(wake, 150));
    job = await studio.json(`/api/jobs/${job.job}`);
  }
};

studio.work = async (method, side, target, turn) => {
  const letter = studio.letters[side];
  const words = tabweave.el("span", { class: "words" }, `${method}: starting`);
  const bar = tabweave.el("progress", { max: "1", value: "0", "aria-label": `Progress of method ${letter}, ${method}` });
  const cancel = tabweave.el("button", { type: "button", "aria-label": `Cancel method ${letter}, ${method}` }, "Cancel");
  const row = tabweave.el("div", { class: "task" }, words, bar, cancel);
  byId("work").append(row);
  const keep = (job, data, seconds, whole) => { if (turn === studio.turn) studio.arrived(side, { job, method, data, seconds, whole }); };
  try {
    const job = await studio.post("/api/jobs", { source: studio.table.source, method, target: target || null, columns: studio.columns });
    studio.running.add(job.job);
    cancel.addEventListener("click", () => studio.ask(`/api/jobs/${job.job}`, { method: "DELETE" }).catch(studio.problem));
    const ended = await studio.follow(job, turn, words, bar, async () =>
      keep(job.job, await studio.json(`/api/jobs/${job.job}/result?part=sample`), null, false));
    studio.running.delete(job.job);
    if (turn !== studio.turn || ended.state === "cancelled") return null;
    if (ended.state === "failed") throw new Error(`${method}: ${ended.error}`);
    const data = await studio.whole(job.job);
    keep(job.job, data, ended.seconds, true);
    return { job: job.job, side, method, seconds: ended.seconds };
  } finally {
    row.remove();
  }
};

studio.running = new Set();
studio.run = studio.attempt(async () => {
  const turn = ++studio.turn;
  studio.say("Starting …");
  await Promise.all([...studio.running].map((job) => studio.ask(`/api/jobs/${job}`, { method: "DELETE" }).catch(() => null)));
  studio.running.clear();
  byId("work").replaceChildren();
  const target = byId("target").value;
  studio.titled();
  const names = [byId("method-a").value, byId("method-b").value].filter(Boolean);
  studio.arriving = names.map(() => null);
  studio.remember(studio.shown.length > 0);
  const done = await Promise.allSettled(names.map((name, i) => studio.work(name, i, target, turn)));
  if (turn !== studio.turn) return;
  const ready = done.map((one) => one.value).filter(Boolean);
  const failed = done.find((one) => one.status === "rejected");
  if (ready.length && ready.length < names.length) { studio.arriving = studio.arriving.filter(Boolean); studio.show(studio.arriving); }
  if (failed) throw failed.reason;
  if (!ready.length) { studio.say("Cancelled."); return; }
  studio.say(`Ready: ${ready.map((one) => `${one.method} in ${tabweave.number(one.seconds, 2)} s`).join(", ")}.`);
  await Promise.all(ready.map((one) => studio.layouts(one, turn)));
});

/* The description of a job, with the marks of all rows: arrays, of which the first picture needs few. */
studio.whole = async (job) => {
  const part = (name, Kind) => studio.array(`/api/jobs/${job}/map/${name}`, Kind);
  const [data, rows, copies, clusters, flat] = await Promise.all([studio.json(`/api/jobs/${job}/result`), part("rows", Int32Array),
    part("copies", Uint32Array), part("clusters", Uint8Array), part("layout-0", Float32Array)]);
  const [layout] = data.map.layouts;
  Object.assign(data.map, { rows, copies, clusters, layouts: [{ ...layout, points: null, flat }], columns: [], ids: null, odd: null });
  data.map.markOf = await part("row_marks", Int32Array);
  return data;
};

/* Something can be shown of a method: show it once there is something of each. */
studio.arrived = (side, one) => {
  studio.arriving[side] = one;
  if (studio.arriving.every(Boolean)) studio.show([...studio.arriving]);
};

/* The map by neighbourhoods takes longer, and is offered when it is there. */
studio.layouts = async (one, turn) => {
  for (let job = await studio.json(`/api/jobs/${one.job}`); !job.parts.includes("layouts"); job = await studio.json(`/api/jobs/${one.job}`)) {
    await new Promise((wake) => setTimeout(wake, 400));
    if (turn !== studio.turn) return;
  }
  const { layouts, without } = await studio.json(`/api/jobs/${one.job}/result?part=layouts`);
  if (turn !== studio.turn) return;
  const shown = studio.shown.findIndex((each) => each.job === one.job);
  if (shown < 0) return;
  for (const layout of layouts) {
    const flat = await studio.array(`/api/jobs/${one.job}/map/layout-1`, Float32Array);
    if (turn !== studio.turn) return;
    studio.maps[shown].addLayout({ ...layout, points: null, flat });
  }
  studio.offerLayouts(shown === 0 ? without : undefined);
};

/* -- what the page reacts to ----------------------------------------------------------------- */

studio.files = [];
studio.list = () => {
  const part = byId("path").value.toLowerCase();
  const found = studio.files.filter((file) => file.path.toLowerCase().includes(part));
  tabweave.fill(byId("files"), found.length
    ? found.map((file) => tabweave.el("li", {}, tabweave.el("button", { type: "button", onclick: () => studio.openPath(file.path) },
      tabweave.value(file.path), tabweave.el("span", { class: "quiet" }, studio.size(file.size)))))
    : tabweave.el("li", { class: "empty" }, studio.files.length ? "No file name contains that." : "There is no table in this folder."));
};

studio.listen = () => {
  const drop = byId("drop");
  byId("kinds").textContent = `${studio.facts.formats.join(", ")}; up to ${studio.size(studio.facts.limit)}, .gz too`;
  byId("folder").textContent = `Or a file in the folder ${studio.facts.folder}`;
  tabweave.fill(byId("tables"), "Or a built-in table: ", studio.facts.tables.map((name, i) => [i ? ", " : "",
    tabweave.el("button", { type: "button", class: "link", onclick: () => studio.openTable(name) }, name)]));
  byId("pick").addEventListener("click", () => byId("file").click());
  byId("file").addEventListener("change", () => { const [file] = byId("file").files; if (file) studio.upload(file); byId("file").value = ""; });
  for (const name of ["dragenter", "dragover", "dragleave", "drop"])
    document.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", name === "dragenter" || name === "dragover");
      if (name === "drop" && event.dataTransfer.files.length) studio.upload(event.dataTransfer.files[0]);
    });
  byId("again").addEventListener("click", () => {
    byId("open").hidden = !byId("open").hidden;
    document.body.classList.toggle("working", byId("open").hidden);
    if (!byId("open").hidden) byId("pick").focus();
  });
  byId("path").addEventListener("input", studio.list);
  byId("paths").addEventListener("submit", (event) => {
    event.preventDefault();
    const path = byId("path").value.trim();
    if (path) studio.openPath(path);
  });
  byId("target").addEventListener("change", studio.offer);
  byId("encoding").addEventListener("change", studio.attempt(async () => {
    studio.opened(await studio.post("/api/open", { source: studio.table.source, encoding: byId("encoding").value }), true);
  }));
  for (const side of ["a", "b"]) byId(`method-${side}`).addEventListener("change", () => studio.about(side));
  byId("methods").addEventListener("submit", (event) => { event.preventDefault(); byId("question").open = false; studio.run(); });
  byId("naming").addEventListener("change", studio.nameBy);
  document.addEventListener("click", (event) => { if (!byId("question").contains(event.target)) byId("question").open = false; });
  byId("question").addEventListener("keydown", (event) => { if (event.key === "Escape") { byId("question").open = false; byId("question").querySelector("summary").focus(); } });
  studio.splitters();
};
