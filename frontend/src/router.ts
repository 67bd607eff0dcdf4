// Addresses: everything that a page shows is in the fragment, so that a link opens the same view.

export interface Route {
  parts: string[];
  query: Record<string, string>;
}

export function parse(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (!part) continue;
    try {
      parts.push(decodeURIComponent(part));
    } catch {
      parts.push(part);
    }
  }
  return { parts, query: Object.fromEntries(new URLSearchParams(search)) };
}

export function link(parts: string[], query: Record<string, string | number | null | undefined> = {}): string {
  const entries = Object.entries(query)
    .filter(([, value]) => value !== "" && value !== null && value !== undefined)
    .map(([key, value]) => [key, String(value)]);
  const path = `#/${parts.map(encodeURIComponent).join("/")}`;
  return entries.length ? `${path}?${new URLSearchParams(entries)}` : path;
}

// Change the query of the page without a new entry in the history and without rendering again.
export function replaceQuery(route: Route, query: Record<string, string | number | null>): void {
  history.replaceState(null, "", link(route.parts, { ...parse(location.hash).query, ...query }));
}
