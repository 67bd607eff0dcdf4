"""Root causes named by the rules agent with the diagnostic tools on recorded incidents, against two baselines.

    python -m benchmarks.sre_tools_diagnosis --keep incidents --per-family 2 --seed 5   record so many of each family
    python -m benchmarks.sre_tools_diagnosis --keep incidents --no-recording   ask about the recordings that are there

A family is a module of `srearena/conductor/problems/`.

A recording counts where one of the first three suspects is a root cause by its answer key (the changed object, the
component that it makes misbehave, or an alias of these). The baselines use no model and no training, and get the same
begin of the incident as the tools find:

- `baro`: the RobustScorer of BARO (Pham, Ha, Zhang: "BARO: Robust Root Cause Analysis for Microservices via
  Multivariate Bayesian Online Change Point Detection", FSE 2024). Metrics are ranked by the largest distance after the
  begin from the median before it, in interquartile ranges before it.
- `epsilon`: after epsilon-Diagnosis (Shan et al.: "Epsilon-Diagnosis: Unsupervised and Real-time Diagnosis of
  Small-window Long-tail Latency in Large-scale Microservice Platforms", WWW 2019). Metrics are ranked by the energy
  coefficient of the samples before and after the begin.

A component's rank is that of its best metric.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from clients.rules.suspects import rank
from sre_tools.offline_incident_analysis import Workspace, call_tool
from sre_tools.offline_incident_analysis.conditions import Conditions
from sre_tools.offline_incident_analysis.metric_series import NO_BUCKETS, SeriesReader, values_or_rates
from sre_tools.offline_incident_analysis.workloads import workload_of
from srearena.conductor.episode.spec import Timeline
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.errors import SreArenaError
from srearena.ground_truth import GroundTruth
from srearena.ground_truth.files import load_document
from srearena.ground_truth.parsing import parse_ground_truth
from srearena.observer.recorder import Recorder
from srearena.snapshots import Snapshot

TOP = 3
_MIN_POINTS = 4
_KEYS = "keys"
Floats = Any


def robust_score(before: Floats, after: Floats) -> float:
    """BARO's RobustScorer of one metric."""
    low, middle, high = np.percentile(before, [25, 50, 75])
    return float(np.abs(after - middle).max() / max(high - low, abs(middle) * 0.01, 1e-9))


def energy_coefficient(before: Floats, after: Floats) -> float:
    """The energy coefficient of two samples: 0 for equal distributions, at most 1."""
    between = np.abs(before[:, None] - after[None, :]).mean()
    if between <= 0:
        return 0.0
    within = np.abs(before[:, None] - before[None, :]).mean() + np.abs(after[:, None] - after[None, :]).mean()
    return float((2 * between - within) / (2 * between))


BASELINES: dict[str, Callable[[Floats, Floats], float]] = {"baro": robust_score, "epsilon": energy_coefficient}


def ranked_components(snapshot: Snapshot, begin: datetime, score: Callable[[Floats, Floats], float]) -> list[str]:
    """Components by the score of their best metric."""
    where = Conditions()
    where.add(NO_BUCKETS)
    where.add("object_kind IN ('pod', 'service') AND namespace IS DISTINCT FROM 'kube-system'")  # as in the papers
    every = [series for series in SeriesReader(snapshot, where) if len(series.values) > 2 * _MIN_POINTS]
    best: dict[str, float] = defaultdict(float)
    for series, (times, values, _) in zip(every, values_or_rates(every), strict=True):
        early = times < begin.timestamp()
        if early.sum() >= _MIN_POINTS and (~early).sum() >= _MIN_POINTS:
            name = workload_of(series.object, series.kind.title())
            best[name] = max(best[name], score(values[early], values[~early]))
    return sorted(best, key=lambda name: (-best[name], name))


def is_root(truth: GroundTruth, name: str) -> bool:
    """Whether a name is that of a root cause or of an alias of one."""
    roots = {group.id for group in truth.roots}
    accepted = roots.union(*(set(names) for names in truth.aliases if roots & set(names)))
    for group in truth.groups:
        if group.id in accepted:
            # `cart-.*` stands for the pods of cart, not for another component that is called cart-proxy.
            patterns = [pattern.removesuffix("-.*") for pattern in group.filters]
            patterns += [re.escape(group.name)] if group.name else []
            if any(re.fullmatch(pattern, name) for pattern in patterns):
                return True
    return False


