"""What requests and answers weigh on the network interfaces of those who send and receive them.

A request is taken to weigh the same everywhere, an answer what its operation says. What never reached anybody was sent
all the same; what was never answered was not received.
"""

from __future__ import annotations

import numpy as np

from srearena.cluster.embedded.traffic.circuit import Circuit
from srearena.cluster.embedded.traffic.durations import Array

REQUEST_BYTES = 400.0
PACKET = 1448.0
"""Bytes of payload in a full packet."""


def carried(circuit: Circuit, seconds: float) -> list[list[float]]:
    """For each server: bytes and packets received, then sent, in that many seconds at the present rates."""
    count = len(circuit.graph.servers)
    callers = circuit.servers[circuit.callers[circuit.link_calls]]
    callees = np.append(circuit.servers, count)[circuit.callees]
    asking, answered = circuit.flows, circuit.flows * (1 - circuit.link_fails)
    answers = answered * np.append(circuit.payloads, 0.0)[circuit.callees]
    sending, receiving = _at(callers, asking, count), _at(callers, answered, count)
    asked = answering = _at(callees, answered, count)
    received = asked * REQUEST_BYTES + _at(callers, answers, count)
    sent = sending * REQUEST_BYTES + _at(callees, answers, count)
    columns = (received, received / PACKET + asked + receiving, sent, sent / PACKET + sending + answering)
    rows: list[list[float]] = (np.stack(columns, axis=1) * seconds).tolist()
    return rows


def _at(places: np.ndarray, values: Array, count: int) -> Array:
    """What comes together at each server; the place after the last is nobody's."""
    found: Array = np.asarray(np.bincount(places, values, minlength=count), dtype=np.float64)
    return found[:count]
