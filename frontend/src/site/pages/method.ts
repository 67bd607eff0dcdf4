// How the numbers come about, what they are of, and the data to download.
import * as format from "../../format";
import { index } from "../data";
import { type Child, make, type Page } from "../elements";
import { kinds, kindTitle } from "../selection";

const paragraphs = (title: string, ...texts: string[]): Child => [make("h2", {}, title), texts.map((text) => make("p", {}, text))];

export function method(): Promise<Page> {
  const { agents, incidents, k, ...about } = index();
  const facts: [string, string | number | undefined][] = [
    ["Results of", `${format.moment(about.generated_at)} UTC`],
    ["Version of SREArena", about.version],
    ["Submitted by", about.submitter],
    ["Agents", agents.length],
    ...kinds().map((kind): [string, number] => [kindTitle(kind), incidents.filter((one) => one.kind === kind).length]),
    ["Runs per incident", about.runs],
    ["Ranked by", about.ranking_metric],
  ];
  return Promise.resolve({ title: "Method", content: [make("h1", {}, "How it is measured"),
    make("dl", { id: "facts" }, facts.filter(([, value]) => value !== undefined && value !== "").map(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))])),
    paragraphs("Incidents",
      "A recorded incident is a folder of alerts, events, objects, logs, traces and metrics; the agent reads it and writes a diagnosis. A live problem is a running system on Kubernetes that the agent investigates and repairs. They are different tasks with different scores and are never averaged: choose one of them above each table.",
      "Families, difficulties and applications have the same names for both."),
    paragraphs("Scores",
      "The answer to a recorded incident is compared with its ground truth: root causes found and wrongly blamed, the way the failure spread, and the explanation. A live problem has stages, each passed or failed by what the system does afterwards.",
      "A score is the mean over incidents of the mean over runs, so that incidents with more runs do not count more. Runs that the environment spoilt are not graded; runs without an answer are graded zero."),
    paragraphs("Certainty",
      "Intervals contain 95 % of bootstrap resamples of the incidents. Two agents are compared on the incidents that both have, by a sign-flip permutation test; with p of 0.05 or more the difference is called noise. Comparisons of several agents are corrected by Holm's method.",
      `pass@${k} is the chance that at least one of ${k} runs passes, pass^${k} that all of them do; both are estimated from incidents with at least ${k} graded runs. To pass is to get the full score. With a filter every column is that of the selection; # is the rank by the chosen metric, however the table is sorted.`),
    make("h2", {}, "Data"),
    make("ul", { id: "downloads" }, (about.downloads ?? []).map(([file, text]) => make("li", {}, make("a", { href: file, download: true }, file.replace("results/", "")), `: ${text}`)))] });
}
