"""Every text of a running system that an agent can meet: objects, telemetry, logs, environments and files."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from srearena.cluster.embedded.assembly import Assembly
from srearena.cluster.embedded.machine.containers.container import Container

_LARGEST = 200_000
_DEEPEST = 6
_NO_TEXTS = ("/proc", "/sys", "/dev", "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/host")
"""Files of the kernel, executables, and the machine as node-exporter mounts it."""


def texts(assembly: Assembly) -> Iterator[tuple[str, str]]:
    """Yield each text with where it stands."""
    store, telemetry = assembly.world.store, assembly.telemetry
    for resource in store.resources():
        for obj in store.objects(resource):
            yield resource, orjson.dumps(obj).decode()
    for labels, _, _ in telemetry.metrics.select([], 0, assembly.world.clock.now):
        yield "labels of metrics", str(labels)
    for name, metadata in telemetry.metrics.metadata.items():
        yield "help of metrics", f"{name} {metadata.help}"
    for span in telemetry.spans.all_spans():
        yield "spans", f"{span.name} {span.attributes} {span.resource.attributes} {span.events} {span.scope}"
    images: set[str] = set()
    for kubelet in assembly.nodes.kubelets.values():
        for record in kubelet.machine.live.values():
            yield f"log of {record.name}", record.log.text()
            if record.container is not None:
                yield from _of_container(record.container, files=record.container.config.image not in images)
                images.add(record.container.config.image)


def _of_container(container: Container, *, files: bool) -> Iterator[tuple[str, str]]:
    for process in container.pids.processes.values():
        yield f"process of {container.config.name}", f"{process.argv} {dict(process.env)}"
    if files:
        yield from _files(container, "/", 0)


def _files(container: Container, folder: str, depth: int) -> Iterator[tuple[str, str]]:
    view = container.files
    for name in view.listdir(folder):
        path = f"{folder.rstrip('/')}/{name}"
        yield "path", path
        if path.startswith(_NO_TEXTS):
            continue
        if view.is_dir(path):
            if depth < _DEEPEST:
                yield from _files(container, path, depth + 1)
        elif view.is_file(path) and view.stat(path).size <= _LARGEST:
            yield path, view.read_bytes(path).decode(errors="replace")
