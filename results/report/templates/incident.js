"use strict";
(() => {
  const { panels, marks } = JSON.parse(document.getElementById("charts").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const plots = new Map();
  const sync = uPlot.sync("time");
  const scratch = document.createElement("canvas").getContext("2d");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const palette = ["mean", "bound", "band", "control", "second", "inconclusive"];
  const font = (px) => px + "px " + colour("sans");
  const stroke = (line, i) => (line.style === "dashed" ? colour("quota") : colour(palette[i % palette.length]));
  const start = Math.min(0, ...panels.map((p) => p.start)), stop = Math.max(1, ...panels.map((p) => p.stop));

  // Labels that would collide go to the next row.
  function placed(pos, right) {
    const ends = [];
    scratch.font = font(11.5);
    return marks.slice().sort((a, b) => a.t - b.t).map((m) => {
      const w = scratch.measureText(m.label).width + 8;
      let x = pos(m.t) + 4;
      if (x + w > right) x -= w;
      let row = 0;
      while (row < ends.length && ends[row] > x) row++;
      ends[row] = x + w;
      return { ...m, x, row };
    });
  }

  function drawMarks(labelled) {
    return (u) => {
      const { ctx, bbox } = u, px = devicePixelRatio;
      ctx.save();
      ctx.strokeStyle = colour("mark"); ctx.lineWidth = px; ctx.setLineDash([2 * px, 3 * px]);
      for (const m of marks) {
        const x = Math.round(u.valToPos(m.t, "x", true)) + 0.5;
        if (x < bbox.left || x > bbox.left + bbox.width) continue;
        ctx.beginPath(); ctx.moveTo(x, bbox.top - 4 * px); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
      }
      if (labelled) {
        ctx.font = font(11.5 * px); ctx.fillStyle = colour("soft"); ctx.textBaseline = "bottom"; ctx.textAlign = "left";
        for (const m of placed((t) => u.valToPos(t, "x", true) / px, (bbox.left + bbox.width) / px)) {
          ctx.fillText(m.label, m.x * px, bbox.top - (4 + 15 * m.row) * px);
        }
      }
      ctx.restore();
    };
  }

  function readout(p) {
    const node = document.querySelector(`.readout[data-for="${CSS.escape(p.id)}"]`);
    return (u) => {
      const i = u.cursor.idx;
      if (i == null || u.cursor.left < 0) { node.textContent = p.unit; return; }
      const known = p.lines.filter((l) => l.values[i] != null).map((l) => `${l.label} ${+l.values[i].toPrecision(4)} ${p.unit}`);
      node.textContent = [`${p.t[i].toFixed(1)} s`, ...known].join("  ·  ");
    };
  }

  function draw(p, index) {
    const host = document.getElementById("plot-" + p.id);
    const width = Math.max(240, host.clientWidth), narrow = width < 560, left = narrow ? 40 : 56;
    const rows = placed((t) => left + (t - start) / (stop - start) * (width - left - 6), width - 6).map((m) => m.row + 1);
    const above = index === 0 ? 10 + 15 * Math.max(1, ...rows) : 8;
    const top = Math.max(1e-9, ...p.lines.flatMap((l) => l.values).filter((v) => v != null)) * 1.08;
    const axis = { stroke: colour("soft"), font: font(12), grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false } };
    const stepped = uPlot.paths.stepped({ align: 1 });
    const series = p.lines.map((l, i) => ({
      stroke: stroke(l, i), width: l.style === "dashed" ? 1.5 : 2, dash: l.style === "dashed" ? [6, 4] : undefined,
      paths: l.style === "line" ? undefined : stepped, spanGaps: true, points: { show: false },
    }));
    document.querySelectorAll(`[data-key="${CSS.escape(p.id)}"] .swatch`).forEach((s, i) => {
      s.style.color = stroke(p.lines[i], i); s.style.borderTopStyle = p.lines[i].style === "dashed" ? "dashed" : "solid";
    });
    plots.get(p.id)?.destroy();
    plots.set(p.id, new uPlot({
      width, height: (index === 0 ? 250 : 150) + above, padding: [above, 6, 0, 0], legend: { show: false },
      cursor: { sync: { key: sync.key }, y: false, drag: { x: true, y: false, uni: 20 } },
      scales: { x: { time: false, range: (u, lo, hi) => (lo === p.t[0] && hi === p.t[p.t.length - 1] ? [start, stop] : [lo, hi]) }, y: { range: [0, top] } },
      axes: [
        { ...axis, size: 30, space: narrow ? 44 : 60, values: (u, v) => v.map((x) => (x < 0 ? "−" + -x : x) + " s") },
        { ...axis, size: left, space: 30 },
      ],
      series: [{}, ...series],
      hooks: { drawClear: [drawMarks(index === 0)], setCursor: [readout(p)] },
    }, [p.t, ...p.lines.map((l) => l.values)], host));
  }

  const all = () => panels.forEach(draw);
  let seen = 0;
  new ResizeObserver(() => {
    const width = document.querySelector("main").clientWidth;
    if (width !== seen) { seen = width; all(); }
  }).observe(document.querySelector("main"));
  dark.addEventListener("change", all);
  addEventListener("beforeprint", all);
  addEventListener("afterprint", all);
})();
