(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("nights").textContent);
  const $ = (query, root = document) => root.querySelector(query);
  const order = Object.keys(data.words);
  const waits = (series) => series.changes.filter((c) => c.reason == null).length;
  const rows = data.scenarios.flatMap((scenario) => scenario.series.map((series) => ({
    scenario, series,
    text: `${series.metric} ${scenario.name} ${Object.entries(scenario.parameters).map((p) => p.join("=")).join(" ")} ${series.id}`.toLowerCase(),
    versions: new Set(scenario.kafka.filter((_, i) => series.values[i] != null)),
  }))).sort((a, b) => order.indexOf(a.series.verdict) - order.indexOf(b.series.verdict) || waits(b.series) - waits(a.series));
  let colours = {};
  const colour = (name) => colours[name] ??= getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const sign = (text) => text.replace("-", "−");
  const percent = (v) => sign((v >= 0 ? "+" : "") + (100 * v).toFixed(1) + " %");
  const number = (v) => (v == null ? "–" : sign(String(+v.toPrecision(4))));
  const element = (tag, cls, text) => {
    const made = document.createElement(tag);
    if (cls) made.className = cls;
    if (text != null) made.textContent = text;
    return made;
  };
  const icons = Object.fromEntries([...$("#icons").content.children].map((e) => [e.dataset.state, e.firstElementChild]));
  const version = (i) => data.versions[i].replace(/^(?=\d)/, "Kafka ");
  const kind = (change) => (change.cause ? "env" : change.worse ? "worse" : "better");
  const tint = (change) => colour({ env: "inconclusive", worse: "fail", better: "pass" }[kind(change)]);
  const newest = (series) => series.changes.find((c) => c.tonight);

  // Five values from low to high, with as many digits as tell them apart.
  function axis(low, high) {
    const largest = Math.max(Math.abs(low), Math.abs(high));
    const digits = Math.min(15, Math.max(4, Math.ceil(Math.log10(4 * largest / (high - low))) + 2));
    return [0, 1, 2, 3, 4].map((k) => low + (high - low) * k / 4).map((v) => [v, sign(String(+v.toPrecision(digits)))]);
  }

  // One chart for both sizes: points, the level between changes, a line where each change begins and where the version changed.
  function draw(canvas, row, big, at, [width, height] = [canvas.clientWidth, canvas.clientHeight]) {
    const px = devicePixelRatio || 1;
    if (!width) return null;
    canvas.width = width * px; canvas.height = height * px;
    const ctx = canvas.getContext("2d"), { values, levels, changes } = row.series, versions = row.scenario.kafka;
    ctx.scale(px, px);
    const known = values.filter((v) => v != null);
    if (!known.length) return null;
    ctx.font = `12px ${colour("sans")}`;
    let low = Math.min(...known), high = Math.max(...known);
    if (low === high) { low -= Math.abs(low) * 0.05 || 1; high += Math.abs(high) * 0.05 || 1; }
    const scale = big ? axis(low, high) : [], room = Math.max(0, ...scale.map(([, label]) => ctx.measureText(label).width));
    const left = big ? Math.max(64, room + 14) : 2, right = width - (big ? 8 : 4), top = big ? 26 : 5, bottom = height - (big ? 26 : 5);
    const first = values.findIndex((v) => v != null), count = values.length;
    const X = (i) => left + (i - first + 0.5) / (count - first) * (right - left);
    const Y = (v) => bottom - (v - low) / (high - low) * (bottom - top);
    const line = (x, name, dash, wide) => {
      ctx.strokeStyle = name; ctx.lineWidth = wide; ctx.setLineDash(dash);
      ctx.beginPath(); ctx.moveTo(x, big ? top - 8 : 0); ctx.lineTo(x, big ? bottom + 4 : height); ctx.stroke(); ctx.setLineDash([]);
    };
    ctx.fillStyle = colour("soft"); ctx.textBaseline = "middle";
    if (big) {
      ctx.strokeStyle = colour("grid"); ctx.lineWidth = 1; ctx.textAlign = "right";
      for (const [v, label] of scale) {
        const y = Math.round(Y(v)) + 0.5;
        ctx.beginPath(); ctx.moveTo(left, y); ctx.lineTo(right, y); ctx.stroke();
        ctx.fillText(label, left - 8, y);
      }
    }
    let label = -99, before = null;
    for (let i = first; i < count; i++) {
      if (values[i] == null) continue;
      if (before == null || versions[i] !== before) {
        if (before != null) line((X(i) + X(i - 1)) / 2, colour("mark"), [1.5, 3], 1);
        const name = data.versions[versions[i]], wide = ctx.measureText(name).width;
        if (big && X(i) > label && X(i) + wide < right) {
          ctx.textAlign = "left"; ctx.fillStyle = colour("soft"); ctx.fillText(name, X(i), height - 9);
          label = X(i) + wide + 10;
        }
      }
      before = versions[i];
    }
    ctx.lineCap = "round"; ctx.strokeStyle = colour("second"); ctx.lineWidth = big ? 3 : 2.5;
    for (const [a, b, v] of levels) {
      ctx.beginPath(); ctx.moveTo(X(Math.max(a, first) - 0.4), Y(v)); ctx.lineTo(X(b + 0.4), Y(v)); ctx.stroke();
    }
    for (const change of changes) if (change.at != null && change.at >= first) {
      const x = (X(change.at) + X(change.at - 1)) / 2;
      line(x, tint(change), [], change.tonight ? 2.5 : 1.5);
      if (big) {
        ctx.fillStyle = tint(change); ctx.textAlign = x > width / 2 ? "right" : "left";
        ctx.fillText(change.effect == null ? change.kind : percent(change.effect), x + (x > width / 2 ? -5 : 5), top - 14);
      }
    }
    ctx.fillStyle = colour("mean");
    const size = big ? 2.6 : Math.max(1.1, Math.min(1.9, (right - left) / (count - first) / 2.6));
    ctx.beginPath();
    for (let i = first; i < count; i++) if (values[i] != null) {
      const radius = i === at ? size * 2 : size;
      ctx.moveTo(X(i) + radius, Y(values[i])); ctx.arc(X(i), Y(values[i]), radius, 0, 7);
    }
    ctx.fill();
    return { index: (x) => Math.max(first, Math.min(count - 1, Math.round((x - left) / (right - left) * (count - first) + first - 0.5))) };
  }

  function says(series) {
    const change = newest(series);
    if (change) return [change.effect == null ? change.kind : percent(change.effect), change.cause || `${change.kind}, p ${+change.p.toPrecision(2)}`];
    const open = waits(series);
    const rest = series.verdict === "OK" ? (series.detectable == null ? "" : `would see ${percent(series.detectable)} in 10 runs`) : series.why;
    return [data.words[series.verdict], open ? `${open} open; ${rest}` : rest];
  }

  // The list: rows of one height, and only those near the window exist.
  const list = $("#list"), alive = new Map(), narrow = matchMedia("(max-width: 760px)");
  let shown = rows;
  const tall = () => (narrow.matches ? 128 : 76);
  function make(index) {
    const row = shown[index], { series, scenario } = row, state = data.states[series.verdict];
    const item = element("div", "item"), made = element("button", "row " + state);
    made.type = "button"; made.dataset.index = index; item.append(made);
    item.setAttribute("role", "listitem"); item.setAttribute("aria-posinset", index + 1); item.setAttribute("aria-setsize", shown.length);
    const mark = element("span", "mark"); mark.append(icons[state].cloneNode(true)); mark.title = data.words[series.verdict];
    const name = element("span", "name"); name.append(element("b", "", series.metric), element("small", "", scenario.name));
    const told = says(series), text = element("span", "says"); text.append(element("b", "", told[0]), element("small", "", told[1]));
    made.setAttribute("aria-label", `${data.words[series.verdict]}: ${series.metric}, ${scenario.name}. ${told.join(", ")}`);
    const canvas = element("canvas");
    narrow.matches ? made.append(mark, name, text, canvas) : made.append(mark, name, canvas, text);
    item.style.top = index * tall() + "px";
    return item;
  }
  function fill() {
    const height = tall(), begin = list.getBoundingClientRect().top;
    const from = Math.max(0, Math.floor((-begin - 400) / height)), to = Math.min(shown.length, Math.ceil((innerHeight - begin + 400) / height));
    for (const [index, node] of alive) if (index < from || index >= to) {
      if (node.contains(document.activeElement)) continue;
      node.remove(); alive.delete(index);
    }
    const fresh = [];
    for (let index = from; index < to; index++) if (!alive.has(index)) { alive.set(index, make(index)); fresh.push(index); }
    if (!fresh.length) return;
    // All at once, and measured once: asking each for its size would lay the page out as many times.
    // Each where it belongs: the keyboard and screen readers follow this order, not by places.
    let next = null;
    for (const index of [...alive.keys()].sort((a, b) => b - a)) {
      const node = alive.get(index);
      if (!node.isConnected) list.insertBefore(node, next);
      next = node;
    }
    const one = $("canvas", alive.get(fresh[0])), size = [one.clientWidth, one.clientHeight];
    for (const index of fresh) draw($("canvas", alive.get(index)), shown[index], false, undefined, size);
  }
  function redrawAll() {
    for (const node of alive.values()) node.remove();
    alive.clear(); colours = {};
    list.style.height = shown.length * tall() + "px";
    fill();
  }
  let waiting = false;
  const soon = () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; fill(); }); } };
  addEventListener("scroll", soon, { passive: true });

  const form = $("#filters"), field = form.elements;
  const options = (select, words) => { for (const [value, text] of words) select.append(new Option(text, value)); };
  const counted = (word) => rows.filter((r) => r.series.verdict === word).length;
  options(field.verdict, order.filter(counted).map((word) => [word, `${data.words[word]} (${counted(word)})`]));
  options(field.experiment, [...new Set(data.scenarios.map((s) => s.experiment))].sort().map((name) => [name, name]));
  options(field.version, data.versions.map((name, i) => [i, name]));
  function filter() {
    const verdict = field.verdict.value, experiment = field.experiment.value, version = field.version.value;
    const words = field.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    shown = rows.filter((r) => (!verdict || r.series.verdict === verdict) && (!experiment || r.scenario.experiment === experiment)
      && (version === "" || r.versions.has(+version)) && words.every((word) => r.text.includes(word)));
    field.count.value = `${shown.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} series`;
    redrawAll();
  }
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());

  const detail = $("#detail");
  const run = (id) => {
    if (!data.links[id]) return element("code", "", id);
    const link = element("a", "", id); link.href = data.links[id]; return link;
  };
  function pairs(title, values) {
    const part = element("section"), found = element("dl", "list");
    part.append(element("h4", "", title), found);
    for (const [name, value] of Object.entries(values)) {
      const line = element("div"); line.append(element("dt", "", name), element("dd", "", value)); found.append(line);
    }
    return part;
  }
  // Runs down, metrics across; a change is a line in the column of its metric.
  function table(row) {
    const { scenario, series } = row, host = element("div", "history"), made = element("table"), head = element("tr");
    for (const name of ["Run", "Version"]) head.append(element("th", "", name));
    for (const s of scenario.series) head.append(element("th", s === series ? "chosen" : "", s.metric + (s.unit ? ` (${s.unit})` : "")));
    made.append(element("thead")); made.firstChild.append(head);
    const body = element("tbody"); made.append(body);
    for (let i = scenario.ids.length - 1; i >= 0; i--) {
      const line = element("tr"), first = element("td"); first.append(run(scenario.ids[i]));
      line.append(first, element("td", "", data.versions[scenario.kafka[i]]));
      for (const s of scenario.series) {
        // Newest on top: the line stands between the first bad run and the last good one below it.
        const change = s.changes.find((c) => c.at === i + 1), cell = element("td", s === series ? "chosen" : "", number(s.values[i]));
        if (change) { cell.classList.add("break", kind(change)); cell.title = change.cause || change.reason || ""; }
        line.append(cell);
      }
      body.append(line);
    }
    host.append(made);
    return host;
  }
  function open(row) {
    const { series, scenario } = row, body = $(".body", detail), title = $("#detail-title");
    title.replaceChildren(series.metric + (series.unit ? ` (${series.unit})` : ""), element("small", "", `${scenario.name} · ${data.words[series.verdict]} · ${series.id}`));
    const canvas = element("canvas", "big"), readout = element("p", "readout", "");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${series.metric}, run by run. The same figures are in the table below.`);
    body.replaceChildren(canvas, readout);
    for (const change of series.changes.slice().reverse()) {
      const words = element("p", "words" + (change.worse && !change.cause ? " fail" : ""));
      const span = change.interval ? ` (${percent(change.interval[0])} to ${percent(change.interval[1])})` : "";
      words.append(`${change.tonight ? "Tonight: " : ""}${change.kind}, ${number(change.before)} → ${number(change.after)}${change.effect == null ? "" : ", " + percent(change.effect) + span}, p ${number(change.p)}; first bad `,
        run(change.first_bad), ", last good ", run(change.last_good), change.cause ? `. The machine's: ${change.cause}` : "", change.reason == null ? "" : `. Acknowledged: ${change.reason}`);
      body.append(words);
    }
    if (!series.changes.length) body.append(element("p", "words", series.why || "No change was reported."));
    body.append(element("h4", "", "Runs"), table(row));
    const two = element("div", "pair"); two.append(pairs("Environment", scenario.environment), pairs("Parameters", scenario.parameters));
    body.append(two);
    if (!detail.open) detail.showModal();
    detail.scrollTop = 0;
    let plot = draw(canvas, row, true);
    const rest = `${series.values.filter((v) => v != null).length} runs; newest on the right`;
    readout.textContent = rest;
    canvas.onpointermove = (event) => {
      if (!plot) return;
      const i = plot.index(event.offsetX);
      readout.textContent = `${scenario.ids[i]} · ${version(scenario.kafka[i])} · ${number(series.values[i])} ${series.unit}`;
      draw(canvas, row, true, i);
    };
    canvas.onpointerleave = () => { readout.textContent = rest; draw(canvas, row, true); };
    redraw = () => { plot = draw(canvas, row, true); };
  }
  let redraw = null;
  detail.addEventListener("close", () => { redraw = null; });
  $(".close", detail).addEventListener("click", () => detail.close());
  detail.addEventListener("click", (event) => { if (event.target === detail) detail.close(); });
  list.addEventListener("click", (event) => { const node = event.target.closest(".row"); if (node) open(shown[node.dataset.index]); });
  for (const button of document.querySelectorAll("button.open")) {
    button.addEventListener("click", () => open(rows.find((r) => r.series.id === button.dataset.series)));
  }

  let wide = 0;
  new ResizeObserver(() => { if (list.clientWidth !== wide) { wide = list.clientWidth; redrawAll(); redraw?.(); } }).observe(list);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { redrawAll(); redraw?.(); });
  filter();
})();
