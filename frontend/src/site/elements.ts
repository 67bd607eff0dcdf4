// Elements of the site's pages, made from text only: no code turns text into markup, and the policy would refuse it.
import { type JSX, render } from "preact";
import * as format from "../format";
import { link } from "../router";
import { clean } from "../text";

export type Child = Node | string | number | null | undefined | false | readonly Child[];
type Value = string | number | boolean | null | undefined | ((event: never) => void);
export type Attributes = Record<string, Value>;

const SVG = "http://www.w3.org/2000/svg";

function fill<E extends Element>(node: E, attributes: Attributes, children: readonly Child[]): E {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(key.slice(2), value as EventListener);
    else node.setAttribute(key, value === true ? "" : clean(value));
  }
  append(node, children);
  return node;
}

function append(node: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(node, child as readonly Child[]);
    else node.append(child instanceof Node ? child : document.createTextNode(clean(child)));
  }
}

export function make<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

export function draw(tag: string, attributes: Attributes = {}, ...children: Child[]): Element {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

const mounted = new Set<HTMLElement>();

// A component that the view has too.
export function mount(component: JSX.Element | null): HTMLElement {
  const place = make("div");
  render(component, place);
  mounted.add(place);
  return place;
}

// End the components of the page that is left: they listen to keys.
export function unmountAll(): void {
  for (const place of mounted) render(null, place);
  mounted.clear();
}

export const go = (parts: string[], query: Record<string, string | number | undefined> = {}): void => {
  location.hash = link(parts, query);
};

export const heat = (value: number | null | undefined): string =>
  typeof value === "number" ? `h${Math.min(5, Math.max(0, Math.round(value * 5)))}` : "";

// An interval on a scale from `from` to 1.
export function range(low: number | null | undefined, mean: number | null | undefined, high: number | null | undefined, from = 0): Child {
  if (typeof mean !== "number" || typeof low !== "number" || typeof high !== "number") return "–";
  const span = make("span");
  const tick = make("i");
  const share = (value: number): number => ((value - from) / (1 - from)) * 100;
  span.style.left = `${share(low)}%`;
  span.style.width = `${Math.max(0, share(high) - share(low))}%`;
  tick.style.left = `${share(mean)}%`;
  const words = `${format.fixed(low)} to ${format.fixed(high)}`;
  return make("div", { class: "range", role: "img", "aria-label": `95 % interval ${words}`, title: words }, span, tick);
}

// The scale of `range`, for the head of its column.
export const scale = (ticks: readonly string[] = ["0", ".5", "1"]): Child => make("div", { class: "scale", "aria-hidden": "true" }, ticks.map((tick) => make("span", {}, tick)));

export interface Column {
  title: string;
  number?: boolean;
  name?: boolean;
  // Below the title.
  head?: Child;
}

export function table(caption: string, columns: readonly Column[], rows: readonly (readonly Child[])[], attributes: Attributes = {}): HTMLElement {
  const head = columns.map((column) => make("th", { scope: "col", class: column.number ? "number" : null }, column.title, column.head));
  const kind = (column: Column | undefined): string | null => (column?.number ? "number" : column?.name ? "name" : null);
  const body = rows.map((row) => make("tr", {}, row.map((cell, place) => make("td", { class: kind(columns[place]) }, cell))));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    make("table", attributes, make("caption", {}, caption), make("thead", {}, make("tr", {}, head)), make("tbody", {}, body)));
}

export function pager(page: number, pages: number, to: (page: number) => void): Child {
  if (pages < 2) return null;
  return make("div", { class: "bar", role: "navigation", "aria-label": "Pages of the table" },
    make("button", { type: "button", disabled: page === 0, onclick: () => to(page - 1) }, "Previous"),
    `Page ${page + 1} of ${pages}`,
    make("button", { type: "button", id: "next-page", disabled: page + 1 >= pages, onclick: () => to(page + 1) }, "Next"));
}

export interface Page {
  title: string;
  content: Child[];
}

export const pageOf = (query: Record<string, string>): number => Math.max(0, Number.parseInt(query.page ?? "0", 10) || 0);
