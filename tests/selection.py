"""Which tests run, in which order, and which may be skipped.

`--fast` keeps what needs neither kubectl nor a browser and is not in `slow_tests.txt`. `--everything` turns a skip that
`allowed_skips.yaml` does not list into a failure. `--all-problems` proves every problem instead of today's slice, and
takes all cases of tests marked `daily_cases(n)`: cases of one law, each expensive, of which a run takes `n`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).parent
SLOW_TESTS = FOLDER / "slow_tests.txt"
ALLOWED_SKIPS = FOLDER / "allowed_skips.yaml"
UNAVAILABLE = "SREARENA_TEST_UNAVAILABLE"
"""Names the file in which `scripts/test --everything` writes what it could not install, a name on each line."""
SEED = "SREARENA_SEED"
SLOW_SECONDS = 0.3
"""From this processor time on a test is recorded as slow: seven thousand others then fit in two minutes."""
LONG_SECONDS = 8.0
"""Tests of this duration start first, so that none of them is left alone at the end."""
NOT_FAST = {"chrome", "browser", "coding_cli", "operator", "make_operator", "terminal", "needs_sandbox"}
"""Fixtures that start kubectl, a browser or a coding CLI."""


def rotation_seed() -> int:
    """What the rotating choices of this run are drawn from: SREARENA_SEED, or the number of the day."""
    return int(os.environ.get(SEED) or datetime.now(UTC).toordinal())


def all_problems() -> bool:
    return os.environ.get("SREARENA_VERIFY") == "all"


def configure(config: pytest.Config) -> None:
    """Settle what must be the same in all worker processes."""
    os.environ[SEED] = str(rotation_seed())
    if config.getoption("--all-problems"):
        os.environ["SREARENA_VERIFY"] = "all"


# --- fast and slow ----------------------------------------------------------------------------------------------------


def slow_tests() -> dict[str, float]:
    """Seconds by test function, for those that are not fast."""
    lines = SLOW_TESTS.read_text().splitlines() if SLOW_TESTS.exists() else []
    return {name: float(seconds) for seconds, name in (line.split(maxsplit=1) for line in lines if line)}


def function_of(nodeid: str) -> str:
    """The node ID without parameters."""
    return nodeid.partition("[")[0]


def is_fast(item: pytest.Item, slow: dict[str, float]) -> bool:
    if item.get_closest_marker("kubectl") or function_of(item.nodeid) in slow:
        return False
    return not NOT_FAST & set(getattr(item, "fixturenames", ()))


def in_order(items: Sequence[pytest.Item], slow: dict[str, float], workers: int) -> list[pytest.Item]:
    """Put long tests first, dealt to as many equal shares as there are workers; the others stay in order.

    xdist's work-stealing distribution begins by giving each worker one contiguous share.
    """
    long = [item for item in items if slow.get(function_of(item.nodeid), 0.0) >= LONG_SECONDS]
    long.sort(key=lambda item: -slow[function_of(item.nodeid)])
    chosen = set(long)
    others = [item for item in items if item not in chosen]
    size = -(-len(others) // workers) if others else 0
    shares = [[*long[number::workers], *others[number * size : (number + 1) * size]] for number in range(workers)]
    return [item for share in shares for item in share]


def processor_seconds() -> float:
    """What this process and its finished children have used of the processor."""
    return sum(os.times()[:4])


class SlowTests:
    """Collects the processor time of tests, which is the same on a busy machine: for the list, and for `--fast`."""

    def __init__(self, config: pytest.Config) -> None:
        self._seconds: dict[str, float] = {}
        self._record = bool(config.getoption("--record-slow"))
        self._fast = bool(config.getoption("--fast"))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            used = dict(report.user_properties).get("processor_seconds", 0.0)
            name = function_of(report.nodeid)
            self._seconds[name] = max(self._seconds.get(name, 0.0), float(str(used)))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write `slow_tests.txt` where that is asked for, and name tests that `--fast` should not have."""
        if self._record:
            known = {name: seconds for name, seconds in slow_tests().items() if _exists(name)}
            merged = {**known, **self._seconds}
            lines = [f"{merged[name]:.1f} {name}\n" for name in sorted(merged) if merged[name] >= SLOW_SECONDS]
            SLOW_TESTS.write_text("".join(lines))
        elif self._fast:
            for name, seconds in sorted(self._seconds.items(), key=lambda pair: -pair[1]):
                if seconds >= 3 * SLOW_SECONDS:
                    terminalreporter.write_line(f"slow, in spite of --fast ({seconds:.1f} s, --record-slow): {name}")


def _exists(name: str) -> bool:
    """Whether a function of the list is still there."""
    path = FOLDER.parent / name.partition("::")[0]
    return path.exists() and f"def {name.rpartition('::')[2]}(" in path.read_text()


# --- skips ------------------------------------------------------------------------------------------------------------


def forbidden_skip(reason: str) -> str | None:
    """Why a skip may not be under `--everything`; None where the list allows it."""
    for entry in yaml.safe_load(ALLOWED_SKIPS.read_text()):
        if re.search(entry["reason"], reason):
            program = entry.get("unless_installed")
            if program is None or program in unavailable():
                return None
            return f"skipped although {program} was installed: {reason}"
    return f"skipped, and {ALLOWED_SKIPS.name} does not list it: {reason}"


def unavailable() -> set[str]:
    """What could not be installed on this machine."""
    path = os.environ.get(UNAVAILABLE)
    return set(Path(path).read_text().split()) if path and Path(path).exists() else set()


def refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a report of a skip into a failure, unless the list allows it."""
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    problem = forbidden_skip(reason.removeprefix("Skipped: "))
    if problem:
        report.outcome = "failed"
        report.longrepr = problem


# --- rotation ---------------------------------------------------------------------------------------------------------


def rotating_slice(groups: dict[str, list[str]], parts: int, seed: int) -> list[str]:
    """One member of every `parts`-th group; consecutive seeds go through all groups, then through their members."""
    names = sorted(groups)
    return [
        sorted(groups[name])[(seed // parts) % len(groups[name])]
        for number, name in enumerate(names)
        if (number + seed) % parts == 0
    ]


def todays_cases(items: Sequence[pytest.Item], seed: int) -> set[pytest.Item]:
    """All tests, but of one marked `daily_cases(n)` only `n` cases; consecutive seeds go through all of its cases."""
    groups: dict[str, list[pytest.Item]] = {}
    kept = set()
    for item in items:
        if item.get_closest_marker("daily_cases"):
            groups.setdefault(function_of(item.nodeid), []).append(item)
        else:
            kept.add(item)
    for cases in groups.values():
        mark = cases[0].get_closest_marker("daily_cases")
        count = mark.args[0] if mark else 0
        kept.update(cases[(seed * count + number) % len(cases)] for number in range(min(count, len(cases))))
    return kept


def rotating_member(names: Iterable[str], seed: int) -> str:
    ordered = sorted(names)
    return ordered[seed % len(ordered)]
