"""Which of the protocols in `datastore` a server model speaks: asked once per type, since asking is slow."""

from __future__ import annotations

from typing import cast

from srearena.cluster.embedded.machine.networking.sockets import Listener
from srearena.cluster.embedded.programs.datastores.datastore import Discovery

_known: dict[tuple[type, type], bool] = {}


def speaks(server: object, protocol: type) -> bool:
    key = (type(server), protocol)
    found = _known.get(key)
    if found is None:
        found = _known[key] = isinstance(server, protocol)
    return found


def as_discovery(listener: Listener | None) -> Discovery | None:
    """The registry behind a socket, if there is one."""
    server = listener.server if listener is not None else None
    return cast(Discovery, server) if server is not None and speaks(server, Discovery) else None
