"""Established TCP connections: bytes transferred with the delay, bandwidth and loss of the links.

A connection does not detect at once that its link was cut: TCP retransmits until the link is back or it gives up, and
then both ends see a reset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.cluster.embedded.machine.networking.sockets import Connection, Listener, connection_pair
from srearena.cluster.embedded.network.flows import Flow
from srearena.cluster.embedded.network.hosts import Host
from srearena.cluster.embedded.network.routes import Path

if TYPE_CHECKING:
    from srearena.cluster.embedded.network.network import Network


def open_connection(
    network: Network, source: Host, path: Path, listener: Listener, server: tuple[str, int], flow: Flow
) -> Connection:
    """Connect to a listener over a path and return the client's end. The flow ends with the connection."""
    client = (path.source, flow.local_port)
    far = listener.connect(client, server)
    if path.host is not None and path.host.sockets is source.sockets:
        flow.end(linger=False)
        return far
    kept = source.sockets.connections
    near, middle = connection_pair(network.clock, client, server, on_client_close=lambda: kept.pop(near, None))
    near.owner = source
    kept[near] = None
    link = _TcpLink(network, source, path, near, middle, far, flow)
    network.clock.spawn(link.copy(middle, far, back=False))
    network.clock.spawn(link.copy(far, middle, back=True))
    return near


class _TcpLink:
    """The link between the client's half (`near`, `middle`) and the server's (`far`)."""

    def __init__(
        self,
        network: Network,
        source: Host,
        path: Path,
        near: Connection,
        middle: Connection,
        far: Connection,
        flow: Flow,
    ) -> None:
        self._network = network
        self._source = source
        self._path = path
        self._near = near
        self._middle = middle
        self._far = far
        self._flow = flow
        self._directions = 2

    async def copy(self, reader: Connection, writer: Connection, *, back: bool) -> None:
        try:
            while data := await reader.read():
                if not await self._transfer(len(data), back):
                    self._reset()
                    return
                await writer.write(data)
            if await self._transfer(0, back):
                writer.close_writing()
            else:
                self._reset()
        except OSError:
            self._reset()
        finally:
            self._directions -= 1
            if not self._directions:
                self._middle.close()
                self._far.close()
                self._flow.end()

    async def _transfer(self, size: int, back: bool) -> bool:
        network = self._network
        path = network.fabric.routes.again(self._source, self._path, "TCP")
        steps = network.dialer.transfer(self._source, path, size, back=back)
        while True:
            try:
                seconds = next(steps)
            except StopIteration as stop:
                return bool(stop.value)
            await network.clock.sleep(seconds)

    def _reset(self) -> None:
        self._near.mark_reset()
        self._middle.close()
        self._far.close()
