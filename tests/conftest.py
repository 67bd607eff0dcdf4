"""Settings shared by all tests."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

# On a machine that decides whether a change lands, the same change must give the same verdict twice.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("local", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# Who starts the tests in the background of a script makes them and all they start deaf to Ctrl-C, and some press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
