// What the charts of all pages have in common: colours, the time axis with its marks, one cursor, drawing again.
const chart = (() => {
  "use strict";
  const plots = new Map();
  const sync = uPlot.sync("time");
  const scratch = document.createElement("canvas").getContext("2d");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const font = (px) => px + "px " + colour("sans");
  const signed = (v) => (v < 0 ? "−" + -v : "" + v);

  const wide = (label) => scratch.measureText(label).width + 8;

  // Labels that would collide go to the next row. One wider than the picture is cut: the table of the timeline has it.
  // `pos` is from seconds to CSS pixels, `right` the plot's edge.
  function placed(marks, pos, right) {
    const ends = [];
    scratch.font = font(11.5);
    return marks.slice().sort((a, b) => a.t - b.t).map((m) => {
      let label = m.label, w = wide(label);
      while (w > right && label.length > 1) { label = label.slice(0, -2) + "…"; w = wide(label); }
      let x = pos(m.t) + 4;
      if (x + w > right) x = x >= w ? x - w : right - w;
      let row = 0;
      while (row < ends.length && ends[row] > x) row++;
      ends[row] = x + w;
      return { ...m, label, x, row };
    });
  }

  // How much room the labels need above a plot of this width; the first plot of a page carries them.
  function above(marks, labelled, width, left, start, stop) {
    if (!labelled) return 8;
    const pos = (t) => left + (t - start) / (stop - start) * (width - left - 6);
    return 10 + 15 * Math.max(1, ...placed(marks, pos, width - 6).map((m) => m.row + 1));
  }

  // Those of the part that is zoomed into.
  const within = (u, marks) => marks.filter((m) => m.t >= u.scales.x.min && m.t <= u.scales.x.max);

  function markLines(u, marks) {
    const { ctx, bbox } = u, px = devicePixelRatio;
    ctx.save();
    ctx.strokeStyle = colour("mark"); ctx.lineWidth = px; ctx.setLineDash([2 * px, 3 * px]);
    for (const m of within(u, marks)) {
      const x = Math.round(u.valToPos(m.t, "x", true)) + 0.5;
      ctx.beginPath(); ctx.moveTo(x, bbox.top - 4 * px); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
    }
    ctx.restore();
  }

  function markLabels(u, marks) {
    const { ctx, bbox } = u, px = devicePixelRatio;
    ctx.save();
    ctx.font = font(11.5 * px); ctx.fillStyle = colour("soft"); ctx.textBaseline = "bottom"; ctx.textAlign = "left";
    for (const m of placed(within(u, marks), (t) => u.valToPos(t, "x", true) / px, (bbox.left + bbox.width) / px)) {
      ctx.fillText(m.label, m.x * px, bbox.top - (4 + 15 * m.row) * px);
    }
    ctx.restore();
  }

  // The text next to a chart's title: the values under the cursor, or `rest()` without a cursor.
  function readout(id, rest, parts) {
    const node = document.querySelector(`.readout[data-for="${CSS.escape(id)}"]`);
    return (u) => {
      const i = u.cursor.idx;
      node.textContent = i == null || u.cursor.left < 0 ? rest(node) : parts(i).join("  ·  ");
    };
  }

  // Not Math.max of all: the readings of hours are more arguments than a call takes.
  const most = (values) => values.reduce((found, v) => Math.max(found, v ?? 0), 0);
  const size = (id) => {
    const host = document.getElementById("plot-" + id), width = Math.max(240, host.clientWidth);
    return { host, width, narrow: width < 560 };
  };
  const axis = () => ({ stroke: colour("soft"), font: font(12), grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false } });
  const timeAxis = (narrow) => ({ ...axis(), size: 30, space: narrow ? 44 : 60, values: (u, v) => v.map((x) => signed(x) + " s") });
  // All of it is from `start` to `stop`, which may be more than there are readings of.
  const timeScale = (t, start, stop) => ({
    time: false, range: (u, lo, hi) => (lo === t[0] && hi === t[t.length - 1] ? [start, stop] : [lo, hi]),
  });
  const cursor = (points) => ({ sync: { key: sync.key }, y: false, drag: { x: true, y: false, uni: 20 }, ...points });

  function show(id, host, options, data) {
    plots.get(id)?.destroy();
    plots.set(id, new uPlot({ legend: { show: false }, ...options }, data, host));
  }

  // Now and whenever width, colours or medium change.
  function keepDrawn(draw) {
    let seen = 0;
    const main = document.querySelector("main");
    new ResizeObserver(() => {
      if (main.clientWidth !== seen) { seen = main.clientWidth; draw(); }
    }).observe(main);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    addEventListener("beforeprint", draw);
    addEventListener("afterprint", draw);
  }

  const data = JSON.parse(document.getElementById("charts").textContent);
  return { data, colour, font, most, above, markLines, markLabels, readout, size, axis, timeAxis, timeScale, cursor, show, keepDrawn };
})();
