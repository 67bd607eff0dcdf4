"""A door per test."""

from __future__ import annotations

import pytest

from .door import Door


@pytest.fixture
def door() -> Door:
    return Door()
