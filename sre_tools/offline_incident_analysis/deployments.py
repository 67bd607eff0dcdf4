"""Deployments of whole applications, told from other creations of objects by their number.

An application that is rolled out anew creates a few objects, of three kinds; one that is deployed for the first time
creates many of more kinds. What is deployed at once did not work before, so such creations are no suspects.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

# Chosen: the smallest application here has 22 objects, and a rollout creates ReplicaSets and Pods alone.
_TIME, _OBJECTS, _KINDS = timedelta(seconds=60), 20, 4
_TRANSIENT = frozenset({"pods", "jobs.batch", "endpointslices.discovery.k8s.io"})
"""Resources that controllers also create long after a deployment."""


def mass_creations(created: Sequence[tuple[datetime, str]]) -> set[int]:
    """Positions of the creations, given by time and kind in order of time, that are many of several kinds at once."""
    found: set[int] = set()
    first = 0
    for last, (time, _) in enumerate(created):
        while time - created[first][0] > _TIME:
            first += 1
        together = range(first, last + 1)
        if len(together) >= _OBJECTS and len({created[position][1] for position in together}) >= _KINDS:
            found.update(together)
    return found


def deployed_until(created: Iterable[tuple[str, datetime, str]]) -> datetime | None:
    """When the last application was completely deployed, by the namespaces, times and kinds of all objects.

    Only the first deployment of a namespace counts: what is created there later may belong to an incident. What follows
    within a minute, in any namespace, is part of it: what the application needs besides.
    """
    created = list(created)
    namespaces: dict[str, list[tuple[datetime, str]]] = defaultdict(list)
    for namespace, time, kind in created:
        namespaces[namespace].append((time, kind))
    end = max((end for times in namespaces.values() if (end := _first_deployment(sorted(times)))), default=None)
    for time in sorted(time for _, time, kind in created if kind not in _TRANSIENT):
        if end is not None and end < time < end + _TIME:
            end = time
    return end


def _first_deployment(created: Sequence[tuple[datetime, str]]) -> datetime | None:
    end: datetime | None = None
    for position in sorted(mass_creations(created)):
        time = created[position][0]
        if end is not None and time - end > _TIME:
            break
        end = time
    return end
