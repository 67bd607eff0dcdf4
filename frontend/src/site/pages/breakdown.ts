// The score of every agent by family, difficulty or application.
import * as format from "../../format";
import { link, type Route } from "../../router";
import { index } from "../data";
import { type Column, go, heat, make, type Page, pageOf, pager, table } from "../elements";
import { FIELDS, filters, kindTitle, type Query, select } from "../selection";
import { known, mean } from "../statistics";

const PAGE = 100;

export async function breakdown({ query }: Route): Promise<Page> {
  const { incidents } = index();
  const to = (changed: Query): void => go(["breakdown"], changed);
  const chosen = await select(query, true);
  const [by] = FIELDS.find(([name]) => name === query.by) ?? ["family"];
  const valueOf = (place: number): string => incidents[place]?.[by] || "not stated";
  const values = [...new Set(chosen.places.map(valueOf))].sort();
  const groups = values.map((value) => chosen.places.filter((place) => valueOf(place) === value));
  const page = pageOf(query);
  const box = make("select", { id: "by", onchange: () => to({ ...query, by: box.value }) },
    FIELDS.map(([name, title]) => make("option", { value: name, selected: name === by }, title)));
  const rows = chosen.rows.slice(page * PAGE, page * PAGE + PAGE).map((row) => [
    row.mean === null ? "–" : row.rank,
    make("a", { href: link(["agent", row.agent.name]) }, row.agent.name),
    format.fixed(row.mean, 2),
    ...groups.map((group) => {
      const average = mean(known(group.map((place) => chosen.matrix[row.i]?.[place])));
      return make("span", { class: `cell ${heat(average)}` }, format.fixed(average, 2));
    }),
  ]);
  const columns: Column[] = [{ title: "#", number: true }, { title: "Agent", name: true }, { title: "All", number: true },
    ...values.map((value, n) => ({ title: `${value} (${groups[n]?.length ?? 0})`, number: true }))];
  const caption = `${chosen.metric} of ${kindTitle(chosen.kind)} by ${by}; in brackets the number of incidents: with few, differences are chance`;
  return { title: "Breakdown", content: [make("h1", {}, "Where agents are good"), filters(query, to),
    make("p", {}, make("label", { for: "by" }, "By ", box)),
    rows.length && values.length ? table(caption, columns, rows, { id: "breakdown" }) : make("p", { id: "empty" }, "There is nothing to show."),
    pager(page, Math.ceil(chosen.rows.length / PAGE), (number) => to({ ...query, page: String(number || "") }))] };
}
