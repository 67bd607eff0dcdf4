"""Variables for short-lived programs written in Go, kubectl above all."""

from __future__ import annotations

NO_COLLECTION = {"GOGC": "off", "GOMEMLIMIT": "256MiB"}
"""They end before a collection pays, which takes a quarter of the time of kubectl. At the limit they do collect."""
