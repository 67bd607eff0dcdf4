"""Programs that stand in for an application's own: they serve the declared ports, under any command they are given.

What applications really do is in their models, which have tests of their own; here their objects are what counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from srearena.cluster.embedded.image_references import parse_reference
from srearena.cluster.embedded.machine.images import catalogue
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs import registry
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.generic import serve_declared_ports
from srearena.service.apps import Application
from srearena.service.manifests import pod_template


@contextmanager
def standing_in_for(applications: Iterable[Application]) -> Iterator[None]:
    """While the block lasts, every image of the applications that nobody knows can be pulled and runs."""
    catalogue.Catalogue()
    registry.program_for("busybox")
    registered: list[tuple[dict[str, Any], str]] = []
    try:
        for application in applications:
            for image, commands in _commands(application).items():
                registered += _stand_in(image, commands)
        registry.program_for.cache_clear()
        yield
    finally:
        for table, name in registered:
            table.pop(name, None)
        registry.program_for.cache_clear()


def _commands(application: Application) -> dict[str, set[str]]:
    """The images of an application, each with the commands it is started with."""
    found: dict[str, set[str]] = {}
    for manifest in application.manifests:
        for container in (pod_template(manifest.obj) or {}).get("containers", ()):
            found.setdefault(container["image"], set()).update(container.get("command", ())[:1])
    return found


def _stand_in(image: str, commands: set[str]) -> list[tuple[dict[str, Any], str]]:
    """Register what is not known; the tables that were added to, and under which names."""
    registered: list[tuple[dict[str, Any], str]] = []
    reference = parse_reference(image)
    if reference.repository not in catalogue._repositories:
        catalogue.register_images(reference.repository, tags=[reference.tag])
        registered.append((catalogue._repositories, reference.repository))
    parsed = registry.ImageReference.parse(image)
    if any(part in registry._programs for part in parsed.names):
        return registered

    class StandIn(Program):
        entrypoint = ("/app/server",)
        binaries = ("/app/server", *(f"/usr/local/bin/{command}" for command in sorted(commands) if "/" not in command))

        async def run(self, process: Process) -> int:
            return await serve_declared_ports(process, memory=16 * 1024 * 1024)

    registry.program(parsed.repository)(StandIn)
    return [*registered, (registry._programs, parsed.repository.lower())]
