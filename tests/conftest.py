"""Settings and guards shared by all tests."""

from __future__ import annotations

import gc
import logging
import os
import random
import shutil
import signal
from collections.abc import Generator, Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

from srearena.go_programs import NO_COLLECTION
from tests import selection, surroundings
from tests.own_errors import ErrorLog, complaints

# On a machine that decides whether a change lands, the same change must give the same verdict twice.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("local", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# A script that starts the tests in the background makes them ignore Ctrl-C, and some tests press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_numbers = count()
_processor_before = pytest.StashKey[float]()
_tree_before = pytest.StashKey[set[str] | None]()


@pytest.fixture(scope="session", autouse=True)
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for the home folders of this process's tests; the home of fixtures that outlive a test."""
    place = tmp_path_factory.mktemp("homes")
    with pytest.MonkeyPatch.context() as patch:
        _move_home(patch, place)
        for name, value in NO_COLLECTION.items():  # for thousands of kubectl
            patch.setenv(name, value)
        yield place


@pytest.fixture(autouse=True)
def _home(_homes: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A home folder for each test; kubectl keeps its cache there."""
    place = _homes / str(next(_numbers))
    place.mkdir()
    _move_home(monkeypatch, place)
    yield
    shutil.rmtree(place, ignore_errors=True)


def _move_home(patch: pytest.MonkeyPatch, place: Path) -> None:
    patch.setenv("HOME", str(place))
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "KUBECACHEDIR", "KUBECONFIG"):
        patch.delenv(name, raising=False)


@pytest.fixture(scope="session", autouse=True)
def _write_guard() -> Iterator[surroundings.WriteGuard]:
    guard = surroundings.WriteGuard()
    yield guard
    guard.active = False


@pytest.fixture(autouse=True)
def _writes_stay_in_temporary_folders(_write_guard: surroundings.WriteGuard) -> Iterator[None]:
    yield
    violations = _write_guard.take()
    assert not violations, f"written outside of the temporary folders: {violations[:5]}"


@pytest.fixture(scope="session", autouse=True)
def _error_log() -> Iterator[ErrorLog]:
    log = ErrorLog()
    logging.getLogger().addHandler(log)
    yield log
    logging.getLogger().removeHandler(log)


@pytest.fixture(autouse=True)
def _no_error_of_our_own(_error_log: ErrorLog, request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail where our own code logged an exception, even though it survived it."""
    yield
    expected = [pattern for mark in request.node.iter_markers("expected_errors") for pattern in mark.args]
    wrong = complaints(_error_log.take(), expected)
    assert not wrong, "\n".join(wrong)


def pytest_xdist_auto_num_workers() -> int:
    """One worker more than there are processors: a fifth of the time, tests wait for processes and clocks."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("srearena")
    group.addoption("--fast", action="store_true", help="only tests without kubectl and browser that are not slow")
    group.addoption("--everything", action="store_true", help="fail on skips that allowed_skips.yaml does not list")
    group.addoption(
        "--all-problems", action="store_true", help="prove all problems and all daily cases, not today's slice"
    )
    group.addoption("--shuffle", action="store_true", help="run the tests in a random order, drawn from SREARENA_SEED")
    group.addoption("--record-slow", action="store_true", help="write tests/slow_tests.txt from this run's durations")


def pytest_configure(config: pytest.Config) -> None:
    selection.configure(config)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(selection.SlowTests(config))


def pytest_report_header() -> str:
    return f"rotating choices: {selection.SEED}={selection.rotation_seed()} repeats them, --all-problems takes all"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    slow = selection.slow_tests()
    if config.getoption("--fast"):
        rest = [item for item in items if not selection.is_fast(item, slow)]
        config.hook.pytest_deselected(items=rest)
        dropped = set(rest)
        items[:] = [item for item in items if item not in dropped]
    if not selection.all_problems():
        chosen = selection.todays_cases(items, selection.rotation_seed())
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]
    if config.getoption("--shuffle"):
        random.Random(selection.rotation_seed()).shuffle(items)
        return
    worker: dict[str, int] = getattr(config, "workerinput", {})
    items[:] = selection.in_order(items, slow, int(worker.get("workercount", 1)))


def pytest_collection_finish() -> None:
    """Keep what was collected, three hundred megabytes that stay, out of every later garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("kubectl") and shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    item.stash[_processor_before] = selection.processor_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "teardown":
        used = selection.processor_seconds() - item.stash[_processor_before]
        report.user_properties.append(("processor_seconds", round(used, 3)))
    if item.config.getoption("--everything"):
        selection.refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if collector.config.getoption("--everything"):
        selection.refuse_skip(report)
    return report


def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        session.config.stash[_tree_before] = surroundings.working_tree()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Report files that appeared or changed in the working tree; in CI, where nobody edits meanwhile, fail."""
    before = session.config.stash.get(_tree_before, None)
    after = surroundings.working_tree() if before is not None else None
    if before is None or after is None or after <= before:
        return
    changed = sorted(line.rpartition(" ")[0] for line in after - before)
    print(f"\nchanged in the working tree during the run: {changed}")
    if os.environ.get("CI") and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
