// Charts of an incident: requests, errors and latency of the services that deviate most, with what was usual shaded.
"use strict";
(function () {
  const { make, draw } = srearena;
  const W = 340, H = 96, LEFT = 46, BOTTOM = 18, TOP = 8;
  const LEVELS = ["as usual", "deviates", "deviates strongly"];
  const rate = (value) => (value >= 10 ? value.toFixed(0) : value.toFixed(1)) + "/s";
  const share = (value) => (value * 100).toFixed(value && value < 0.1 ? 1 : 0) + " %";
  const milliseconds = (value) => (value >= 1000 ? (value / 1000).toFixed(1) + " s" : value.toFixed(0) + " ms");
  const MEASURES = [["requests", "Requests", rate], ["errors", "Errors", share], ["latency", "95th percentile", milliseconds]];
  const time = (at) => new Date(at * 1000).toISOString().slice(11, 16);

  // Pieces of a line: a gap where nothing was measured.
  function path(values, x, y) {
    let text = "", drawing = false;
    values.forEach((value, i) => {
      if (typeof value !== "number") { drawing = false; return; }
      text += (drawing ? "L" : "M") + x(i).toFixed(1) + " " + y(value).toFixed(1);
      drawing = true;
    });
    return text;
  }

  function chart(charts, service, [measure, title, show]) {
    const { times, baseline } = charts, values = service[measure] || [];
    const known = values.filter((value) => typeof value === "number");
    if (!known.length || times.length < 2) return null;
    const most = Math.max(measure === "errors" ? 0.05 : 0.001, ...known) * 1.1;
    const first = times[0], span = times[times.length - 1] - first;
    const at = (moment) => LEFT + ((moment - first) / span) * (W - LEFT - 8);
    const y = (value) => TOP + (1 - value / most) * (H - TOP - BOTTOM);
    const said = service.name + ", " + title + ": from " + show(known[0]) + " to " + show(known[known.length - 1]);
    return draw("svg", { viewBox: "0 0 " + W + " " + H, class: "chart", role: "img", "aria-label": said },
      baseline ? draw("rect", { class: "usual", x: at(baseline[0]), y: TOP, width: Math.max(0, at(baseline[1]) - at(baseline[0])), height: H - TOP - BOTTOM }) : null,
      [0, most / 1.1].map((tick) => [draw("path", { class: "grid", d: "M" + LEFT + " " + y(tick) + "H" + (W - 8) }),
        draw("text", { x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, show(tick))]),
      [[first, "start"], [times[times.length - 1], "end"]].map(([moment, anchor]) => draw("text", { x: at(moment), y: H - 3, "text-anchor": anchor }, time(moment))),
      draw("path", { class: "line", d: path(values, (i) => at(times[i]), y) }));
  }

  srearena.charts = function (charts) {
    if (!charts || !charts.services || !charts.services.length) return null;
    return make("section", { id: "charts", "aria-label": "Signals" }, make("h2", {}, "Signals"),
      make("p", { class: "soft" }, "The services that deviate most; what is shaded was usual. Times are UTC."),
      charts.services.map((service) => make("figure", { class: "service" },
        make("figcaption", {}, make("strong", {}, service.name), " ", make("span", { class: ["soft", "mark", "bad"][service.level] || "soft" }, LEVELS[service.level] || "")),
        make("div", { class: "charts" }, MEASURES.map((measure) => {
          const drawn = chart(charts, service, measure);
          return drawn ? make("div", {}, make("span", { class: "soft" }, measure[1]), drawn) : null;
        })))));
  };
})();
