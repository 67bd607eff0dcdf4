// Heat map of agents by incidents. One cell has the focus; arrow keys move it, Enter opens its runs.
"use strict";
(function () {
  const { make, number, link } = srearena;
  const PAGE = 50;
  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

  srearena.pages.heatmap = async function (route) {
    const { index } = srearena;
    const go = (query) => srearena.go(["heatmap"], query);
    const chosen = await srearena.selection({ ...route.query, matrix: true });
    const rows = [...chosen.rows].sort((a, b) => (b.mean ?? -1) - (a.mean ?? -1));
    const page = Math.max(0, parseInt(route.query.page || "0", 10) || 0);
    const shown = rows.slice(page * PAGE, page * PAGE + PAGE);
    const cells = [];
    const body = shown.map((row, y) => {
      const line = chosen.places.map((p, x) => {
        const value = chosen.matrix[row.i][p];
        const shown = typeof value === "number" ? (value === 0 || value === 1 ? String(value) : number(value, 1).replace(/^0/, "")) : "";
        const where = row.agent.name + ", " + index.incidents[p].name + ": ";
        return make("td", { class: srearena.heat(value), role: "gridcell", tabindex: x || y ? "-1" : "0", title: where + number(value, 2),
          "aria-label": where + (shown || "no graded run"), "data-href": link(["run", row.agent.name, index.incidents[p].name, "1"]) },
          shown);
      });
      cells.push(line);
      return make("tr", { role: "row" }, make("th", { scope: "row", role: "rowheader", title: row.agent.name },
        make("a", { href: link(["agent", row.agent.name]), tabindex: "-1" }, row.agent.name)), line);
    });
    function moved(event) {
      if (event.key === "Enter") location.hash = event.target.dataset.href;
      const step = STEPS[event.key];
      if (!step || event.target.tagName !== "TD") return;
      event.preventDefault();
      const y = event.target.parentNode.rowIndex - 1, x = event.target.cellIndex - 1;
      const next = (cells[y + step[0]] || [])[x + step[1]];
      if (!next) return;
      event.target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    }
    const table = make("table", { class: "heat", id: "heat", role: "grid", onkeydown: moved,
      onclick: (event) => { if (event.target.dataset.href) location.hash = event.target.dataset.href; } },
      make("caption", {}, chosen.metric + ", mean over runs; an empty cell has no graded run. Arrow keys move, Enter opens."),
      make("thead", {}, make("tr", { role: "row" }, make("td", {}), chosen.places.map((p) => make("th", { scope: "col", role: "columnheader" },
        make("a", { href: link(["incident", index.incidents[p].name]), tabindex: "-1" }, index.incidents[p].name))))),
      make("tbody", {}, body));
    return { title: "Heat map", content: [make("h1", {}, "Agents by incidents"), srearena.filters(route.query, go),
      rows.length && chosen.places.length ? make("div", { class: "scroll tall" }, table) : make("p", { id: "empty" }, "There is nothing to show."),
      srearena.pager(page, Math.ceil(rows.length / PAGE), (to) => go({ ...route.query, page: to || "" }))] };
  };
})();
