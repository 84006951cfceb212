// Curves of an autoscaler, drawn again when the part above them changes.
"use strict";
(() => {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const colours = ["accent", "good", "warn", "bad", "idle"];
  let drawn = [];

  const axis = () => ({ stroke: colour("muted"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line") } });
  const chart = (holder, data, series, from, until, paths) => {
    holder.textContent = "";
    if (data[0].length < 1) { holder.textContent = "Nothing measured yet."; return; }
    drawn.push(new uPlot({
      width: holder.clientWidth, height: 220, legend: { show: series.length > 1 }, cursor: { drag: { x: false, y: false } },
      scales: { x: { range: () => [from, until] }, y: { range: (_, low, high) => [Math.min(0, low), Math.max(1, high * 1.1)] } }, axes: [axis(), axis()],
      series: [{}, ...series.map((label, nth) => ({ label, stroke: colour(colours[nth % colours.length]), width: 2, paths, points: { show: data[0].length < 30 } }))],
    }, data, holder));
  };
  const draw = () => {
    drawn.forEach((one) => one.destroy());
    drawn = [];
    const curves = JSON.parse(document.getElementById("curves").dataset.curves);
    chart(document.getElementById("replicas"), curves.replicas, ["replicas"], curves.now - 3600, curves.now, uPlot.paths.stepped({ align: 1 }));
    const names = Object.keys(curves.metrics);
    const times = [...new Set(names.flatMap((name) => curves.metrics[name][0]))].sort((a, b) => a - b);
    const aligned = names.map((name) => {
      const values = new Map(curves.metrics[name][0].map((at, nth) => [at, curves.metrics[name][1][nth]]));
      return times.map((at) => values.get(at) ?? null);
    });
    chart(document.getElementById("metrics"), [times, ...aligned], names, Math.min(times[0], curves.now - 300), curves.now);
  };
  document.addEventListener("htmx:afterSettle", (event) => { if (event.detail.target.id === "autoscaler") draw(); });
  document.addEventListener("theme", draw);
  addEventListener("resize", draw);
  draw();
})();
