(() => {
  "use strict";
  const charts = chart.data, colour = chart.colour;
  const MB = 1e6;
  const gutter = charts.some((c) => c.kind === "latency") ? 52 : 36;
  const fmt = (v) => (v == null ? "–" : (v / MB).toFixed(2));

  // From where to where a level is seen, in canvas pixels.
  function across(u, l) {
    const { left, width } = u.bbox, X = (v) => u.valToPos(v, "x", true);
    return [Math.max(left, X(l.start)), Math.min(left + width, X(l.stop))];
  }

  function backdrop(c) {
    return (u) => {
      const { ctx, bbox } = u;
      const X = (v) => u.valToPos(v, "x", true), Y = (v) => u.valToPos(v, "y", true);
      ctx.save();
      if (c.band) {
        ctx.globalAlpha = 0.2;
        ctx.fillStyle = colour("band");
        ctx.fillRect(X(c.band.start), Y(c.band.high), X(c.band.stop) - X(c.band.start), Y(c.band.low) - Y(c.band.high));
      }
      ctx.globalAlpha = 0.06;
      ctx.fillStyle = colour("bound");
      for (const l of c.levels) {
        const [from, to] = across(u, l);
        if (l.bound && to > from) ctx.fillRect(from, bbox.top, to - from, Math.max(0, Y(l.bound) - bbox.top));
      }
      ctx.restore();
      chart.markLines(u, c.marks);
    };
  }

  function foreground(c, labelled) {
    return (u) => {
      const { ctx } = u, px = devicePixelRatio;
      const line = ([from, to], v, name, dash, width) => {
        if (to <= from) return;
        const y = Math.round(u.valToPos(v, "y", true)) + 0.5;
        ctx.strokeStyle = colour(name); ctx.lineWidth = width * px; ctx.setLineDash(dash.map((d) => d * px));
        ctx.beginPath(); ctx.moveTo(from, y); ctx.lineTo(to, y); ctx.stroke();
      };
      ctx.save();
      for (const l of c.levels) {
        ctx.lineCap = "butt";
        line(across(u, l), l.quota, "quota", [6, 4], 1.25);
        if (l.bound) { ctx.lineCap = "round"; line(across(u, l), l.bound, "bound", [0.5, 4.5], 2.2); }
      }
      ctx.restore();
      if (labelled) chart.markLabels(u, c.marks);
    };
  }

  function readings(c) {
    return (i) => {
      const parts = [`${c.t[i] >= 0 ? "+" : "−"}${Math.abs(c.t[i]).toFixed(1)} s`, `1 s ${fmt(c.second[i])} MB/s`];
      if (c.kind === "throttled") parts.push(`${c.window_s} s ${fmt(c.window[i])} MB/s`);
      return parts;
    };
  }

  function draw(c, index) {
    const { host, width, narrow } = chart.size(c.id), left = narrow ? gutter : 72;
    const labelled = index === 0, control = c.kind === "control";
    const most = Math.max(...c.levels.map((l) => Math.max(l.quota * 1.15, (l.bound || 0) * 1.08)));
    const top = Math.max(most, 1.05 * chart.most(c.second));
    const above = chart.above(c.marks, labelled, width, left, c.start, c.stop);
    const series = [{}, { stroke: colour(control ? "control" : "second"), width: control ? 2 : 1.5, points: { show: false } }];
    const data = [c.t, c.second];
    if (!control) { series.push({ stroke: colour("mean"), width: 2.75, points: { show: false } }); data.push(c.window); }
    chart.show(c.id, host, {
      width, height: (control ? (narrow ? 150 : 170) : narrow ? 240 : 300) + above, padding: [above, 6, 0, 0],
      cursor: chart.cursor({ points: { size: 7, fill: (u, i) => u.series[i].stroke(u, i) } }),
      scales: { x: chart.timeScale(c.t, c.start, c.stop), y: { range: [0, top] } },
      axes: [
        chart.timeAxis(narrow),
        { ...chart.axis(), size: left, space: 34, values: (u, v) => v.map((x, i) => x / MB + (!narrow && i === v.length - 1 ? " MB/s" : "")) },
      ],
      series,
      hooks: {
        drawClear: [backdrop(c)], draw: [foreground(c, labelled)],
        setCursor: [chart.readout(c.id, (node) => node.dataset.rest, readings(c))],
      },
    }, data);
  }

  const took = (ms) => (ms == null ? "–" : ms >= 999.5 ? (ms / 1000).toPrecision(3) + " s" : ms.toPrecision(3) + " ms");

  // Latencies go over several powers of ten.
  function drawLatency(c) {
    const { host, width, narrow } = chart.size(c.id), left = narrow ? gutter : 72;
    const fastest = c.p50.reduce((found, v) => Math.min(found, v ?? found), Infinity), slowest = chart.most(c.p99);
    const low = 10 ** Math.floor(Math.log10(fastest)), high = 10 ** Math.ceil(Math.log10(slowest * 1.01));
    const tens = (u, splits) => splits.map((v) => (Math.abs(Math.log10(v) % 1) < 1e-6 ? v : null));
    const line = (name, dash) => ({ stroke: colour(name), width: 2, dash, points: { show: false } });
    const above = chart.above(c.marks, false, width, left, c.start, c.stop);
    chart.show(c.id, host, {
      width, height: (narrow ? 170 : 200) + above, padding: [above, 6, 0, 0],
      cursor: chart.cursor({ points: { size: 7, fill: (u, i) => u.series[i].stroke(u, i) } }),
      scales: { x: chart.timeScale(c.t, c.start, c.stop), y: { distr: 3, range: [low, high] } },
      axes: [
        chart.timeAxis(narrow),
        { ...chart.axis(), size: left, space: 24, filter: tens,
          values: (u, v) => v.map((x) => (x == null ? "" : x >= 1000 ? x / 1000 + " s" : x + " ms")) },
      ],
      series: [{}, line("mean"), line("p99", [6, 3])],
      hooks: {
        drawClear: [(u) => chart.markLines(u, c.marks)],
        setCursor: [chart.readout(c.id, (node) => node.dataset.rest, (i) => [
          `${c.t[i] >= 0 ? "+" : "−"}${Math.abs(c.t[i]).toFixed(1)} s`, `median ${took(c.p50[i])}`, `99 % ${took(c.p99[i])}`,
        ])],
      },
    }, [c.t, c.p50, c.p99]);
  }

  chart.keepDrawn(() => charts.forEach((c, index) => (c.kind === "latency" ? drawLatency(c) : draw(c, index))));
})();
