from __future__ import annotations

import pytest

from tests.network.bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()
