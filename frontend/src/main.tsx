// The application: a header, and the page that the address names.
import "./view.css";
import { type JSX, render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Logo } from "./components/Logo";
import { ComparePage } from "./pages/ComparePage";
import { IncidentListPage } from "./pages/IncidentList";
import { IncidentPage } from "./pages/IncidentPage";
import { PlayPage } from "./pages/PlayPage";
import { TrialListPage } from "./pages/TrialList";
import { SessionPage, Trial, TrialPage } from "./pages/TrialPage";
import { WorldPage } from "./pages/WorldPage";
import { parse, type Route } from "./router";
import { restoreTheme, toggleTheme } from "./theme";
import type { TrialDocument } from "./types";

function useRoute(): Route {
  const [route, setRoute] = useState(() => parse(location.hash));
  useEffect(() => {
    const listen = (): void => setRoute(parse(location.hash));
    addEventListener("hashchange", listen);
    return () => removeEventListener("hashchange", listen);
  }, []);
  return route;
}

function Page({ route }: { route: Route }): JSX.Element {
  const [name = ""] = route.parts;
  if (name === "trial") return <TrialPage key={route.parts[1]} route={route} />;
  if (name === "incidents") return <IncidentListPage />;
  if (name === "incident") return <IncidentPage key={route.parts[1]} route={route} />;
  if (name === "world") return <WorldPage key={route.parts.slice(1, 3).join("/")} route={route} />;
  if (name === "play") return <PlayPage key={route.parts[1] ?? ""} route={route} />;
  if (name === "session") return <SessionPage session={route.parts[1] ?? ""} />;
  if (name === "compare") return <ComparePage key={route.parts.join("/")} route={route} />;
  if (name === "") return <TrialListPage route={route} />;
  return <p role="alert">There is no such page.</p>;
}

const PAGES: [string, string, string[]][] = [
  ["#/incidents", "Incidents", ["incidents", "incident"]],
  ["#/", "Trials", ["", "trial", "world", "compare", "session"]],
  ["#/play", "Play", ["play"]],
];

function Frame({ children, home, page = "" }: { children: JSX.Element; home: boolean; page?: string }): JSX.Element {
  return (
    <>
      <a class="skip" href="#content" onClick={(event) => { event.preventDefault(); document.getElementById("content")?.focus(); }}>
        Skip to the content
      </a>
      <header>
        {home ? <a class="brand" href="#/"><Logo />SREArena</a> : <span class="brand"><Logo />SREArena</span>}
        <nav aria-label="Pages">
          {home && PAGES.map(([address, name, parts]) => <a href={address} aria-current={parts.includes(page) ? "page" : undefined}>{name}</a>)}
        </nav>
        <button type="button" id="theme" aria-label="Switch between dark and light" onClick={toggleTheme}>
          ◐
        </button>
      </header>
      <main id="content" tabIndex={-1}>
        {children}
      </main>
    </>
  );
}

function Application(): JSX.Element {
  const route = useRoute();
  return (
    <Frame home page={route.parts[0] ?? ""}>
      <Page route={route} />
    </Frame>
  );
}

function start(): void {
  restoreTheme();
  // The token is in a cookie by now; it does not stay in the address, where it would be copied with a link.
  const address = new URL(location.href);
  if (address.searchParams.has("token")) {
    address.searchParams.delete("token");
    history.replaceState(null, "", address);
  }
  const root = document.getElementById("application");
  const embedded = document.getElementById("trial");
  if (!root) return;
  if (embedded?.textContent) {
    const trial = JSON.parse(embedded.textContent) as TrialDocument;
    render(
      <Frame home={false}>
        <Trial trial={trial} route={{ parts: [], query: parse(location.hash).query }} served={false} />
      </Frame>,
      root,
    );
    return;
  }
  render(<Application />, root);
}

start();
