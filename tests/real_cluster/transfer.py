"""`docs/transfer.md`: incidents on the embedded and on the real cluster, side by side.

`python -m tests.real_cluster.transfer` plays every problem that has a recording in `recorded/` (made by `incidents.py`
on a real cluster) on an embedded cluster, and writes the page. `explanations.yaml` says why the two differ, where they
do.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from srearena.conductor.episode.spec import Timeline
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.config import Config
from tests.real_cluster import costs
from tests.real_cluster.applications import LEFT_OUT
from tests.real_cluster.fingerprints import FEATURES, Fingerprint, agreement, differences
from tests.real_cluster.incidents import TIMELINE, Incident
from tests.real_cluster.signals import measured
from tests.real_cluster.usage import Usage

RECORDED = Path(__file__).parent / "recorded"
USAGE = Path(__file__).parent / "usage.json"
"""What the real programs of the healthy application used: `usage` of a recording of `noop_hotel_reservation`."""
HEALTHY = Timeline(before=150.0, after=0.0)
EXPLANATIONS = Path(__file__).parent / "explanations.yaml"
PAGE = Path(__file__).parents[2] / "docs/transfer.md"
APPLICATION = "Hotel Reservation"
VERDICTS = "verdicts"
SYMPTOM, RECOVERY = "time to symptom", "time to recovery"
TIMES = (SYMPTOM, RECOVERY)
FACTOR, SLACK = 2.0, 15.0
"""Times agree within this factor, or where they are not further apart than two evaluations of the alert rules."""
NOT_RECORDED = "not recorded"
UNEXPLAINED = "**not explained**"
Document = Mapping[str, Any]

_INTRODUCTION = """\
# Does an embedded incident foretell a real one?

Hotel Reservation ran with the same problems on the embedded cluster and on the real Kubernetes of [real-
cluster](real-cluster.md), with the same manifests, faults, oracles and remedies. {before:.0f} seconds under load
before the fault and {after:.0f} seconds after it a fingerprint was taken: the states of pods, what Deployments
report, containers that restarted, reasons of warnings, Services without endpoints, outcomes of the sample requests,
spans that are marked as failed, which programs logged errors, how the golden signals of each service have changed (no
or less traffic, a median latency that is several times what it was, errors), and which alerts are active. A cell is
the share of the symptoms that both clusters show (the Jaccard index), or *none* where both show none; what both show
as healthy is not counted. *Verdicts* says whether the oracle judged equally on both: content before the fault, failed
when nothing was done, passed after the remedy. The *times* are those of the embedded and of the real cluster in
seconds: from the fault to its first warning, failing span or active alert, and from the beginning of the remedy until
all pods are available and every sample request works; they agree within a factor of two, or {slack:.0f} seconds, at
which metrics are scraped.

The real fingerprints are kept in `tests/real_cluster/recorded/`, one episode of each problem. This page is generated
by `python -m tests.real_cluster.transfer`; the tests compare a few of its problems with the embedded cluster on every
run. Alerts on span metrics and on probes of the blackbox exporter are not compared: the application sends its spans
to a Jaeger of its own, and a real cluster gets no such exporter. Where a recording is older than a feature, the cell
says *not recorded*.
"""
_COSTS = """\
One episode of the same problem, played on an embedded and on the real cluster of one machine with two processors, by
`python -m tests.real_cluster.costs`: deployment, {before:.0f} seconds under load, {after:.0f} seconds with the fault,
the first observation, the remedy, restoration. On the real cluster the work of its nodes counts as well.
"""
_PROGRAMS = """\
A healthy Hotel Reservation at 30 requests a second, embedded / real: processor time for a request, the duration of
spans, and the working set. The real machine was loaded by other work, which lengthens the slowest requests most. A
span of the real programs begins after gRPC has read the request, which counts in their processor time only.
"""


def recorded() -> dict[str, Document]:
    """What was recorded on a real cluster, by problem."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(RECORDED.glob("*.json"))}


