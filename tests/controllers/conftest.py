from __future__ import annotations

import pytest

from tests.controllers.stage import Stage


@pytest.fixture
def stage() -> Stage:
    """Three nodes, all controllers, kubelets that do what they should."""
    return Stage()
