"""The OpenTelemetry demo's image: one repository whose tag names the component.

`ghcr.io/open-telemetry/demo:2.2.0-kafka` is a broker, `...-flagd-ui` the user interface for flags; all others are
servers on the ports that the pod declares, with the memory use of a program in their language.
"""

from __future__ import annotations

from srearena.cluster.program_models import (
    GenericServer,
    ImageReference,
    Process,
    Program,
    program,
    program_for,
    serve_declared_ports,
)
from srearena.service.apps.astronomy_shop.programs.flagd import FlagdUi

MIB = 1024 * 1024
KAFKA = "apache/kafka:3.9.1"
RESIDENT = {
    "accounting": 78,
    "ad": 190,
    "cart": 72,
    "checkout": 11,
    "currency": 8,
    "email": 48,
    "fraud-detection": 205,
    "frontend": 130,
    "frontend-proxy": 38,
    "image-provider": 12,
    "llm": 52,
    "load-generator": 190,
    "payment": 78,
    "product-catalog": 11,
    "product-reviews": 66,
    "quote": 24,
    "recommendation": 62,
    "shipping": 6,
}
"""Resident memory of each idle component in MiB."""


def component_of(tag: str) -> str:
    """`product-catalog` for `2.2.0-product-catalog`."""
    return tag.partition("-")[2]


@program("open-telemetry/demo")
class OtelDemo(Program):
    """Creates the program that the tag names."""

    def __new__(cls, reference: ImageReference) -> Program:  # type: ignore[misc]
        component = component_of(reference.tag)
        if component == "kafka":
            return program_for(KAFKA)
        return FlagdUi(reference) if component == "flagd-ui" else DemoServer(reference)


class DemoServer(GenericServer):
    async def run(self, process: Process) -> int:
        size = RESIDENT.get(component_of(self.reference.tag), 32)
        return await serve_declared_ports(process, memory=size * MIB)
