"""How quick and how large the tools over a recorded incident are, at two sizes and with ten agents at once.

    python benchmarks/sre_tools.py                    a tenth of the issue's size, and a hundredth
    python benchmarks/sre_tools.py --scale 1          300,000 spans, 200,000 logs, 12,000 objects, 440 MB of metrics
    python benchmarks/sre_tools.py --scale 10 --keep DIR

The snapshot is that of `benchmarks/snapshots.py`. Measured in a process of its own: reading the files once, first touch
of every table, each tool warm (95th percentile of twenty calls), ten agents at once on one workspace, the most memory.
Times are wall and, where it says so, of the processor: on a shared machine only the latter repeat.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from snapshots import CALLS, generate

# This file is called as the package it measures: let the import find that one.
sys.path = [place for place in sys.path if Path(place or ".").resolve() != Path(__file__).resolve().parent]

TABLES = ("alerts", "events", "objects", "logs", "spans", "metrics")
WARM_CALLS = 20
AGENTS = 10


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _read_once(files: list[Path]) -> float:
    begun = time.perf_counter()
    for path in files:
        with path.open("rb") as handle:
            while handle.read(1 << 20):
                pass
    return time.perf_counter() - begun


def measure(root: Path, cache: Path) -> None:
    from sre_tools.offline_incident_analysis import Workspace, all_tools, call_tool

    files = [path for path in root.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 1e6
    found: dict[str, object] = {"megabytes": round(size), "read_s": round(_read_once(files), 2)}
    with Workspace(root, cache=cache) as workspace:
        wall, processor = time.perf_counter(), _processor()
        snapshot = workspace.snapshot()
        for table in TABLES:
            snapshot.table(table)
        found["first_touch_s"] = round(time.perf_counter() - wall, 2)
        found["first_touch_processor_s"] = round(_processor() - processor, 2)
        tools: dict[str, dict[str, float]] = {}
        for name in all_tools():
            walls, processors = [], []
            for _ in range(WARM_CALLS + 1):
                wall, processor = time.perf_counter(), _processor()
                reply = call_tool(workspace, name, CALLS.get(name))
                walls.append(1000 * (time.perf_counter() - wall))
                processors.append(1000 * (_processor() - processor))
            tools[name] = {
                "first_ms": round(walls[0]),
                "p95_ms": round(sorted(walls[1:])[int(0.95 * WARM_CALLS) - 1]),
                "processor_ms": round(sorted(processors[1:])[WARM_CALLS // 2]),
                "characters": len(json.dumps(reply)),
            }
        found["tools"] = tools
        found["ten_agents_s"] = round(_together(workspace), 2)
    found["memory_mb"] = round(_memory())
    print(json.dumps(found))


def _together(workspace: object) -> float:
    """Ten agents, each calling every tool once, on one workspace."""
    from sre_tools.offline_incident_analysis import all_tools, call_tool

    def agent() -> None:
        for name in all_tools():
            call_tool(workspace, name, CALLS.get(name))  # type: ignore[arg-type]

    threads = [threading.Thread(target=agent) for _ in range(AGENTS)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begun


def _measured(place: Path, scale: float) -> dict[str, object]:
    root = place / f"Scenario-{round(scale * 1000)}"
    if not root.exists():
        generate(root, scale)
    words = [sys.executable, __file__, "--measure", str(root)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    result: dict[str, object] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--keep", type=Path, help="where the generated snapshots stay, to be used again")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        with tempfile.TemporaryDirectory() as cache:
            measure(arguments.measure, Path(cache))
        return
    with tempfile.TemporaryDirectory() as made:
        place = arguments.keep or Path(made)
        small, large = (_measured(place, scale) for scale in (arguments.scale / 10, arguments.scale))
    for name in ("megabytes", "read_s", "first_touch_s", "first_touch_processor_s", "memory_mb", "ten_agents_s"):
        print(f"{name:<28} {small[name]!s:>10} {large[name]!s:>10}")
    print(f"\n{'p95 of 20 warm calls, ms':<28} {'small':>10} {'large':>10}   processor ms, characters (large)")
    for name, facts in large["tools"].items():  # type: ignore[attr-defined]
        before = small["tools"][name]  # type: ignore[index]
        print(
            f"{name:<28} {before['p95_ms']:>10} {facts['p95_ms']:>10}   "
            f"{facts['processor_ms']:>6} {facts['characters']:>7}"
        )


if __name__ == "__main__":
    main()
