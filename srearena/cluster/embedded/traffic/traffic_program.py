"""Programs that send or receive requests of the traffic engine."""

from __future__ import annotations

from typing import ClassVar

from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.traffic.engine import Traffic


class TrafficProgram(Program):
    """Base of such programs; each cluster registers subclasses that are bound to its own engine."""

    traffic: ClassVar[Traffic]
