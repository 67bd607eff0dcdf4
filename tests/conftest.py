"""Settings shared by all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# On a machine that decides whether a change lands, the same change must give the same verdict twice.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("local", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")
