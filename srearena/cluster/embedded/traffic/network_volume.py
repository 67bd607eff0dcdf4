"""Bytes and packets of requests and responses on the network interfaces of clients and servers.

Every request has the same size; the size of a response is that of its operation. A request that reached no server was
sent all the same; a request without a response was not received.
"""

from __future__ import annotations

import numpy as np

from srearena.cluster.embedded.traffic.durations import Array
from srearena.cluster.embedded.traffic.fluid_model import FluidModel

REQUEST_BYTES = 400.0
"""Chosen: a small request line with usual headers; requests of the applications modelled here carry little else."""
PACKET_BYTES = 1448.0
"""TCP payload of a full Ethernet frame: an MTU of 1500 less 52 bytes of IP and TCP headers with timestamps."""


def interface_volumes(fluid: FluidModel, seconds: float) -> list[list[float]]:
    """Return for each server bytes and packets received, then sent, in that many seconds at the present rates."""
    count = len(fluid.graph.servers)
    callers = fluid.servers[fluid.callers[fluid.link_calls]]
    callees = np.append(fluid.servers, count)[fluid.callees]
    requests, responses = fluid.flows, fluid.flows * (1 - fluid.link_fails)
    response_bytes = responses * np.append(fluid.payloads, 0.0)[fluid.callees]
    requests_sent, responses_received = (
        _sum_by_server(callers, requests, count),
        _sum_by_server(callers, responses, count),
    )
    requests_served = _sum_by_server(callees, responses, count)
    received = requests_served * REQUEST_BYTES + _sum_by_server(callers, response_bytes, count)
    sent = requests_sent * REQUEST_BYTES + _sum_by_server(callees, response_bytes, count)
    packets_received = received / PACKET_BYTES + requests_served + responses_received
    packets_sent = sent / PACKET_BYTES + requests_sent + requests_served
    columns = (received, packets_received, sent, packets_sent)
    rows: list[list[float]] = (np.stack(columns, axis=1) * seconds).tolist()
    return rows


def _sum_by_server(places: np.ndarray, values: Array, count: int) -> Array:
    """Sum the values per server; the position after the last stands for no server."""
    sums: Array = np.asarray(np.bincount(places, values, minlength=count), dtype=np.float64)
    return sums[:count]
