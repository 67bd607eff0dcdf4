"""How quick and how large the tools over a recorded incident are, at two sizes ten times apart, and for ten agents.

    python benchmarks/sre_tools.py                    a tenth of the issue's size, and a hundredth
    python benchmarks/sre_tools.py --scale 10         300,000 spans, 200,000 logs, 12,000 objects, 440 MB of metrics,
                                                      and ten times that
    python benchmarks/sre_tools.py --scale 10 --keep DIR --limit-mb 2000

The incident is that of `benchmarks/snapshots.py`. Measured in a process of its own:

- reading the files once, from disk (after dropping them from the page cache) and from memory;
- reading them once with the parser that first touch uses too, every column as text, nothing kept;
- first touch of every table, from disk;
- each tool: its first call, and the 95th percentile of twenty warm calls, on the wall and of the processor;
- the most memory this took; `--limit-mb` forbids the process more address space than that, which is harsher.

Then ten agents, each with an MCP session over HTTP, call every tool of one server at the same time.
On a shared machine only times of the processor repeat; they count all threads together.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from snapshots import CALLS, generate

# This file is called as the package it measures: let the import find that one.
sys.path = [place for place in sys.path if Path(place or ".").resolve() != Path(__file__).resolve().parent]

TABLES = ("alerts", "events", "objects", "logs", "spans", "metrics")
WARM_CALLS = 20
AGENTS = 10
MODULE = "sre_tools.offline_incident_analysis"


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _most_memory(pid: int | str = "self") -> int:
    """Megabytes of the process at its largest."""
    match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return round(int(match[1]) / 1000) if match else 0


def _forget(files: list[Path]) -> None:
    """So that the next read comes from disk."""
    for path in files:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def _read_once(files: list[Path]) -> float:
    begun = time.perf_counter()
    for path in files:
        with path.open("rb") as handle:
            while handle.read(1 << 20):
                pass
    return time.perf_counter() - begun


def _parse_once(root: Path, cache: Path) -> tuple[float, float]:
    """Seconds, of the wall and of the processor, to parse every table as text and keep nothing."""
    from srearena.snapshots import open_snapshot
    from srearena.snapshots.building import relation
    from srearena.snapshots.delimited import header_of
    from srearena.snapshots.tables import identifier

    with open_snapshot(root, cache=cache) as snapshot:
        wall, processor = time.perf_counter(), _processor()
        for table in TABLES[1:]:
            paths = snapshot.layout.sources(table)
            header = header_of(paths[0])
            counts = ", ".join(f"count({identifier(name)})" for name in header)
            snapshot.rows(f"SELECT {counts} FROM {relation(header, paths, 10_000)}")
        return time.perf_counter() - wall, _processor() - processor


def measure(root: Path, cache: Path) -> dict[str, Any]:
    from sre_tools.offline_incident_analysis import Workspace, all_tools, call_tool

    files = [path for path in root.rglob("*") if path.is_file()]
    found: dict[str, Any] = {"megabytes": round(sum(path.stat().st_size for path in files) / 1e6)}
    _forget(files)
    found["read_from_disk_s"] = _read_once(files)
    found["disk_mb_per_s"] = found["megabytes"] / found["read_from_disk_s"]
    found["read_from_memory_s"] = _read_once(files)
    found["parse_s"], found["parse_processor_s"] = _parse_once(root, cache)
    _forget(files)
    with Workspace(root, cache=cache) as workspace:
        wall, processor = time.perf_counter(), _processor()
        snapshot = workspace.snapshot()
        for table in TABLES:
            snapshot.table(table)
        found["first_touch_s"] = time.perf_counter() - wall
        found["first_touch_processor_s"] = _processor() - processor
        found["first_touch_memory_mb"] = _most_memory()
        tools: dict[str, dict[str, float]] = {}
        for name in all_tools():
            walls, processors = [], []
            for _ in range(WARM_CALLS + 1):
                wall, processor = time.perf_counter(), _processor()
                reply = call_tool(workspace, name, CALLS.get(name))
                walls.append(1000 * (time.perf_counter() - wall))
                processors.append(1000 * (_processor() - processor))
            tools[name] = {
                "first_ms": walls[0],
                "p95_ms": sorted(walls[1:])[int(0.95 * WARM_CALLS) - 1],
                "processor_ms": sorted(processors[1:])[WARM_CALLS // 2],
                "characters": len(json.dumps(reply)),
            }
        found["tools"] = tools
    found["columns_mb"] = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file()) / 1e6
    found["memory_mb"] = _most_memory()
    return found


def crowd(root: Path, cache: Path) -> dict[str, Any]:
    """Ten agents with a session each, every one calling every tool of one server, all at once."""
    import anyio
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    from sre_tools.offline_incident_analysis import all_tools

    words = [sys.executable, "-m", MODULE, "--http", "--snapshot", str(root), "--cache", str(cache)]
    server = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    match = re.search(r"at (http://\S+); bearer token: (\S+)", server.stderr.readline())
    assert match
    took: list[float] = []

    async def agent(warm: bool) -> None:
        headers = {"Authorization": f"Bearer {match[2]}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=600) as http,
            Client(streamable_http_client(match[1], http_client=http)) as client,
        ):
            for name in all_tools():
                begun = time.perf_counter()
                result = await client.call_tool(name, CALLS.get(name, {}))
                assert not result.is_error, result.content
                if warm:
                    took.append(1000 * (time.perf_counter() - begun))

    async def together() -> float:
        await agent(warm=False)
        begun = time.perf_counter()
        async with anyio.create_task_group() as group:
            for _ in range(AGENTS):
                group.start_soon(agent, True)
        return time.perf_counter() - begun

    try:
        seconds = anyio.run(together)
        took.sort()
        return {
            "agents_s": seconds,
            "agents_calls": len(took),
            "agents_p50_ms": took[len(took) // 2],
            "agents_p95_ms": took[int(0.95 * len(took)) - 1],
            "server_memory_mb": _most_memory(server.pid),
        }
    finally:
        server.terminate()
        server.communicate(timeout=60)


def _measured(place: Path, scale: float, limit: int) -> dict[str, Any]:
    root = place / f"Scenario-{round(scale * 1000)}"
    if not root.exists():
        generate(root, scale)
    words = [sys.executable, __file__, "--measure", str(root), "--limit-mb", str(limit)]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = {}
    for line in done.stdout.splitlines():
        result.update(json.loads(line))
    return result


def _child(root: Path, limit: int) -> None:
    if limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit * 1_000_000, resource.RLIM_INFINITY))
    with tempfile.TemporaryDirectory(dir=root.parent) as cache:
        print(json.dumps(measure(root, Path(cache))), flush=True)
        if limit:  # of address space, which ten sessions' threads reserve and do not use: it was for what reads data
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
        print(json.dumps(crowd(root, Path(cache))), flush=True)


def _show(small: dict[str, Any], large: dict[str, Any]) -> None:
    def row(name: str, before: float, after: float) -> None:
        print(f"{name:<28} {before:>12,.4g} {after:>12,.4g} {after / before if before else 0:>7.1f}x")

    for name in small:
        if name != "tools":
            row(name, small[name], large[name])
    for name, base in (("read_from_disk_s", "disk"), ("parse_s", "parser")):
        row(f"first touch / {base}", *(found["first_touch_s"] / max(found[name], 1e-9) for found in (small, large)))
    for what in ("first_ms", "p95_ms", "processor_ms"):
        print(f"\n{what}")
        for name, facts in large["tools"].items():
            row(f"  {name}", small["tools"][name][what], facts[what])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.1, help="of the larger of the two; the other is a tenth")
    parser.add_argument("--keep", type=Path, help="where the generated snapshots stay, to be used again")
    parser.add_argument("--limit-mb", type=int, default=0, help="address space that the measured process may have")
    parser.add_argument("--json", action="store_true", help="as one JSON document")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        _child(arguments.measure, arguments.limit_mb)
        return
    with tempfile.TemporaryDirectory() as temporary:
        place = arguments.keep or Path(temporary)
        small, large = (
            _measured(place, scale, arguments.limit_mb) for scale in (arguments.scale / 10, arguments.scale)
        )
    if arguments.json:
        print(json.dumps({"small": small, "large": large}))
    else:
        _show(small, large)


if __name__ == "__main__":
    main()