def first_suspects(directory: Path, truth: GroundTruth, cache: Path | None = None) -> dict[str, Any]:
    """The first names of the agent and of the baselines, and the place of the first right one (0: not among them)."""
    with Workspace(directory, cache=cache) as workspace:
        found = rank(lambda tool, arguments: call_tool(workspace, tool, arguments))
        names = {"rules": [suspect.entity.rpartition("/")[2] for suspect in found]}
        symptom = call_tool(workspace, "change_impact", {"limit": 1})["summary"].get("symptom_time")
        if symptom:
            begin = datetime.fromisoformat(str(symptom)).astimezone(UTC)
            for baseline, score in BASELINES.items():
                names[baseline] = ranked_components(workspace.snapshot(), begin, score)
    return {
        method: {
            "first": names.get(method, [])[:TOP],
            "place": next((n for n, name in enumerate(names.get(method, []), 1) if is_root(truth, name)), 0),
        }
        for method in ("rules", *BASELINES)
    }


def record(problems: Iterable[str], place: Path, timeline: Timeline, seed: int) -> None:
    """Record the problems that are not recorded yet."""
    registry = ProblemRegistry()
    for name in problems:
        if (place / name).exists():
            continue
        print(f"recording {name} ...", file=sys.stderr, flush=True)
        try:
            recorder = Recorder(seed=seed, timeline=timeline)
            recorder.record(registry.get_problem(name), place / name, place / _KEYS / name)
        except SreArenaError as problem:
            print(f"{name}: {problem}", file=sys.stderr)


def family(problem: Any) -> str:
    """The family of a problem: its module."""
    return type(problem).__module__.rpartition(".")[2]


def catalogue(per_family: int | None) -> list[str]:
    """All problems with a fault, or so many of each family, evenly spread: the first of each, then the second."""
    registry = ProblemRegistry()
    families: dict[str, list[str]] = defaultdict(list)
    for name in sorted(registry.get_problem_ids()):
        if not name.startswith("noop_"):
            families[family(registry.get_problem(name))].append(name)
    chosen: list[tuple[int, str, str]] = []
    for label, names in families.items():
        count = min(per_family or len(names), len(names))
        chosen += [(turn, label, names[(2 * turn + 1) * len(names) // (2 * count)]) for turn in range(count)]
    return [name for _, _, name in sorted(chosen)]


def report(place: Path) -> dict[str, Any]:
    """The share of recordings with a right suspect among the first three, per method, family and level."""
    registry = ProblemRegistry()
    results = {}
    hits: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    firsts: dict[str, list[bool]] = defaultdict(list)
    for directory in sorted(path for path in place.iterdir() if path.is_dir() and path.name != _KEYS):
        key = place / _KEYS / directory.name / "ground_truth.yaml"
        if directory.name.startswith(".") or not key.exists():
            continue
        truth = parse_ground_truth(load_document(key), default_id=directory.name)
        results[directory.name] = found = first_suspects(directory, truth)
        problem = registry.get_problem(directory.name)
        for method, facts in found.items():
            firsts[method].append(facts["place"] == 1)
            for group in (f"family {family(problem)}", f"level {problem.level}", "all"):
                hits[method][group].append(0 < facts["place"] <= TOP)
    shares = {
        method: {
            group: {"top_3_pct": round(100 * sum(found) / len(found)), "recordings": len(found)}
            for group, found in sorted(by.items())
        }
        for method, by in hits.items()
    }
    first_pct = {method: round(100 * sum(found) / len(found)) for method, found in firsts.items()}
    return {"shares": shares, "first_pct": first_pct, "recordings": results}


def table(shares: dict[str, Any]) -> str:
    """The shares as the table in docs/benchmarks.md."""
    lines = ["| recordings of | count | rules agent | BARO | epsilon |", "| --- | ---: | ---: | ---: | ---: |"]
    for group in sorted(shares["rules"]):
        cells = [f"{shares[method][group]['top_3_pct']} %" for method in ("rules", *BASELINES)]
        lines.append(f"| {group} | {shares['rules'][group]['recordings']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--per-family", type=int, help="how many problems of each family; all by default")
    parser.add_argument("--most", type=int, help="record at most so many")
    parser.add_argument("--keep", type=Path, help="where recordings are and stay; by default they are deleted")
    parser.add_argument("--no-recording", action="store_true", help="record nothing")
    parser.add_argument("--seed", type=int, default=0, help="of the clusters that are recorded")
    parser.add_argument("--before", type=float, default=300.0)
    parser.add_argument("--after", type=float, default=600.0)
    options = parser.parse_args()
    if options.no_recording and options.keep is None:
        parser.error("--no-recording needs --keep: the folder with the recordings")
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        if not options.no_recording:
            record(
                catalogue(options.per_family)[: options.most],
                folder,
                Timeline(before=options.before, after=options.after),
                options.seed,
            )
        found = report(folder)
        print(json.dumps(found, indent=1))
        if found["recordings"]:
            print(table(found["shares"]))


if __name__ == "__main__":
    main()
