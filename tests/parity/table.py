"""The table of parity: scenario by scenario, how many views are equal, and two percentages at the end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.parity.comparison import Comparison, allowed, compare, embedded_terminal
from tests.parity.scenarios import chosen
from tests.parity.transcripts import Unsettled, find_helm, read


@dataclass(slots=True)
class Tally:
    """What was counted in one topic, or in all."""

    counts: Counter[str] = field(default_factory=Counter)

    def add(self, views: int, compared: list[Comparison]) -> None:
        """A scenario; nothing compared where it did not come to its end."""
        alike = sum(one.same_substance for one in compared)
        self.counts["scenarios"] += 1
        self.counts["scenarios alike"] += alike == views
        self.counts["views"] += views
        self.counts["views equal"] += sum(one.equal for one in compared)
        self.counts["views alike"] += alike

    def row(self, topic: str) -> str:
        count = self.counts
        return (
            f"| {topic} | {count['scenarios']} | {_share(count['scenarios alike'], count['scenarios'])} "
            f"| {count['views']} | {_share(count['views equal'], count['views'])} "
            f"| {_share(count['views alike'], count['views'])} |"
        )


def show(names: list[str], *, differences: bool) -> int:
    """Compare and print; 1 where something differs that is not allowed."""
    known = allowed()
    tallies: dict[str, Tally] = {}
    whole = Tally()
    unexpected = 0
    with embedded_terminal() as terminal:
        for scenario in chosen(names):
            where = f"{scenario.topic}/{scenario.name}"
            if not scenario.recording.exists() or (scenario.needs_helm and find_helm() is None):
                print(
                    f"{where}: not applicable ({'no helm here' if scenario.needs_helm else 'not recorded'})", flush=True
                )
                continue
            views = len(read(scenario.recording))
            compared: list[Comparison] = []
            try:
                compared = compare(terminal, scenario)
                print(f"{where}: {sum(one.equal for one in compared)} of {views} equal", flush=True)
            except (Unsettled, ValueError) as problem:
                unexpected += 1
                print(f"{where}: {problem}", flush=True)
            for tally in (tallies.setdefault(scenario.topic, Tally()), whole):
                tally.add(views, compared)
            for one in compared:
                if one.equal:
                    continue
                is_known = one.same_substance and (scenario.name, one.real.command) in known
                unexpected += not is_known
                if differences or not is_known:
                    verdict = "differs in wording" if one.same_substance else "DIFFERS"
                    print(
                        f"  {verdict}: $ {one.real.command}\n    " + one.difference.replace("\n", "\n    "), flush=True
                    )
    print("\n| topic | scenarios | equal in substance | views | equal to the letter | equal in substance |")
    print("| --- | --- | --- | --- | --- | --- |")
    for topic, tally in tallies.items():
        print(tally.row(topic))
    print(whole.row("all"))
    return 1 if unexpected else 0


def _share(part: int, whole: int) -> str:
    return f"{part} ({part / whole:.1%})" if whole else "0"
