"""The guards of `tests/conftest.py`: errors of our own that were survived, and writes outside of temporary folders."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from tests.own_errors import complaints
from tests.surroundings import REAL_HOME, ROOT, WriteGuard


@pytest.mark.expected_errors(r"^srearena\.example ERROR: it broke", "ZeroDivisionError")
def test_a_declared_error_is_accepted() -> None:
    log = logging.getLogger("srearena.example")
    log.error("it broke")
    try:
        print(1 / 0)
    except ZeroDivisionError:
        log.warning("survived", exc_info=True)
    logging.getLogger("somebody.else").error("not ours")


def test_undeclared_errors_and_stale_declarations_are_complaints() -> None:
    assert complaints(["srearena ERROR: a"], ["b"]) == ["srearena ERROR: a", "no error matches 'b'"]
    assert complaints(["srearena ERROR: a"], ["a"]) == []


def test_writes_outside_of_temporary_folders_are_noticed(_write_guard: WriteGuard, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "a").read_text()
    (ROOT / "pyproject.toml").read_text()
    assert _write_guard.take() == []
    place = ROOT / "no" / "such" / "folder"
    with pytest.raises(FileNotFoundError):
        (place / "file").write_text("a")
    with pytest.raises(FileNotFoundError):
        place.mkdir()
    assert _write_guard.take() == [f"open {place / 'file'}", f"os.mkdir {place}"]


def test_every_test_has_a_home_of_its_own() -> None:
    assert Path.home() != REAL_HOME and list(Path.home().iterdir()) == []
    (Path.home() / "mine").touch()
    assert "KUBECONFIG" not in os.environ
