"""The parts of a container's memory, as its cgroup accounts for them.

A program's model says how large its working set is. Of that a share is page cache in active use and memory of the
kernel, the rest is anonymous (`rss`); beside it there is page cache that can be reclaimed: `usage` is the working set
and this. The shares are a container's own and constant, so that all parts move together.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

if TYPE_CHECKING:
    from srearena.cluster.embedded.machine.containers.container import Container

_PAGES = ~4095
"""Mask of whole pages."""
_ACTIVE, _KERNEL = (0.02, 0.05), (0.008, 0.012)
"""Least share of the working set, and how much more it may be: active page cache, and kernel memory (stacks, page
tables, sockets). Chosen: usual of servers that keep little on disk."""
_RECLAIMABLE = 0.12
"""Share of the image's size that is page cache charged to the container, at most. Chosen: who reads a page first is
charged, so containers of one image differ."""
_MOST = 64 * 1024**2
_HEADROOM = 0.6
"""Share of the room below the limit that reclaimable page cache takes, at most."""
MACHINE_RSS = 0.86
"""Anonymous share of the memory that a machine uses; the rest is of the kernel, or page cache in use. Chosen."""


class MemoryParts(NamedTuple):
    usage: int
    working_set: int
    rss: int
    cache: int

    def plus(self, other: MemoryParts) -> MemoryParts:
        """Return the memory of a pod: the sum over its containers."""
        return MemoryParts(*(first + second for first, second in zip(self, other, strict=True)))


NO_MEMORY = MemoryParts(0, 0, 0, 0)


def memory_parts(container: Container, working_set: int) -> MemoryParts:
    active_share, kernel_share, reclaimable = _shares(container.id, container.image_bytes)
    active = int(working_set * active_share) & _PAGES
    limit = container.meter.memory_limit
    if limit is not None:
        reclaimable = min(reclaimable, int(_HEADROOM * max(0, limit - working_set)) & _PAGES)
    anonymous = working_set - active - (int(working_set * kernel_share) & _PAGES)
    return MemoryParts(working_set + reclaimable, working_set, anonymous, active + reclaimable)


@lru_cache(maxsize=8192)
def _shares(container: str, image: int) -> tuple[float, float, int]:
    """Shares of active page cache and of the kernel, and the bytes of reclaimable page cache, by ID and image size."""
    key = crc32(container.encode())
    first, second, third = key % 1000 / 1000, key // 1000 % 1000 / 1000, key // 1_000_000 % 1000 / 1000
    reclaimable = min(_MOST, image * _RECLAIMABLE) * (0.1 + 0.9 * third)
    return _ACTIVE[0] + _ACTIVE[1] * first, _KERNEL[0] + _KERNEL[1] * second, int(reclaimable) & _PAGES
