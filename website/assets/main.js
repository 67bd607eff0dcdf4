// The router: shows the page of the address, which holds all state.
"use strict";
(function () {
  const { make } = srearena;
  const main = document.getElementById("content");
  let latest = 0, first = true;

  function route() {
    const text = location.hash.startsWith("#/") ? location.hash.slice(2) : "";
    const [path, query] = text.split("?");
    let parts;
    try { parts = path.split("/").filter((p) => p).map(decodeURIComponent); } catch { parts = ["unknown"]; }
    return { parts, query: Object.fromEntries(new URLSearchParams(query || "")) };
  }

  srearena.go = function (parts, query) { location.hash = srearena.link(parts, query); };

  async function show() {
    if (location.hash && !location.hash.startsWith("#/")) return;
    const turn = ++latest;
    const where = route();
    const name = where.parts[0] || "ranking";
    let page;
    try {
      if (!Object.hasOwn(srearena.pages, name)) throw new Error("there is no page " + name);
      page = await srearena.pages[name](where);
    } catch (problem) {
      page = { title: "Not found", content: [make("h1", {}, "Not found"), make("p", { id: "problem" }, problem.message), make("p", {}, make("a", { href: "#/" }, "To the ranking"))] };
    }
    if (turn !== latest) return; // the user has opened another page meanwhile
    const focused = document.activeElement && document.activeElement.id;
    main.replaceChildren(...page.content.flat(Infinity).filter((part) => part));
    document.title = srearena.clean(page.title) + " · SREArena leaderboard";
    for (const each of document.querySelectorAll("nav a")) {
      if (each.dataset.page === name) each.setAttribute("aria-current", "page"); else each.removeAttribute("aria-current");
    }
    const again = focused && focused !== "content" && document.getElementById(focused);
    if (again) again.focus(); else if (!first) main.focus({ preventScroll: true });
    first = false;
    main.dataset.ready = location.hash || "#/";
  }

  function theme() {
    const root = document.documentElement;
    const remember = (value) => { try { localStorage.setItem("theme", value); } catch { /* not available for files */ } };
    try { const kept = localStorage.getItem("theme"); if (kept === "dark" || kept === "light") root.dataset.theme = kept; } catch { /* as above */ }
    document.getElementById("theme").addEventListener("click", () => {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      remember(root.dataset.theme);
    });
  }

  document.getElementById("skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
  srearena.index = srearena.data.get("index") || { agents: [], incidents: [], metrics: [], runs: 0, ranking_metric: "score", generated_at: "" };
  document.getElementById("footer").textContent = srearena.index.generated_at ? "Results of " + srearena.moment(srearena.index.generated_at) + " UTC" : "";
  theme();
  window.addEventListener("hashchange", show);
  show();
})();
