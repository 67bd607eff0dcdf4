"""Timestamps in the formats that servers write into their logs."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from srearena.cluster.embedded.machine.processes.process import Process


def stamp(process: Process, shape: str) -> str:
    """The present instant, in UTC; `%L` is milliseconds."""
    now = process.date
    moment = datetime.fromtimestamp(now, UTC)
    return moment.strftime(shape.replace("%L", f"{int(now % 1 * 1000):03d}"))


def klog_line(process: Process, level: str, where: str, text: str) -> str:
    """`I0801 10:00:00.000000       1 file.go:12] text`, as Kubernetes' own programs write; a level is I, W, E or F."""
    return f"{level}{stamp(process, '%m%d %H:%M:%S.%f')} {process.pid:>7} {where}] {text}\n"


def common_log_time(process: Process) -> str:
    """As access logs have it; many servers log within the same second."""
    return _common_log_time(int(round(process.date, 6)))


@lru_cache(maxsize=256)
def _common_log_time(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
