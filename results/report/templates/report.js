"use strict";
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const MB = 1e6;
  const plots = new Map();
  const scratch = document.createElement("canvas").getContext("2d");
  const sync = uPlot.sync("time");
  const fmt = (v) => (v == null ? "–" : (v / MB).toFixed(2));
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const font = (px) => px + "px " + getComputedStyle(document.documentElement).getPropertyValue("--sans");

  // Labels that would collide go to the next row. `pos` is from seconds to CSS pixels, `right` the plot's edge.
  function rows(marks, pos, right) {
    const ends = [], placed = [];
    scratch.font = font(11.5);
    for (const m of marks.slice().sort((a, b) => a.t - b.t)) {
      const w = scratch.measureText(m.label).width + 8;
      let x = pos(m.t) + 4;
      if (x + w > right) x -= w;
      let row = 0;
      while (row < ends.length && ends[row] > x) row++;
      ends[row] = x + w;
      placed.push({ ...m, x, row });
    }
    return placed;
  }

  function backdrop(c) {
    return (u) => {
      const { ctx, bbox } = u, px = devicePixelRatio;
      const X = (v) => u.valToPos(v, "x", true), Y = (v) => u.valToPos(v, "y", true);
      ctx.save();
      if (c.band) {
        ctx.globalAlpha = 0.2;
        ctx.fillStyle = colour("band");
        ctx.fillRect(X(c.band.start), Y(c.band.high), X(c.band.stop) - X(c.band.start), Y(c.band.low) - Y(c.band.high));
      }
      if (c.bound) {
        ctx.globalAlpha = 0.06;
        ctx.fillStyle = colour("bound");
        ctx.fillRect(bbox.left, bbox.top, bbox.width, Math.max(0, Y(c.bound) - bbox.top));
      }
      ctx.globalAlpha = 1;
      ctx.strokeStyle = colour("mark");
      ctx.lineWidth = px;
      ctx.setLineDash([2 * px, 3 * px]);
      for (const m of c.marks) {
        const x = Math.round(X(m.t)) + 0.5;
        ctx.beginPath(); ctx.moveTo(x, bbox.top - 4 * px); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
      }
      ctx.restore();
    };
  }

  function foreground(c, labelled) {
    return (u) => {
      const { ctx, bbox } = u, px = devicePixelRatio;
      const line = (v, name, dash, width) => {
        const y = Math.round(u.valToPos(v, "y", true)) + 0.5;
        ctx.strokeStyle = colour(name); ctx.lineWidth = width * px; ctx.setLineDash(dash.map((d) => d * px));
        ctx.beginPath(); ctx.moveTo(bbox.left, y); ctx.lineTo(bbox.left + bbox.width, y); ctx.stroke();
      };
      ctx.save();
      line(c.quota, "quota", [6, 4], 1.25);
      if (c.bound) { ctx.lineCap = "round"; line(c.bound, "bound", [0.5, 4.5], 2.2); }
      ctx.setLineDash([]);
      if (labelled) {
        ctx.font = font(11.5 * px); ctx.fillStyle = colour("soft"); ctx.textBaseline = "bottom"; ctx.textAlign = "left";
        const right = (bbox.left + bbox.width) / px;
        for (const m of rows(c.marks, (t) => u.valToPos(t, "x", true) / px, right)) {
          ctx.fillText(m.label, m.x * px, bbox.top - (4 + 15 * m.row) * px);
        }
      }
      ctx.restore();
    };
  }

  function readout(c) {
    const node = document.querySelector(`.readout[data-for="${CSS.escape(c.id)}"]`);
    return (u) => {
      const i = u.cursor.idx;
      if (i == null || u.cursor.left < 0) { node.textContent = node.dataset.rest; return; }
      const parts = [`${c.t[i] >= 0 ? "+" : "−"}${Math.abs(c.t[i]).toFixed(1)} s`, `1 s ${fmt(c.second[i])} MB/s`];
      if (c.kind === "throttled") parts.push(`${c.window_s} s ${fmt(c.window[i])} MB/s`);
      node.textContent = parts.join("  ·  ");
    };
  }

  function draw(c, index) {
    const host = document.getElementById("plot-" + c.id);
    const width = Math.max(240, host.clientWidth), narrow = width < 560;
    const labelled = index === 0, control = c.kind === "control";
    const top = Math.max(c.quota * 1.15, (c.bound || 0) * 1.08, ...c.second.map((v) => (v || 0) * 1.05));
    const left = narrow ? 36 : 72, inner = width - left - 6;
    const used = rows(c.marks, (t) => left + (t - c.start) / (c.stop - c.start) * inner, width - 6);
    const above = labelled ? 10 + 15 * Math.max(1, ...used.map((m) => m.row + 1)) : 8;
    const axis = { stroke: colour("soft"), font: font(12), grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false } };
    const series = [{}, { stroke: colour(control ? "control" : "second"), width: control ? 2 : 1.5, points: { show: false } }];
    const data = [c.t, c.second];
    if (!control) { series.push({ stroke: colour("mean"), width: 2.75, points: { show: false } }); data.push(c.window); }
    const options = {
      width, height: (control ? (narrow ? 150 : 170) : narrow ? 240 : 300) + above,
      padding: [above, 6, 0, 0],
      legend: { show: false },
      cursor: { sync: { key: sync.key }, y: false, drag: { x: true, y: false, uni: 20 }, points: { size: 7, fill: (u, i) => u.series[i].stroke(u, i) } },
      scales: { x: { time: false, range: (u, lo, hi) => (lo === c.t[0] && hi === c.t[c.t.length - 1] ? [c.start, c.stop] : [lo, hi]) }, y: { range: [0, top] } },
      axes: [
        { ...axis, size: 30, space: narrow ? 44 : 60, values: (u, v) => v.map((x) => (x < 0 ? "−" + -x : x) + " s") },
        { ...axis, size: left, space: 34, values: (u, v) => v.map((x, i) => x / MB + (!narrow && i === v.length - 1 ? " MB/s" : "")) },
      ],
      series,
      hooks: { drawClear: [backdrop(c)], draw: [foreground(c, labelled)], setCursor: [readout(c)] },
    };
    plots.get(c.id)?.destroy();
    plots.set(c.id, new uPlot(options, data, host));
  }

  const all = () => charts.forEach(draw);
  let seen = 0;
  new ResizeObserver(() => {
    const width = document.querySelector("main").clientWidth;
    if (width !== seen) { seen = width; all(); }
  }).observe(document.querySelector("main"));
  dark.addEventListener("change", all);
  addEventListener("beforeprint", all);
  addEventListener("afterprint", all);
})();
