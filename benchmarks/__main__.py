"""Run the benchmarks, keep their figures over time, and print old against new.

    python -m benchmarks                         all of them, at their usual sizes (more than half an hour)
    python -m benchmarks --quick                 small sizes: minutes
    python -m benchmarks --only network --only judge
    python -m benchmarks --show                  the last two runs again, without measuring

Every run becomes a line of `benchmarks/history.jsonl`: date, commit, facts of the machine, figures by name. It is
compared with the last run of the same sizes on a machine of the same kind. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.history import Run, comparison, figures_in, machine, previous, read, store

FOLDER = Path(__file__).parent
HISTORY = FOLDER / "history.jsonl"
BENCHMARKS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "cluster": (("--json",), ("--json", "--only", "start", "--only", "idle", "--size", "3")),
    "applications": ((), ("hotel_reservation",)),
    "arena": ((), ()),
    "episodes": ((), ("--episodes", "2")),
    "learning_curve": ((), ("--worlds", "1", "1")),
    "line_to_beat": (("--seeds", "31"), ("--suite", "metastable", "--seeds", "31")),
    "collectors": ((), ("20",)),
    "network": ((), ()),
    "promql": ((), ("--pods", "20")),
    "prometheus_http": ((), ("--pods", "20", "--rounds", "10")),
    "judge": ((), ("--trials", "500", "--judged", "10", "--incidents", "10")),
    "llm_agent": (("--json",), ("--json", "--steps", "10", "--wire", "chat")),
    "sre_tools": (("--json",), ("--json", "--scale", "0.01")),
    "first_question": ((), ("--scale", "0.01")),
    "view": ((), ("--seconds", "5", "--no-browser")),
    "live_first_call": ((), ("--problem", "network_policy_block", "--object", "Deployment/recommendation")),
    "sre_tools_detection": ((), ("--draws", "50")),
    "sre_tools_diagnosis": (("--per-family", "2"), ("--per-family", "1", "--most", "1")),
    "zero_overhead": ((), ("--runs", "1", "--megabytes", "1")),
    "leaderboard": ((), ()),
    "agents": (("--sample", "20"), ("--sample", "1")),
    "trivial_agents": (("--sample", "20"), ("--sample", "1")),
    "twenty_questions": ((), ("online_boutique", "--seeds", "1", "--minutes", "4")),
}
"""Arguments at the usual size, and at the small one."""
PATIENCE = 3600
"""Seconds that one benchmark may take."""


def measure(name: str, arguments: tuple[str, ...]) -> dict[str, float]:
    """Run one benchmark in a process of its own; its figures, none where it failed."""
    print(f"measuring {name} ...", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    done = subprocess.run(command, cwd=FOLDER.parent, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode:
        print(f"{name} failed: {(done.stderr.strip().splitlines() or ['no output'])[-1]}", file=sys.stderr)
        return {}
    return {f"{name}: {label}": value for label, value in figures_in(done.stdout).items()}


def commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=BENCHMARKS, metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--show", action="store_true", help="print the last run against the one before it")
    parser.add_argument("--history", type=Path, default=HISTORY, help="the file of figures")
    parser.add_argument("--no-store", action="store_true", help="do not add this run to the history")
    options = parser.parse_args()
    runs = read(options.history)
    if options.show:
        if not runs:
            sys.exit(f"{options.history} holds no runs yet")
        new = runs.pop()
    else:
        figures: dict[str, float] = {}
        load = os.getloadavg()[0]
        for name in options.only or BENCHMARKS:
            figures |= measure(name, BENCHMARKS[name][options.quick])
        size = "quick" if options.quick else "usual"
        now = datetime.now(UTC).isoformat(timespec="seconds")
        new = Run(now, commit(), size, machine() | {"load": round(load, 1)}, figures)
        if not options.no_store:
            store(options.history, new)
    print(comparison(previous(runs, new), new))


if __name__ == "__main__":
    main()
