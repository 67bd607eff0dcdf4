"""`scripts/parity-record [scenario ...]` records the real cluster; with `--report`, compares the embedded one."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.parity import scenarios
from tests.parity.comparison import report
from tests.parity.transcripts import Terminal, Unsettled, save
from tests.real_cluster.layout import KUBECONFIG, KUBERNETES


def record(names: list[str], kubeconfig: Path, *, missing: bool) -> int:
    """Play scenarios on the real cluster and keep what it said."""
    failures = 0
    with tempfile.TemporaryDirectory() as home:
        terminal = Terminal(kubeconfig, Path(home), time.sleep)
        for scenario in scenarios.load():
            if (names and scenario.name not in names and scenario.topic not in names) or (
                missing and scenario.recording.exists()
            ):
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
    parser.add_argument("names", nargs="*", help="scenarios or topics (all by default)")
    parser.add_argument("--kubeconfig", type=Path, default=KUBECONFIG, help="the real cluster")
    parser.add_argument("--missing", action="store_true", help="only scenarios that have no recording yet")
    parser.add_argument("--report", action="store_true", help="compare the embedded cluster with the recordings")
    parser.add_argument("--differences", action="store_true", help="with --report: show every difference")
    chosen = parser.parse_args(arguments)
    if chosen.report:
        return report(chosen.names, differences=chosen.differences)
    return record(chosen.names, chosen.kubeconfig, missing=chosen.missing)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
