from __future__ import annotations

import pytest

from tests.containers.machine import Machine


@pytest.fixture
def machine() -> Machine:
    return Machine()
