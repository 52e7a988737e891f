(() => {
  "use strict";
  const { panels, marks, gap_s } = chart.data;
  const palette = ["mean", "bound", "band", "control", "second", "inconclusive"];
  const dashes = [undefined, [2, 3], [8, 3, 2, 3]], borders = ["solid", "dotted", "dashed"];
  const stroke = (line, i) => chart.colour(line.style === "dashed" ? "quota" : palette[i % palette.length]);
  // After each round of the palette the lines differ by their dashes.
  const round = (i) => Math.floor(i / palette.length) % dashes.length;
  const start = Math.min(0, ...panels.map((p) => p.start)), stop = Math.max(1, ...panels.map((p) => p.stop));

  function readings(p) {
    return (i) => {
      const known = p.lines.filter((l) => l.values[i] != null);
      return [`${p.t[i].toFixed(1)} s`, ...known.map((l) => `${l.label} ${+l.values[i].toPrecision(4)} ${p.unit}`)];
    };
  }

  // At the instants of other lines a line goes on (undefined). In a gap of its own it breaks (null).
  function broken(p, values) {
    const made = values.slice();
    let last = 0;
    values.forEach((v, i) => {
      if (v == null) return;
      if (p.t[i] - p.t[last] <= gap_s) made.fill(undefined, last + 1, i);
      last = i;
    });
    return made;
  }

  function draw(p, index) {
    const { host, width, narrow } = chart.size(p.id), left = narrow ? 40 : 56, labelled = index === 0;
    const above = chart.above(marks, labelled, width, left, start, stop);
    // Where all is 0 the axis has one unit, so that its labels differ.
    const top = (Math.max(...p.lines.map((l) => chart.most(l.values))) || 1) * 1.08;
    const stepped = uPlot.paths.stepped({ align: 1 });
    const series = p.lines.map((l, i) => ({
      stroke: stroke(l, i), width: l.style === "dashed" ? 1.5 : 2, dash: l.style === "dashed" ? [6, 4] : dashes[round(i)],
      paths: l.style === "line" ? undefined : stepped, points: { show: false },
    }));
    document.querySelectorAll(`[data-key="${CSS.escape(p.id)}"] .swatch`).forEach((s, i) => {
      s.style.color = stroke(p.lines[i], i); s.style.borderTopStyle = p.lines[i].style === "dashed" ? "dashed" : borders[round(i)];
    });
    const behind = (u) => { chart.markLines(u, marks); if (labelled) chart.markLabels(u, marks); };
    chart.show(p.id, host, {
      width, height: (labelled ? 250 : 150) + above, padding: [above, 6, 0, 0], cursor: chart.cursor(),
      scales: { x: chart.timeScale(p.t, start, stop), y: { range: [0, top] } },
      axes: [
        chart.timeAxis(narrow),
        { ...chart.axis(), size: left, space: 30, values: (u, v) => v.map((x) => +x.toPrecision(4) + "") },
      ],
      series: [{}, ...series],
      hooks: { drawClear: [behind], setCursor: [chart.readout(p.id, () => p.unit, readings(p))] },
    }, [p.t, ...p.lines.map((l) => broken(p, l.values))]);
  }

  chart.keepDrawn(() => panels.forEach(draw));
})();
