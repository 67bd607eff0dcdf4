"""Which of the protocols in `datastore` a server model implements.

The check of a runtime protocol is slow, so it is done once per type.
"""

from __future__ import annotations

from typing import cast

from srearena.cluster.embedded.machine.networking.sockets import Listener
from srearena.cluster.embedded.programs.datastores.datastore import Discovery

_cached_checks: dict[tuple[type, type], bool] = {}


def implements(server: object, protocol: type) -> bool:
    """Return whether a server implements a runtime protocol."""
    key = (type(server), protocol)
    found = _cached_checks.get(key)
    if found is None:
        found = _cached_checks[key] = isinstance(server, protocol)
    return found


def as_discovery(listener: Listener | None) -> Discovery | None:
    """Return the service registry behind a socket, if there is one."""
    server = listener.server if listener is not None else None
    return cast(Discovery, server) if server is not None and implements(server, Discovery) else None
