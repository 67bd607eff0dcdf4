// How the numbers come about, what they are of, and the data to download.
"use strict";
(function () {
  const { make } = srearena;

  srearena.pages.method = async function () {
    const { index } = srearena;
    const facts = [["Results of", srearena.moment(index.generated_at) + " UTC"], ["Version of SREArena", index.version], ["Submitted by", index.submitter],
      ["Agents", index.agents.length], ...srearena.kinds().map((kind) => [srearena.kindTitle(kind), index.incidents.filter((i) => i.kind === kind).length]),
      ["Runs per incident", index.runs], ["Ranked by", index.ranking_metric]].filter(([, value]) => value !== undefined && value !== null && value !== "");
    const say = (title, ...texts) => [make("h2", {}, title), texts.map((text) => make("p", {}, text))];
    return { title: "Method", content: [make("h1", {}, "How it is measured"),
      make("dl", { id: "facts" }, facts.map(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))])),
      say("Incidents", "A recorded incident is a folder of alerts, events, objects, logs, traces and metrics; the agent reads it and writes a diagnosis. A live problem is a running system on Kubernetes that the agent investigates and repairs. They are different tasks with different scores and are never averaged: choose one of them above each table.",
        "Families, difficulties and applications have the same names for both."),
      say("Scores", "The answer to a recorded incident is compared with its ground truth: root causes found and wrongly blamed, the way the failure spread, and the explanation. A live problem has stages, each passed or failed by what the system does afterwards.",
        "A score is the mean over incidents of the mean over runs, so that incidents with more runs do not count more. Runs that the environment spoilt are not graded; runs without an answer are graded zero."),
      say("Certainty", "Intervals contain 95 % of bootstrap resamples of the incidents. Two agents are compared on the incidents that both have, by a sign-flip permutation test; with p of 0.05 or more the difference is called noise. Comparisons of several agents are corrected by Holm's method.",
        "pass@" + index.k + " is the chance that at least one of " + index.k + " runs passes, pass^" + index.k + " that all of them do; both are estimated from incidents with at least " + index.k + " graded runs. To pass is to get the full score. With a filter every column is that of the selection; # is the rank by the chosen metric, however the table is sorted."),
      make("h2", {}, "Data"), make("ul", { id: "downloads" }, (index.downloads || []).map(([file, about]) => make("li", {}, make("a", { href: file, download: true }, file.replace("results/", "")), ": " + about)))] };
  };
})();
