"""What an incident costs on the embedded and on the real cluster: `python -m tests.real_cluster.costs PROBLEM`.

The same episode (`incidents.py`) is played on both, one after the other, on one machine. On the real cluster the work
of its nodes counts as well: of every process in their namespaces, and of those that these have outlived.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.real_cluster.layout import KUBERNETES, STATE, Node

RECORDED = Path(__file__).parent / "costs.json"
_OBSERVED = '  {"pods"'
"""How the line begins that an episode prints when the fingerprint is taken."""
_TICKS = os.sysconf("SC_CLK_TCK")
_USER_TIME = 13
"""The place of four numbers in /proc/PID/stat: time of a process and of its ended children, in user and system mode."""
_ROWS = {
    "observed": "wall seconds to the first observation",
    "observed CPU": "CPU seconds to the first observation",
    "episode": "wall seconds of the whole episode",
    "episode CPU": "CPU seconds of the whole episode",
    "memory": "memory, MiB",
}


def measure(problem: str, backend: str, folder: Path) -> dict[str, float]:
    """Play a problem, and read clocks and memory when it is observed and at the end."""
    holders = list(_holders()) if backend == "kubernetes" else []
    before, began = sum(_cpu(pid) for pid in _inside(holders)), time.monotonic()
    found: dict[str, float] = {}
    command = [sys.executable, "-m", "tests.real_cluster.incidents", problem, "--backend", backend]
    played = subprocess.Popen([*command, "--output", str(folder / backend)], stdout=subprocess.PIPE, text=True)
    assert played.stdout is not None
    for line in played.stdout:
        if _OBSERVED in line:
            inside = _inside(holders)
            found["observed"] = time.monotonic() - began
            found["observed CPU"] = sum(_cpu(pid) for pid in inside) - before + _cpu(played.pid)
            found["memory"] = sum(_memory(pid) for pid in [*inside, played.pid])
    _, _, usage = os.wait4(played.pid, 0)
    found["episode"] = time.monotonic() - began
    found["episode CPU"] = sum(_cpu(pid) for pid in _inside(holders)) - before + usage.ru_utime + usage.ru_stime
    return {name: round(value, 1) for name, value in found.items()}


def table(costs: dict[str, Any]) -> list[str]:
    """The lines of a table in Markdown."""
    embedded, real = costs["embedded"], costs["kubernetes"]
    lines = [f"| `{costs['problem']}` | embedded | real | ratio |", "| --- | --- | --- | --- |"]
    for name, text in _ROWS.items():
        lines.append(f"| {text} | {embedded[name]:g} | {real[name]:g} | {real[name] / embedded[name]:.0f} |")
    hourly = [3600 / side["episode"] for side in (embedded, real)]
    lines.append(f"| episodes an hour, one after the other | {hourly[0]:.0f} | {hourly[1]:.0f} | |")
    return lines


def _holders() -> Iterator[int]:
    for node in _nodes():
        yield int((node.folder / "pids").read_text().split()[1])


@cache
def _nodes() -> tuple[Node, ...]:
    return tuple(node for node in map(Node, range(16)) if (node.folder / "pids").exists())


def _inside(holders: list[int]) -> list[int]:
    """The processes in the namespaces of these, as far as they are still there."""
    spaces = {os.readlink(f"/proc/{pid}/ns/pid") for pid in holders}
    found = []
    for path in Path("/proc").iterdir() if spaces else ():
        if path.name.isdigit() and _below(path, spaces):
            found.append(int(path.name))
    return found


def _below(path: Path, spaces: set[str]) -> bool:
    """Whether a process is in one of these namespaces, or in a container's: then it is below a node's group."""
    try:
        groups = (path / "cgroup").read_text()
        return os.readlink(path / "ns" / "pid") in spaces or any(f":/{node.cgroup}/" in groups for node in _nodes())
    except OSError:
        return False  # it has ended


def _cpu(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[_USER_TIME - 2 : _USER_TIME + 2])) / _TICKS


def _memory(pid: int) -> float:
    """Mebibytes, of which what several processes share is shared out among them."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.real_cluster.costs", description=__doc__)
    parser.add_argument("problem")
    parser.add_argument("--output", type=Path, default=Path("/tmp/costs"), help="folder for what was recorded")
    chosen = parser.parse_args(arguments)
    costs: dict[str, Any] = {"problem": chosen.problem, "kubernetes version": KUBERNETES, "processors": os.cpu_count()}
    for backend in ("embedded", "kubernetes") if STATE.exists() else ("embedded",):
        costs[backend] = measure(chosen.problem, backend, chosen.output)
        print(backend, costs[backend], flush=True)
    if "kubernetes" in costs:
        RECORDED.write_text(json.dumps(costs, indent=1) + "\n")
        print("\n".join(table(costs)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
