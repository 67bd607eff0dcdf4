// Draw a directed graph in layers, from causes to effects, for the ground truth and for an answer.
"use strict";
(function () {
  const { make, draw } = srearena;
  const W = 210, GAP = 50, ROW = 52, MOST = 60;

  function layers(nodes, edges) {
    const depth = new Map(nodes.map((n) => [n, 0]));
    for (let round = 0; round < nodes.length; round++) {
      let changed = false;
      for (const [a, b] of edges) {
        const to = depth.get(a) + 1;
        if (to > depth.get(b) && to <= nodes.length) { depth.set(b, Math.min(to, 8)); changed = changed || to <= 8; }
      }
      if (!changed) break;
    }
    return depth;
  }

  srearena.graph = function (title, graph, found) {
    const edges = ((graph && graph.edges) || []).slice(0, 200).map((e) => [String(e[0]), String(e[1])]);
    const nodes = [...new Set([...((graph && graph.nodes) || []).map(String), ...edges.flat()])].slice(0, MOST);
    if (!nodes.length) return make("section", {}, make("h2", {}, title), make("p", { class: "soft" }, "Nothing is named."));
    const roots = new Set(((graph && graph.roots) || []).map(String));
    const kept = edges.filter(([a, b]) => nodes.includes(a) && nodes.includes(b) && a !== b);
    const depth = layers(nodes, kept);
    const filled = [], at = new Map();
    for (const node of nodes) {
      const d = depth.get(node);
      filled[d] = (filled[d] || 0) + 1;
      at.set(node, [10 + d * (W + GAP), 10 + (filled[d] - 1) * ROW]);
    }
    const width = Math.max(...[...at.values()].map((p) => p[0])) + W + 10, height = Math.max(...[...at.values()].map((p) => p[1])) + ROW;
    const said = kept.map(([a, b]) => a + " leads to " + b).join("; ") || nodes.join(", ");
    return make("section", {}, make("h2", {}, title), make("div", { class: "scroll" },
      draw("svg", { viewBox: "0 0 " + width + " " + height, width, height, role: "img", "aria-label": title + ": " + said },
        draw("defs", {}, draw("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
          draw("path", { d: "M0 0L8 4L0 8Z" }))),
        kept.map(([a, b]) => {
          const [x, y] = at.get(a), [u, v] = at.get(b);
          return draw("path", { class: "edge", "marker-end": "url(#arrow)", d: "M" + (x + W) + " " + (y + 16) + "C" + (x + W + 30) + " " + (y + 16) + " " + (u - 30) + " " + (v + 16) + " " + u + " " + (v + 16) });
        }),
        nodes.map((node) => {
          const [x, y] = at.get(node);
          const kind = found && found.has(node) ? " hit" : roots.has(node) ? " root" : "";
          return draw("g", {}, draw("rect", { class: "node" + kind, x, y, width: W, height: 32, rx: 5 }),
            draw("text", { x: x + 8, y: y + 21 }, node.length > 27 ? "…" + node.slice(-26) : node), draw("title", {}, node));
        }))));
  };
})();
