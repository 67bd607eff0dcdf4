from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.containers.machine import Machine


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture(autouse=True)
def no_process_stumbles_over_a_bug(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A Python exception inside a program is a bug of ours, even though the cluster survives it."""
    yield
    broken = [record for record in caplog.get_records("call") if record.levelno >= logging.ERROR]
    assert not broken, broken[0].exc_text
