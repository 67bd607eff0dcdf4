"""Figures of benchmarks over time: read from what a benchmark prints, stored as JSON lines, compared."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_NUMBER = re.compile(r"(?<![\w.-])\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?![\d.]*[\w-]*[A-Za-z]\d)")
_TITLES = ("case", "what", "wire", "name", "size")
_NOTABLE = 0.2
"""A change by a fifth is marked: on a shared machine smaller ones are noise."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the benchmarks."""

    date: str
    commit: str
    size: str
    machine: dict[str, Any]
    figures: dict[str, float]


def figures_in(text: str) -> dict[str, float]:
    """Figures by name: leaves of JSON documents by their path, numbers of other lines by the line around them."""
    found: dict[str, float] = {}
    try:
        documents = [json.loads(text)]
    except json.JSONDecodeError:
        documents = []
        for line in text.splitlines():
            try:
                documents.append(json.loads(line))
            except json.JSONDecodeError:
                found |= _figures_of_line(line)
    for document in documents:
        found |= _leaves(document, "")
    return found


def _figures_of_line(line: str) -> dict[str, float]:
    if line.startswith("load average"):
        return {}
    label = " ".join(_NUMBER.sub("#", line).split()).strip(" |")
    values = [float(match.replace(",", "")) for match in _NUMBER.findall(line)]
    if len(values) == 1:
        return {label: values[0]}
    return {f"{label} [{number}]": value for number, value in enumerate(values, 1)}


def _leaves(value: Any, path: str) -> dict[str, float]:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return {}
    if isinstance(value, int | float):
        return {path: float(value)}
    if isinstance(value, dict):
        title = ", ".join(str(value[key]) for key in _TITLES if isinstance(value.get(key), str | int))
        place = f"{path} {title}".strip()
        pairs = [(f"{place}.{key}".lstrip("."), item) for key, item in value.items() if key not in ("machine", "size")]
    elif _titled(value):
        pairs = [(path, item) for item in value]
    else:
        pairs = [(f"{path}[{number}]", item) for number, item in enumerate(value)]
    return {name: figure for place, item in pairs for name, figure in _leaves(item, place).items()}


def _titled(items: Sequence[Any]) -> bool:
    return all(isinstance(item, dict) and any(key in item for key in _TITLES) for item in items)


def machine() -> dict[str, Any]:
    """What figures depend on besides the code."""
    try:
        text = Path("/proc/cpuinfo").read_text()
        model = next(line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "memory_gib": round(memory),
        "python": platform.python_version(),
    }


def read(path: Path) -> list[Run]:
    """All runs of a history, oldest first."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [Run(**json.loads(line)) for line in lines if line]


def store(path: Path, run: Run) -> None:
    with path.open("a") as file:
        file.write(json.dumps(asdict(run)) + "\n")


def previous(runs: Sequence[Run], new: Run) -> Run | None:
    """The last run of the same sizes that measured the same things, on a machine of the same kind if there is one."""
    alike = [run for run in runs if run.size == new.size and run.figures.keys() & new.figures.keys()]
    same = [run for run in alike if _kind(run) == _kind(new)]
    return (same or alike or [None])[-1]


def _kind(run: Run) -> tuple[Any, ...]:
    return tuple(run.machine.get(key) for key in ("processor", "cores"))


def comparison(old: Run | None, new: Run) -> str:
    """A table of old against new; changes by a fifth or more are marked."""
    lines = [f"new: {_title(new)}", f"old: {_title(old) if old else 'none'}", ""]
    width = min(max((len(name) for name in new.figures), default=0), 90)
    lines.append(f"{'':<{width}} {'old':>12} {'new':>12} {'change':>8}")
    for name, value in new.figures.items():
        before = old.figures.get(name) if old else None
        if before is None:
            lines.append(f"{name:<{width}} {'':>12} {value:>12,.4g}")
            continue
        change = value / before - 1 if before else 0.0
        mark = " *" if abs(change) >= _NOTABLE else ""
        lines.append(f"{name:<{width}} {before:>12,.4g} {value:>12,.4g} {change:>+8.0%}{mark}")
    gone = [name for name in old.figures if name not in new.figures] if old else []
    lines.extend(f"not measured this time: {name}" for name in gone)
    return "\n".join(lines)


def _title(run: Run) -> str:
    facts = run.machine
    return (
        f"{run.date} {run.commit}, {run.size} sizes, {facts.get('cores')} cores of {facts.get('processor')}, "
        f"Python {facts.get('python')}, load {facts.get('load')}"
    )
