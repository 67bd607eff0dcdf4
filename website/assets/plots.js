// Plots of score against cost and against time, with the Pareto front.
"use strict";
(function () {
  const { make, draw, number, link } = srearena;
  const W = 640, H = 380, L = 52, B = 40;

  // The Pareto front: no other agent is at least as good for less.
  function front(points) {
    const best = [];
    for (const point of [...points].sort((a, b) => a.x - b.x || b.y - a.y))
      if (!best.length || point.y > best[best.length - 1].y) best.push(point);
    return best;
  }

  function plot(id, title, unit, rows, value, shown) {
    const points = rows.map((row) => ({ row, x: value(row.figures), y: row.mean })).filter((p) => typeof p.x === "number" && typeof p.y === "number");
    if (!points.length) return make("section", {}, make("h2", {}, title), make("p", { class: "soft" }, "No agent tells this."));
    const most = Math.max(...points.map((p) => p.x)) || 1;
    const X = (x) => L + (x / most) * (W - L - 40), Y = (y) => H - B - y * (H - B - 20);
    const best = front(points);
    const svg = draw("svg", { viewBox: "0 0 " + W + " " + H, id, role: "group", "aria-label": title },
      draw("path", { class: "axis", d: "M" + L + " 20V" + (H - B) + "H" + (W - 20), fill: "none" }),
      [0, 0.25, 0.5, 0.75, 1].map((y) => draw("text", { x: 10, y: Y(y) + 4 }, y.toFixed(2))),
      [0, 0.5, 1].map((s) => draw("text", { x: X(most * s), y: H - B + 18, "text-anchor": "middle" }, shown(most * s))),
      draw("text", { x: W / 2 - 40, y: H - 6 }, unit),
      draw("polyline", { class: "front", points: best.map((p) => X(p.x) + "," + Y(p.y)).join(" ") }),
      points.map((p) => draw("a", { href: link(["agent", p.row.agent.name]), "aria-label": p.row.agent.name + ": " + number(p.y) + ", " + shown(p.x) },
        draw("circle", { class: "point", cx: X(p.x), cy: Y(p.y), r: best.includes(p) ? 6 : 4 },
          draw("title", {}, p.row.agent.name + ": " + number(p.y) + ", " + shown(p.x))))),
      points.length <= 30 ? points.map((p) => draw("text", { x: X(p.x), y: Y(p.y) - 9, "text-anchor": X(p.x) > W / 2 ? "end" : "start" }, p.row.agent.name.slice(0, 24))) : null);
    const table = srearena.table(title + ", Pareto front: no agent scores as much for less", [{ title: "Agent", name: true }, { title: "Score", number: true }, { title: unit, number: true }],
      best.map((p) => [make("a", { href: link(["agent", p.row.agent.name]) }, p.row.agent.name), number(p.y), shown(p.x)]));
    return make("section", {}, make("h2", {}, title), svg, table);
  }

  srearena.pages.plots = async function (route) {
    const chosen = await srearena.selection(route.query);
    const go = (query) => srearena.go(["plots"], query);
    return { title: "Cost and time", content: [make("h1", {}, "What a score costs"), srearena.filters(route.query, go),
      make("div", { class: "columns" },
        plot("plot-cost", "Score against cost", "USD per run", chosen.rows, (a) => a.mean_cost, srearena.money),
        plot("plot-time", "Score against time", "time per run", chosen.rows, (a) => a.seconds, srearena.seconds))] };
  };
})();