def play_embedded(problem: str) -> Document:
    """The same problem on an embedded cluster."""
    return Incident(problem, Config(), TIMELINE).play().as_document()


def page(real: Mapping[str, Document], embedded: Mapping[str, Document]) -> str:
    """The page as text."""
    lines = [_INTRODUCTION.format(before=TIMELINE.before, after=TIMELINE.after, slack=SLACK)]
    columns = (*FEATURES, VERDICTS, *TIMES)
    lines += [f"| problem | {' | '.join(columns)} |", f"| --- |{' --- |' * len(columns)}"]
    shares = {problem: _shares(real[problem], embedded[problem]) for problem in real}
    lines += [row(problem, real[problem], embedded[problem]) for problem in real]
    if real:
        means = [_mean([one[column] for one in shares.values() if column in one]) for column in (*FEATURES, VERDICTS)]
        timed = [one for one in real if "first" in real[one]]
        means += [_mean([_close(*_times(real[one], embedded[one], time)) for one in timed]) for time in TIMES]
        lines.append(f"| mean of {len(real)} problems | {' | '.join(means)} |")
    lines += ["", "## Differences", ""]
    for problem in real:
        lines += section(problem, real[problem], embedded[problem])
    if costs.RECORDED.exists():
        lines += ["## Costs", "", _COSTS.format(before=TIMELINE.before, after=TIMELINE.after)]
        lines += [*costs.table(json.loads(costs.RECORDED.read_text())), ""]
    lines += ["## Programs", "", _PROGRAMS, *usage_table(json.loads(USAGE.read_text()), embedded_usage()), ""]
    lines += ["## Not run", "", "| problem | why |", "| --- | --- |"]
    lines += [f"| `{problem}` | {why} |" for problem, why in not_run(real).items()]
    return "\n".join(lines).rstrip() + "\n"


def embedded_usage() -> Usage:
    """What the models of the healthy application use."""
    return Incident("noop_hotel_reservation", Config(), HEALTHY).play().usage


def usage_table(real: Usage, embedded: Usage) -> list[str]:
    """The services of the application, embedded and real."""
    measures = ("CPU ms/request", "median ms", "p95 ms", "memory MiB")
    lines = [f"| service | {' | '.join(measures)} |", f"| --- |{' --- |' * len(measures)}"]
    for service in sorted(set(real) & set(embedded)):
        if "requests/s" in real[service]:
            pairs = (f"{embedded[service][one]:.2g} / {real[service][one]:.2g}" for one in measures)
            lines.append(f"| `{service}` | {' | '.join(pairs)} |")
    return lines


def row(problem: str, real: Document, embedded: Document) -> str:
    """The problem's line in the table."""
    shares = _shares(real, embedded)
    cells = [_cell(shares[feature]) if feature in shares else NOT_RECORDED for feature in FEATURES]
    cells.append("equal" if shares[VERDICTS] else "different")
    cells += [_pair(*_times(real, embedded, time)) if "first" in real else NOT_RECORDED for time in TIMES]
    return f"| `{problem}` | {' | '.join(cells)} |"


def section(problem: str, real: Document, embedded: Document) -> list[str]:
    """The lines about a problem's differences, with their explanations; none where there are no differences."""
    found: dict[str, tuple[Sequence[str], Sequence[str]]] = dict(differences(*_fingerprints(real, embedded)))
    if _verdicts(real) != _verdicts(embedded):
        found[VERDICTS] = (_failed(embedded), _failed(real))
    for time in TIMES:
        pair = _times(real, embedded, time)
        if "first" in real and _close(*pair) == 0:
            found[time] = ([_seconds(pair[0])], [_seconds(pair[1])])
    lines = []
    for feature, sides in found.items():
        parts = [
            f"only {name}: {'; '.join(texts)}" for name, texts in zip(("embedded", "real"), sides, strict=True) if texts
        ]
        why = explanation(problem, feature) or UNEXPLAINED
        lines.append(f"- {feature}: {', '.join(parts)}. {why[0].upper()}{why[1:].rstrip('.')}.")
    return [f"`{problem}`", "", *lines, ""] if lines else []


