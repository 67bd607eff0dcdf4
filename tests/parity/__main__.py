"""`python -m tests.parity record [scenario ...]` records the real cluster; `... table` compares the embedded one."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.parity import scenarios, table
from tests.parity.passing import RealTime
from tests.parity.transcripts import Terminal, Unsettled, save
from tests.real_cluster.layout import KUBECONFIG, KUBERNETES
from tests.real_cluster.operations import perform


def record(names: list[str], kubeconfig: Path, *, missing: bool) -> int:
    """Play scenarios on the real cluster and keep what it said."""
    failures = 0
    with tempfile.TemporaryDirectory() as home:
        terminal = Terminal(kubeconfig, Path(home), RealTime(), perform)
        for scenario in scenarios.chosen(names):
            if missing and scenario.recording.exists():
                continue
            began = time.monotonic()
            try:
                save(scenario.recording, KUBERNETES, terminal.play(scenario))
                print(f"{scenario.topic}/{scenario.name}: {time.monotonic() - began:.0f} s", flush=True)
            except Unsettled as problem:
                failures += 1
                print(f"{scenario.topic}/{scenario.name}: {problem}", flush=True)
    return 1 if failures else 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.parity", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    recording = actions.add_parser("record", help="play on the real cluster and keep what it says")
    recording.add_argument("--kubeconfig", type=Path, default=KUBECONFIG, help="the real cluster")
    recording.add_argument("--missing", action="store_true", help="only scenarios that have no recording yet")
    comparing = actions.add_parser("table", help="play on the embedded cluster and compare with the recordings")
    comparing.add_argument("--differences", action="store_true", help="also show the differences that are allowed")
    for action in (recording, comparing):
        action.add_argument("names", nargs="*", help="scenarios or topics (all by default)")
    chosen = parser.parse_args(arguments)
    if chosen.action == "table":
        return table.show(chosen.names, differences=chosen.differences)
    return record(chosen.names, chosen.kubeconfig, missing=chosen.missing)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
