"""Resource usage of a container: CPU time with its quota, and memory with its limit.

Usage has two sources. Programs that compute report it step by step (`burn`); models of steady load set a rate (`load`),
which is integrated only when the counters are read. An idle program's rate and the pages of every program move a little
all the time, as timers, garbage collection and reclaim move real ones. The quota works as in the kernel: a time slice
in each period of 100 ms (the CFS default), after which the container is throttled until the next.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.instruments import Fluctuation

PERIOD = 0.1
IDLE = "idle"
"""The source of the load of a program without requests."""
_IDLE_VARIATION = 0.3
"""Share by which the processor time of an idle program varies: timers and garbage collections. Chosen."""
_STEADY_SECONDS = 5.0
"""Between two readings that are further apart than this, the idle load varies; below, it makes no difference."""
_RECLAIMED = 0.015
"""Share of a working set that is not resident at times: what garbage collection and reclaim give back. Chosen."""
_RECLAIMED_HEADROOM = 0.02
"""At most this share of what is free below a limit: a program near its limit has nothing left to give back."""
_PAGE = 4096


class ResourceMeter:
    __slots__ = (
        "_burned",
        "_cpu",
        "_fluctuation",
        "_key",
        "_loads",
        "_memory",
        "_on_out_of_memory",
        "_period",
        "_settled_at",
        "_used",
        "available_cores",
        "bursts",
        "clock",
        "cpu_limit",
        "memory_limit",
        "nr_periods",
        "nr_throttled",
        "peak_memory",
        "throttled_seconds",
        "wanted_cores",
        "working_set",
    )

    def __init__(
        self,
        clock: Clock,
        *,
        key: str = "",
        cpu_limit: float | None = None,
        memory_limit: int | None = None,
        on_out_of_memory: Callable[[Any], object] | None = None,
    ) -> None:
        self.clock = clock
        self._key = key
        """What the fluctuations follow from; without one there are none."""
        self._fluctuation: Fluctuation | None = None
        self.cpu_limit = cpu_limit
        self.memory_limit = memory_limit
        self.available_cores: float | None = None
        """The cores available to the container on a contended node; None where the node is not contended."""
        self.bursts = 0.0
        """Share of periods in which a load that fits on average is throttled because it is bursty."""
        self.nr_periods = 0.0
        self.nr_throttled = 0.0
        self.throttled_seconds = 0.0
        self.peak_memory = 0
        self.wanted_cores = 0.0
        """The sum of all steady loads."""
        self.working_set = 0
        """Bytes of memory that the programs claim."""
        self._on_out_of_memory = on_out_of_memory
        self._loads: dict[Hashable, float] = {}
        self._memory: dict[Hashable, int] = {}
        self._cpu = 0.0
        self._burned = 0.0
        self._settled_at = clock.now
        self._period = -1
        self._used = 0.0

    # --- processor -------------------------------------------------------------------------------------------

    def load(self, source: Hashable, cores: float) -> None:
        """Set the steady load of `source` to that many cores."""
        self._settle()
        if cores > 0:
            self._loads[source] = cores
        else:
            self._loads.pop(source, None)
        self.wanted_cores = sum(self._loads.values())

    @property
    def granted_cores(self) -> float:
        """The part of the steady load that the quota and the node allow."""
        granted = self.wanted_cores
        for bound in (self.cpu_limit, self.available_cores):
            if bound is not None and bound < granted:
                granted = bound
        return granted

    def cpu_seconds(self) -> float:
        """Processor time used so far: the counter behind container_cpu_usage_seconds_total."""
        self._settle()
        return self._cpu + self._burned

    def _settle(self) -> None:
        now = self.clock.now
        since, self._settled_at = self._settled_at, now
        elapsed = now - since
        if elapsed <= 0:
            return
        wanted = self.wanted_cores
        if wanted <= 0:
            return
        granted = self.granted_cores
        self._cpu += granted * elapsed
        if elapsed > _STEADY_SECONDS and granted == wanted and self._key:
            idle = self._loads.get(IDLE)
            if idle is not None:
                self._cpu += _IDLE_VARIATION * idle * self._waves().integral(since, now)
        if self.cpu_limit is not None:
            periods = elapsed / PERIOD
            self.nr_periods += periods
            if wanted > self.cpu_limit:
                self.nr_throttled += periods
                self.throttled_seconds += elapsed * (1 - self.cpu_limit / wanted)
            elif self.bursts > 0:
                self.nr_throttled += periods * self.bursts
                self.throttled_seconds += elapsed * self.bursts * 0.2

    def settle(self) -> None:
        """Bring the counters up to the present instant."""
        self._settle()

    def burn(self, seconds: float) -> float:
        """Use `seconds` of one processor, and return how long that takes."""
        self._burned += seconds
        if self.cpu_limit is None:
            return seconds
        quota = max((self.cpu_limit - self.granted_cores) * PERIOD, 0.01 * PERIOD)
        now = started = self.clock.now
        while seconds > 1e-9:
            period = int(now / PERIOD + 1e-6)
            if period != self._period:
                self._period = period
                self._used = 0.0
                self.nr_periods += 1
            end = (period + 1) * PERIOD
            take = min(seconds, quota - self._used, end - now)
            if take > 0:
                self._used += take
                seconds -= take
                now += take
            if seconds > 1e-9 and self._used >= quota - 1e-9:
                self.nr_throttled += 1
                self.throttled_seconds += max(0.0, end - now)
                now = end
            elif end - now < 1e-9:
                now = end
        return now - started

    def _waves(self) -> Fluctuation:
        if self._fluctuation is None:
            self._fluctuation = Fluctuation(self._key)
        return self._fluctuation

    # --- memory ----------------------------------------------------------------------------------------------

    def resident_bytes(self) -> int:
        """The part of the working set that is resident now: container_memory_working_set_bytes."""
        if not self._key:
            return self.working_set
        most = _RECLAIMED * self.working_set
        if self.memory_limit is not None:
            most = min(most, _RECLAIMED_HEADROOM * max(0, self.memory_limit - self.working_set))
        reclaimed = int(most * (1 + self._waves().at(self.clock.now)) / 2)
        return self.working_set - reclaimed // _PAGE * _PAGE

    def set_memory(self, source: Hashable, size: int) -> None:
        """Set the resident bytes of `source`. Exceeding the limit triggers the OOM killer at once."""
        self.working_set -= self._memory.pop(source, 0)
        if size <= 0:
            return
        self._memory[source] = size
        self.working_set += size
        self.peak_memory = max(self.peak_memory, self.working_set)
        if (
            self.memory_limit is not None
            and self.working_set > self.memory_limit
            and self._on_out_of_memory is not None
        ):
            self._on_out_of_memory(source)