def explanation(problem: str, feature: str) -> str:
    """Why the two clusters differ in a feature of a problem; empty where there is no explanation."""
    for entry in explanations():
        if fnmatch(feature, entry["feature"]) and any(fnmatch(problem, pattern) for pattern in entry["problems"]):
            return str(entry["why"])
    return ""


@cache
def explanations() -> tuple[Mapping[str, Any], ...]:
    """The entries of the file; the first that fits holds."""
    return tuple(yaml.safe_load(EXPLANATIONS.read_text()) or ())


def not_run(real: Mapping[str, Document]) -> dict[str, str]:
    """The application's problems that have no recording, and why."""
    registry = ProblemRegistry()
    found = {}
    for problem_id in sorted(set(registry.get_problem_ids()) - set(real)):
        problem = registry.get_problem(problem_id, None)
        if problem.app.name != APPLICATION:
            continue
        stand_in = next((why for start, why in LEFT_OUT.items() if problem_id.startswith(start)), "")
        if "kubernetes" not in problem.runs_on:
            found[problem_id] = "runs on embedded clusters only"
        else:
            found[problem_id] = stand_in or "not run yet"
    return found


def _mean(shares: Sequence[float | None]) -> str:
    """Of the problems that show symptoms, with their number."""
    known = [share for share in shares if share is not None]
    return f"{sum(known) / len(known):.0%} of {len(known)}" if known else "none"


def _times(real: Document, embedded: Document, time: str) -> tuple[float | None, float | None]:
    """A time of the embedded and of the real incident; None where there was no such moment."""
    return _time(embedded, time), _time(real, time)


def _time(document: Document, time: str) -> float | None:
    if time == RECOVERY:
        return document.get("recovery")
    return min((document.get("first") or {}).values(), default=None)


def _close(one: float | None, other: float | None) -> float | None:
    """Whether two times agree; None where neither is known."""
    if one is None or other is None:
        return None if one is other else 0.0
    return float(max(one, other) <= max(FACTOR * min(one, other), min(one, other) + SLACK))


def _pair(one: float | None, other: float | None) -> str:
    return "none" if one is other is None else f"{_seconds(one)} / {_seconds(other)}"


def _seconds(time: float | None) -> str:
    return "never" if time is None else f"{time:.0f}"


def _cell(share: float | None) -> str:
    return "none" if share is None else f"{share:.0%}"


def _shares(real: Document, embedded: Document) -> dict[str, float | None]:
    same = _verdicts(real) == _verdicts(embedded)
    return {**agreement(*_fingerprints(real, embedded)), VERDICTS: float(same)}


def _fingerprints(real: Document, embedded: Document) -> tuple[Fingerprint, Fingerprint]:
    """Those of the embedded and of the real incident, without signals of services that only one of them measured.

    Of an embedded cluster's requests one a second leaves a trace, so it says nothing about services that few need.
    """
    both = measured(embedded.get("signals", {})) & measured(real.get("signals", {}))

    def comparable(fingerprint: Fingerprint) -> Fingerprint:
        if "signals" not in fingerprint:
            return fingerprint
        return {**fingerprint, "signals": [one for one in fingerprint["signals"] if one.partition(":")[0] in both]}

    return comparable(embedded["fingerprint"]), comparable(real["fingerprint"])


def _verdicts(document: Document) -> dict[str, bool]:
    return {step: holds for step, holds in document["steps"].items() if step != "restored"}


def _failed(document: Document) -> list[str]:
    return [note for note in document["notes"] if not note.startswith("restored")]


def main() -> int:
    real = recorded()
    PAGE.write_text(page(real, {problem: play_embedded(problem) for problem in real}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
