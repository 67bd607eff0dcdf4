// The public site of a leaderboard: a router that shows the page of the address, which holds all state.
import "./site.css";
import * as format from "../format";
import { parse, type Route } from "../router";
import { clean } from "../text";
import { restoreTheme, toggleTheme } from "../theme";
import { index } from "./data";
import { make, type Page, unmountAll } from "./elements";
import { breakdown } from "./pages/breakdown";
import { compare } from "./pages/compare";
import { heatmap } from "./pages/heatmap";
import { incident, incidents } from "./pages/incidents";
import { method } from "./pages/method";
import { plots } from "./pages/plots";
import { ranking } from "./pages/ranking";
import { agent, run } from "./pages/runs";

const PAGES = new Map<string, (route: Route) => Promise<Page>>(
  Object.entries({ ranking, breakdown, heatmap, plots, incidents, incident, agent, run, compare, method }),
);
let latest = 0;
let first = true;

function notFound(problem: unknown): Page {
  const words = problem instanceof Error ? problem.message : String(problem);
  return { title: "Not found", content: [make("h1", {}, "Not found"), make("p", { id: "problem" }, words), make("p", {}, make("a", { href: "#/" }, "To the ranking"))] };
}

async function pageOf(route: Route): Promise<Page> {
  const name = route.parts[0] ?? "ranking";
  const show = PAGES.get(name);
  try {
    if (!show) throw new Error(`there is no page ${name}`);
    return await show(route);
  } catch (problem) {
    return notFound(problem);
  }
}

async function show(main: HTMLElement): Promise<void> {
  if (location.hash && !location.hash.startsWith("#/")) return;
  const turn = ++latest;
  const route = parse(location.hash);
  unmountAll();
  const page = await pageOf(route);
  if (turn !== latest) return; // the reader has opened another page meanwhile
  const focused = document.activeElement?.id;
  main.replaceChildren(make("div", {}, page.content));
  document.title = `${clean(page.title)} · SREArena leaderboard`;
  for (const each of document.querySelectorAll<HTMLElement>("header nav a")) {
    if (each.dataset.page === (route.parts[0] ?? "ranking")) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
  const again = focused && focused !== "content" ? document.getElementById(focused) : null;
  if (again) again.focus();
  else if (!first) main.focus({ preventScroll: true });
  first = false;
  main.dataset.ready = location.hash || "#/";
}

function start(): void {
  const main = document.getElementById("content");
  if (!main) return;
  restoreTheme();
  document.getElementById("theme")?.addEventListener("click", toggleTheme);
  document.getElementById("skip")?.addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  const { generated_at } = index();
  document.getElementById("footer")?.replaceChildren(generated_at ? `Results of ${format.moment(generated_at)} UTC` : "");
  addEventListener("hashchange", () => void show(main));
  void show(main);
}

// Once the index is there, which is the script after this one.
addEventListener("DOMContentLoaded", start);
