"""Real coding CLIs, where they can be had."""

from tests.zero.conftest import coding_cli, needs_sandbox

__all__ = ["coding_cli", "needs_sandbox"]
