"""Real coding CLIs, if they are available."""

from tests.zero.conftest import coding_cli, needs_sandbox

__all__ = ["coding_cli", "needs_sandbox"]
