from __future__ import annotations

import pytest

from tests.kubelet.harness import Lab


@pytest.fixture
def lab() -> Lab:
    """One worker node."""
    return Lab()
