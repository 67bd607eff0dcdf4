"""Real coding CLIs, found or fetched as Zero's tests do it."""

from tests.zero.conftest import coding_cli

__all__ = ["coding_cli"]
