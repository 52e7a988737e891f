(() => {
  "use strict";
  const { panels, marks } = chart.data;
  const palette = ["mean", "bound", "band", "control", "second", "inconclusive"];
  const stroke = (line, i) => chart.colour(line.style === "dashed" ? "quota" : palette[i % palette.length]);
  const start = Math.min(0, ...panels.map((p) => p.start)), stop = Math.max(1, ...panels.map((p) => p.stop));

  function readings(p) {
    return (i) => {
      const known = p.lines.filter((l) => l.values[i] != null);
      return [`${p.t[i].toFixed(1)} s`, ...known.map((l) => `${l.label} ${+l.values[i].toPrecision(4)} ${p.unit}`)];
    };
  }

  function draw(p, index) {
    const { host, width, narrow } = chart.size(p.id), left = narrow ? 40 : 56, labelled = index === 0;
    const above = chart.above(marks, labelled, width, left, start, stop);
    // Not Math.max of all: the readings of hours are more arguments than a call takes.
    const top = p.lines.reduce((most, l) => l.values.reduce((m, v) => Math.max(m, v ?? 0), most), 1e-9) * 1.08;
    const stepped = uPlot.paths.stepped({ align: 1 });
    const series = p.lines.map((l, i) => ({
      stroke: stroke(l, i), width: l.style === "dashed" ? 1.5 : 2, dash: l.style === "dashed" ? [6, 4] : undefined,
      paths: l.style === "line" ? undefined : stepped, spanGaps: true, points: { show: false },
    }));
    document.querySelectorAll(`[data-key="${CSS.escape(p.id)}"] .swatch`).forEach((s, i) => {
      s.style.color = stroke(p.lines[i], i); s.style.borderTopStyle = p.lines[i].style === "dashed" ? "dashed" : "solid";
    });
    const behind = (u) => { chart.markLines(u, marks); if (labelled) chart.markLabels(u, marks); };
    chart.show(p.id, host, {
      width, height: (labelled ? 250 : 150) + above, padding: [above, 6, 0, 0], cursor: chart.cursor(),
      scales: { x: chart.timeScale(p.t, start, stop), y: { range: [0, top] } },
      axes: [chart.timeAxis(narrow), { ...chart.axis(), size: left, space: 30 }],
      series: [{}, ...series],
      hooks: { drawClear: [behind], setCursor: [chart.readout(p.id, () => p.unit, readings(p))] },
    }, [p.t, ...p.lines.map((l) => l.values)]);
  }

  chart.keepDrawn(() => panels.forEach(draw));
})();
