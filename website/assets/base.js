// Shared functions: create elements from text only, load data files, format numbers.
// No code turns text into markup; the page's content security policy would refuse it.
"use strict";
const srearena = (window.srearena = { pages: {}, data: new Map(), waiting: new Map() });

(function () {
  const SVG = "http://www.w3.org/2000/svg";
  // Control characters, terminal escapes and bidirectional marks are made visible.
  const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
  const MAX = 100000;

  srearena.clean = function (value) {
    let text = typeof value === "string" ? value : value === null || value === undefined ? "" : String(value);
    if (text.length > MAX) text = text.slice(0, MAX) + "… (cut)";
    return text.replace(/\r\n?/g, "\n").replace(CONTROL, (c) => {
      const code = c.charCodeAt(0);
      return code < 32 ? String.fromCharCode(0x2400 + code) : "\ufffd";
    });
  };

  function fill(node, attributes, children) {
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value === true ? "" : srearena.clean(value));
    }
    for (const child of children.flat(Infinity)) {
      if (child === null || child === undefined || child === false) continue;
      node.append(child instanceof Node ? child : document.createTextNode(srearena.clean(child)));
    }
    return node;
  }
  srearena.make = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  srearena.draw = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  // The only place that builds addresses, and only of the site's own pages.
  srearena.link = function (parts, query) {
    const path = "#/" + parts.map(encodeURIComponent).join("/");
    const entries = Object.entries(query || {}).filter(([, value]) => value !== "" && value !== null && value !== undefined);
    return entries.length ? path + "?" + new URLSearchParams(entries) : path;
  };

  srearena.receive = function (key, value) {
    srearena.data.set(key, value);
    const waiting = srearena.waiting.get(key);
    if (waiting) waiting.done(value);
  };

  const FILE = /^data\/[a-z]+(\/[A-Za-z0-9_@^.-]+)+\.js$/;
  const policy = window.trustedTypes
    ? window.trustedTypes.createPolicy("srearena", {
        createScriptURL: (url) => {
          if (!FILE.test(url) || url.includes("..")) throw new Error("not a data file");
          return url;
        },
      })
    : { createScriptURL: (url) => url };

  // Data files are scripts, because a page opened from a file cannot fetch.
  srearena.load = function (key) {
    if (srearena.data.has(key)) return Promise.resolve(srearena.data.get(key));
    if (!srearena.waiting.has(key)) {
      const entry = {};
      entry.promise = new Promise((done, fail) => {
        entry.done = done;
        const script = document.createElement("script");
        script.src = policy.createScriptURL("data/" + key + ".js");
        script.addEventListener("error", () => { srearena.waiting.delete(key); fail(new Error("there is no " + key)); });
        document.head.append(script);
      });
      srearena.waiting.set(key, entry);
    }
    return srearena.waiting.get(key).promise;
  };

  srearena.number = (value, digits = 3) => (typeof value === "number" && isFinite(value) ? value.toFixed(digits) : "–");
  srearena.seconds = (value) =>
    typeof value !== "number" ? "–" : value < 100 ? value.toFixed(1) + " s" : (value / 60).toFixed(1) + " min";
  // A moment for people: date and time of the day, in UTC as all moments here.
  srearena.moment = (value) => { const found = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)/.exec(String(value)); return found ? found[1] + " " + found[2] : srearena.clean(value); };
  srearena.money = (value) => (typeof value === "number" ? "$" + value.toFixed(value < 1 ? 3 : 2) : "–");
  srearena.heat = (value) => (typeof value !== "number" ? "" : "h" + Math.min(5, Math.max(0, Math.round(value * 5))));

  srearena.range = function (low, mean, high) {
    if (typeof mean !== "number" || typeof low !== "number") return "–";
    const span = srearena.make("span");
    const tick = srearena.make("i");
    span.style.left = low * 100 + "%";
    span.style.width = Math.max(0, high - low) * 100 + "%";
    tick.style.left = mean * 100 + "%";
    const said = srearena.number(low) + " to " + srearena.number(high);
    return srearena.make("div", { class: "range", role: "img", "aria-label": "95 % interval " + said, title: said }, span, tick);
  };

  // The scale of `range`, for the head of its column.
  srearena.scale = () => srearena.make("div", { class: "scale", "aria-hidden": "true" }, ["0", ".5", "1"].map((tick) => srearena.make("span", {}, tick)));

  srearena.table = function (caption, columns, rows, attributes) {
    const head = columns.map((c) => srearena.make("th", { scope: "col", class: c.number ? "number" : null }, c.title));
    return srearena.make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      srearena.make("table", attributes, srearena.make("caption", {}, caption),
        srearena.make("thead", {}, srearena.make("tr", {}, head)),
        srearena.make("tbody", {}, rows.map((row) => srearena.make("tr", {},
          row.map((cell, i) => srearena.make("td", { class: columns[i].number ? "number" : columns[i].name ? "name" : null }, cell)))))));
  };
})();
