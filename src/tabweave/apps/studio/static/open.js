/* Opening a table, choosing methods, and the work until there is something to show. */

studio.opened = (table) => {
  Object.assign(studio, { table, shown: [], picked: [] });
  byId("title").textContent = table.name;
  byId("lead").textContent = `${tabweave.plural(table.columns.length, "column")}. Choose a target if there is one, and what rows are compared by.`;
  byId("results").hidden = byId("open").hidden = true;
  byId("again").hidden = false;
  byId("choose").hidden = false;
  tabweave.fill(byId("target"), tabweave.el("option", { value: "" }, "none"), table.columns.map((name) => tabweave.el("option", { value: name }, name)));
  studio.offer();
  const heads = table.columns.slice(0, 40).map((name) => ({ name }));
  tabweave.fill(byId("preview"), tabweave.el("summary", {}, "First rows"),
    tabweave.table(`First rows of ${table.name}`, heads, table.preview.map((row) => row.map(tabweave.value))));
  byId("preview").open = true;
  studio.say(`${table.name} is open.`);
  byId("choose").scrollIntoView({ block: "nearest" });
  byId("target").focus({ preventScroll: true });
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
  const name = byId(`method-${side}`).value;
  byId(`about-${side}`).textContent = name ? studio.facts.methods[name] : "compare with a second one";
};

studio.openPath = studio.attempt(async (path) => {
  studio.say(`Opening ${path} …`);
  studio.opened(await studio.post("/api/open", { path }));
});

studio.upload = studio.attempt(async (file) => {
  if (file.size > studio.facts.limit)
    throw new Error(`${file.name} has ${studio.size(file.size)}; uploads end at ${studio.size(studio.facts.limit)}. Put it into the folder the studio was started in, and open it by its path.`);
  studio.say(`Reading ${file.name} …`);
  studio.opened(await studio.json(`/api/upload?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file }));
});

/* -- work ------------------------------------------------------------------------------------ */

studio.follow = async (job, row, words, bar) => {
  let step = "";
  for (;;) {
    if (job.state !== "running") return job;
    bar.value = job.done;
    words.textContent = `${job.method}: ${job.step}, ${tabweave.percent(job.done)}, ${Math.round(job.seconds)} s`;
    if (job.step !== step) studio.say(`${job.method}: ${(step = job.step)}`);
    await new Promise((wake) => setTimeout(wake, 250));
    job = await studio.json(`/api/jobs/${job.job}`);
  }
};

studio.work = async (method, letter, target) => {
  const words = tabweave.el("span", { class: "words" }, `${method}: starting`);
  const bar = tabweave.el("progress", { max: "1", value: "0", "aria-label": `Progress of method ${letter}, ${method}` });
  const cancel = tabweave.el("button", { type: "button", "aria-label": `Cancel method ${letter}, ${method}` }, "Cancel");
  const row = tabweave.el("div", { class: "task" }, words, bar, cancel);
  byId("work").append(row);
  try {
    const job = await studio.post("/api/jobs", { source: studio.table.source, method, target: target || null });
    cancel.addEventListener("click", () => studio.ask(`/api/jobs/${job.job}`, { method: "DELETE" }).catch(studio.problem));
    const ended = await studio.follow(job, row, words, bar);
    if (ended.state === "cancelled") return null;
    if (ended.state === "failed") throw new Error(`${method}: ${ended.error}`);
    const data = await studio.json(`/api/jobs/${job.job}/result`);
    return { job: job.job, method, data, seconds: ended.seconds };
  } finally {
    row.remove();
  }
};

studio.run = studio.attempt(async () => {
  const target = byId("target").value;
  const names = [byId("method-a").value, byId("method-b").value].filter(Boolean);
  byId("run").disabled = true;
  byId("preview").open = false;
  try {
    const done = await Promise.allSettled(names.map((name, i) => studio.work(name, studio.letters[i], target)));
    const shown = done.map((one) => one.value).filter(Boolean);
    if (shown.length) studio.show(shown);
    else studio.say("Cancelled.");
    const failed = done.find((one) => one.status === "rejected");
    if (failed) throw failed.reason;
  } finally {
    byId("run").disabled = false;
  }
});

/* -- what the page reacts to ----------------------------------------------------------------- */

studio.files = [];
studio.list = () => {
  const part = byId("path").value.toLowerCase();
  const found = studio.files.filter((file) => file.path.toLowerCase().includes(part));
  tabweave.fill(byId("files"), found.length
    ? found.map((file) => tabweave.el("li", {}, tabweave.el("button", { type: "button", onclick: () => studio.openPath(file.path) },
      tabweave.value(file.path), tabweave.el("span", { class: "quiet" }, studio.size(file.size)))))
    : tabweave.el("li", { class: "empty" }, studio.files.length ? "No name here has that in it." : "There is no table in this folder."));
};

studio.listen = () => {
  const drop = byId("drop");
  byId("kinds").textContent = `${studio.facts.kinds.join(", ")}; up to ${studio.size(studio.facts.limit)}, .gz too`;
  byId("folder").textContent = `Or a file of the folder ${studio.facts.folder}`;
  byId("pick").addEventListener("click", () => byId("file").click());
  byId("file").addEventListener("change", () => { const [file] = byId("file").files; if (file) studio.upload(file); byId("file").value = ""; });
  for (const name of ["dragenter", "dragover", "dragleave", "drop"])
    document.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", name === "dragenter" || name === "dragover");
      if (name === "drop" && event.dataTransfer.files.length) studio.upload(event.dataTransfer.files[0]);
    });
  byId("again").addEventListener("click", () => {
    byId("open").hidden = false;
    byId("again").hidden = true;
    byId("pick").focus();
  });
  byId("path").addEventListener("input", studio.list);
  byId("paths").addEventListener("submit", (event) => {
    event.preventDefault();
    const path = byId("path").value.trim();
    if (path) studio.openPath(path);
  });
  byId("target").addEventListener("change", studio.offer);
  for (const side of ["a", "b"]) byId(`method-${side}`).addEventListener("change", () => studio.about(side));
  byId("methods").addEventListener("submit", (event) => { event.preventDefault(); studio.run(); });
};
