// What this is and how it scores, in three sentences and a picture, above the unfiltered ranking.
"use strict";
(function () {
  const { make, draw, number, link } = srearena;
  const W = 640, ROW = 26, L = 190, MOST = 8;

  function picture(rows, metric) {
    const H = rows.length * ROW + 34;
    const X = (value) => L + value * (W - L - 50);
    return draw("svg", { viewBox: "0 0 " + W + " " + H, id: "front-picture", role: "group", "aria-label": metric + " of the first agents, with 95 % intervals" },
      [0, 0.25, 0.5, 0.75, 1].map((tick) => [draw("path", { class: "grid", d: "M" + X(tick) + " 8V" + (H - 26) }),
        draw("text", { x: X(tick), y: H - 8, "text-anchor": "middle" }, String(tick))]),
      rows.map((row, n) => {
        const y = 22 + n * ROW;
        return draw("a", { href: link(["agent", row.agent.name]) },
          draw("text", { x: L - 12, y: y + 4, "text-anchor": "end" }, row.agent.name.slice(0, 26)),
          typeof row.low === "number" ? draw("path", { class: "whisker", d: "M" + X(row.low) + " " + y + "H" + X(row.high) }) : null,
          draw("circle", { class: "point", cx: X(row.mean), cy: y, r: 5 }), draw("text", { x: W - 40, y: y + 4 }, number(row.mean, 2)));
      }));
  }

  srearena.front = function (chosen, query) {
    const { index, statistics } = srearena;
    const asked = Object.entries(query).some(([key, value]) => value && key !== "kind");
    const rows = chosen.rows.filter((row) => typeof row.mean === "number").slice(0, MOST);
    if (asked || !rows.length) return make("h1", {}, "SREArena leaderboard");
    for (const row of rows) if (row.values) [row.low, row.high] = statistics.interval(row.values);
    return make("section", { class: "front", id: "front" },
      make("div", {}, make("h1", {}, "Who finds out what broke?"),
        make("p", {}, "AI agents for site reliability engineering are put in front of incidents on Kubernetes: a fault is injected into a running application, and its metrics, logs, traces and objects are all there is to go by. " +
          (chosen.kind === "live" ? "On live problems they say whether anything is wrong and where, and repair it; the score is the share of stages that hold."
            : "On recorded incidents they name the root causes and how the failure spread; the score compares that with the ground truth.") +
          " Every number is a mean over incidents with its 95 % interval, and an agent is ahead of another only where a paired test says so."),
        make("p", { class: "soft" }, chosen.places.length + " " + srearena.kindTitle(chosen.kind) + " · " + index.agents.length + " agents · ",
          make("a", { href: "#/method" }, "how it is measured"))),
      picture(rows, chosen.metric));
  };
})();
