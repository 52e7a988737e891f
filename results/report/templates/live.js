// The live view: asks for the readings since the last one, and draws the last ten minutes.
(() => {
  "use strict";
  const KEPT = 600, ASK_MS = 1000;
  const readings = [], changes = [];
  const byId = (id) => document.getElementById(id);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const mb = (v) => (v == null ? "–" : (v / 1e6).toFixed(v < 1e7 ? 2 : 1));
  const share = (v, most) => (v == null || !most ? "–" : (100 * v / most).toFixed(0) + " %");
  const clock = (seconds) => new Date(seconds * 1000).toISOString().slice(11, 19);
  const lower = (a, b) => (a == null ? b : b == null ? a : Math.min(a, b));
  const element = (tag, text) => { const made = document.createElement(tag); made.textContent = text; return made; };
  const plots = new Map();

  function moveText({ move, problem }) {
    if (problem) return "The cluster does not answer";
    if (move == null) return "No partition moves";
    const left = (move.lag_bytes / 1e6).toFixed(1) + " MB left";
    const when = move.stalled ? ", stalled" : move.remaining_s == null ? "" : ", about " + Math.round(move.remaining_s) + " s";
    return `${move.partitions_done} of ${move.partitions} partitions have moved, ${left}${when}`;
  }

  function syncText(reading) {
    if (reading.problem) return reading.problem;
    if (!reading.under_replicated) return "All replicas are in sync.";
    return `${reading.under_replicated} of ${reading.partitions} partitions lack replicas in sync.`;
  }

  function table(reading) {
    byId("brokers").replaceChildren(...reading.brokers.map((b) => {
      const row = document.createElement("tr");
      row.className = b.serves === false ? "down" : "";
      const head = element("th", b.serves === false ? b.host + " (does not serve)" : b.host);
      head.scope = "row";
      const cells = [mb(b.sent), share(b.sent, b.sends_at_most), mb(b.received), share(b.received, b.receives_at_most),
        mb(b.leader_rate), mb(b.leader_quota), mb(b.follower_rate), mb(b.follower_quota),
        b.produce_p99_ms == null ? "–" : b.produce_p99_ms.toFixed(0)];
      row.append(head, ...cells.map((text) => element("td", text)));
      return row;
    }));
  }

  function plot(host) {
    const figure = document.createElement("figure"), caption = document.createElement("figcaption");
    const place = document.createElement("div");
    caption.append(element("h3", host));
    place.className = "plot";
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", `Throttled replication of ${host}. The newest values are in the table of brokers.`);
    figure.append(caption, place);
    byId("charts").append(figure);
    const axis = { stroke: () => colour("soft"), grid: { stroke: () => colour("grid"), width: 1 }, ticks: { show: false } };
    const line = (name, width, more) => ({ stroke: () => colour(name), width, points: { show: false }, ...more });
    return new uPlot({
      width: Math.max(240, place.clientWidth), height: 180, legend: { show: false },
      axes: [{ ...axis, size: 30, space: 70, values: (u, v) => v.map(clock) }, { ...axis, size: 64, values: (u, v) => v.map((x) => x + " MB/s") }],
      scales: { y: { range: (u, lo, hi) => [0, Math.max(1, hi || 0) * 1.08] } },
      series: [{}, line("mean", 2), line("control", 2, { dash: [2, 3] }), line("quota", 1.5, { dash: [6, 4] })],
    }, [[], [], [], []], place);
  }

  function draw() {
    const last = readings[readings.length - 1], t = readings.map((r) => r.at_us / 1e6);
    last.brokers.forEach((broker, i) => {
      if (!plots.has(broker.host)) plots.set(broker.host, plot(broker.host));
      const of = (value) => readings.map((r) => { const v = value(r.brokers[i]); return v == null ? null : v / 1e6; });
      plots.get(broker.host).setData([t, of((b) => b.leader_rate), of((b) => b.follower_rate),
        of((b) => lower(b.leader_quota, b.follower_quota))]);
    });
  }

  function show() {
    const last = readings[readings.length - 1];
    byId("clock").textContent = clock(last.at_us / 1e6) + " UTC";
    byId("move").textContent = moveText(last);
    byId("sync").textContent = syncText(last);
    table(last);
    draw();
    byId("changes").replaceChildren(...changes.slice(-50).reverse().map((c) => {
      const item = document.createElement("li");
      item.append(element("time", c.clock), c.text);
      return item;
    }));
  }

  async function ask() {
    try {
      const since = readings.length ? readings[readings.length - 1].at_us : 0;
      const state = await (await fetch("state?since=" + since)).json();
      readings.push(...state.readings);
      readings.splice(0, readings.length - KEPT);
      changes.push(...state.changes);
      changes.splice(0, changes.length - KEPT);
      if (state.readings.length) show();
    } catch {
      byId("clock").textContent = "the view has ended";
    }
    setTimeout(ask, ASK_MS);
  }

  addEventListener("resize", () => plots.forEach((u) => u.setSize({ width: u.root.parentNode.clientWidth, height: 180 })));
  ask();
})();
