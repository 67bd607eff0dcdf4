"""Settings and guards shared by all tests."""

from __future__ import annotations

import logging
import os
import shutil
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

from tests import surroundings
from tests.own_errors import ErrorLog, complaints

# On a machine that decides whether a change lands, the same change must give the same verdict twice.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("local", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# A script that starts the tests in the background makes them ignore Ctrl-C, and some tests press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_numbers = count()
_tree_before = pytest.StashKey[set[str] | None]()


@pytest.fixture(scope="session", autouse=True)
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for the home folders of this process's tests; the home of fixtures that outlive a test."""
    place = tmp_path_factory.mktemp("homes")
    with pytest.MonkeyPatch.context() as patch:
        _move_home(patch, place)
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
    assert not violations, f"written outside of the temporary folders: {violations}"


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
