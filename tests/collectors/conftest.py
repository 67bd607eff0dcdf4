from __future__ import annotations

import pytest

from tests.collectors.harness import Observed


@pytest.fixture
def cluster() -> Observed:
    return Observed()
