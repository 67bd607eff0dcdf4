from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kubelet.harness import Lab


@pytest.fixture
def lab() -> Lab:
    """One worker node."""
    return Lab()


@pytest.fixture(autouse=True)
def nothing_is_swept_under_the_carpet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Errors of ours that the simulator survives are errors all the same."""
    yield
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
