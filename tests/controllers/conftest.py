from __future__ import annotations

import pytest

from tests.controllers.bench import Bench


@pytest.fixture
def bench() -> Bench:
    """Three nodes, all controllers, kubelets that do what they should."""
    return Bench()
