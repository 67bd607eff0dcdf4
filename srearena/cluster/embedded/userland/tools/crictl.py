"""crictl: the containers, pods and images of a machine, as its container runtime knows them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from srearena.cluster.embedded.durations import human_duration
from srearena.cluster.embedded.machine.containers.runtime import ContainerRecord, Sandbox
from srearena.cluster.embedded.machine.host_root import on_host
from srearena.cluster.embedded.machine.machine import CONTAINER_RUNTIME, Machine
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.objects import name_of, namespace_of
from srearena.cluster.embedded.userland.tools.options import parse
from srearena.cluster.embedded.userland.tools.registry import tool

_SHORT = 13
_LONG = {"all": "a", "quiet": "q", "no-trunc": "T", "name=": "n", "namespace=": "N", "pod=": "p", "state=": "s"}
_USAGE = """\
NAME:
   crictl - client for CRI

USAGE:
   crictl [global options] command [command options]

COMMANDS:
   exec, images, info, inspect, logs, pods, ps, rmi, stats, stop, version
"""
Row = tuple[Sandbox, ContainerRecord]


@tool("crictl")
async def crictl(process: Process, args: list[str]) -> int:
    machine = on_host(process.container, process.files.filesystem)
    options = parse(args, "D", "ri", long={"runtime-endpoint=": "r", "image-endpoint=": "i"}, stop_early=True)
    if not options.operands:
        await process.write(_USAGE)
        return 0
    command, *rest = options.operands
    if machine is None:
        socket = "dial unix /run/containerd/containerd.sock: connect: no such file or directory"
        await process.error(f"FATA[0000] validate service connection: {socket}\n")
        return 1
    if command in ("ps", "pods", "images", "img", "version"):
        text = {"ps": _containers, "pods": _pods, "version": _version}.get(command, _images)(machine, rest)
        await process.write(text)
        return 0
    if command in ("logs", "inspect", "stop"):
        return await _one(process, machine, command, rest)
    await process.error(f"FATA[0000] unsupported command {command!r} of this build of crictl\n")
    return 1


def _rows(machine: Machine) -> list[Row]:
    found = [
        (sandbox, record)
        for sandbox in machine.sandboxes.values()
        for all_ in sandbox.records.values()
        for record in all_
    ]
    return sorted(found, key=lambda row: row[1].created_at, reverse=True)


def _state(record: ContainerRecord) -> str:
    if record.exited:
        return "Exited"
    return "Running" if record.running else "Created"


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["".join(cell.ljust(width + 3) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines) + "\n"


def _containers(machine: Machine, args: list[str]) -> str:
    options = parse(args, "aqT", "nNps", long=_LONG)
    now = machine.clock.now
    lines = [("CONTAINER", "IMAGE", "CREATED", "STATE", "NAME", "ATTEMPT", "POD ID", "POD", "NAMESPACE")]
    for sandbox, record in _rows(machine):
        state = _state(record)
        if not record.running and "a" not in options and options.value("s").lower() != state.lower():
            continue
        if options.value("n") not in record.name or not sandbox.id.startswith(options.value("p")):
            continue
        digest = record.image.digest.removeprefix("sha256:")[:_SHORT]
        age = f"{human_duration(now - record.created_at)} ago"
        pod, namespace = name_of(sandbox.pod), namespace_of(sandbox.pod)
        short = (record.id if "T" in options else record.id[:_SHORT], digest, age, state, record.name)
        lines.append((*short, str(record.attempt), sandbox.id[:_SHORT], pod, namespace))
    if "q" in options:
        return "".join(f"{line[0]}\n" for line in lines[1:])
    return _table(lines)


def _pods(machine: Machine, args: list[str]) -> str:
    options = parse(args, "qT", "nNs", long=_LONG)
    lines = [("POD ID", "CREATED", "STATE", "NAME", "NAMESPACE", "ATTEMPT", "RUNTIME")]
    for sandbox in sorted(machine.sandboxes.values(), key=lambda sandbox: sandbox.created_at, reverse=True):
        age = f"{human_duration(machine.clock.now - sandbox.created_at)} ago"
        state = "Ready" if sandbox.ready else "NotReady"
        lines.append(
            (sandbox.id[:_SHORT], age, state, name_of(sandbox.pod), namespace_of(sandbox.pod), "0", "(default)")
        )
    if "q" in options:
        return "".join(f"{line[0]}\n" for line in lines[1:])
    return _table(lines)


def _images(machine: Machine, args: list[str]) -> str:
    lines = [("IMAGE", "TAG", "IMAGE ID", "SIZE")]
    for image in machine.images.images():
        reference = image.reference
        digest = image.digest.removeprefix("sha256:")[:_SHORT]
        lines.append((reference.repository, reference.tag or "<none>", digest, f"{image.size / 1e6:.3g}MB"))
    return _table(lines)


def _version(machine: Machine, args: list[str]) -> str:
    name, _, version = CONTAINER_RUNTIME.partition("://")
    return f"Version:  0.1.0\nRuntimeName:  {name}\nRuntimeVersion:  v{version}\nRuntimeApiVersion:  v1\n"


async def _one(process: Process, machine: Machine, command: str, args: list[str]) -> int:
    """Commands about one container, named by the beginning of its ID."""
    options = parse(
        args, "fpt", "n", long={"tail=": "n", "follow": "f", "previous": "p", "timestamps": "t", "timeout=": "n"}
    )
    identifier = options.operands[0] if options.operands else ""
    found = [record for _, record in _rows(machine) if identifier and record.id.startswith(identifier)]
    if not found:
        text = f"an error occurred when try to find container {identifier!r}: not found"
        await process.error(f"FATA[0000] rpc error: code = NotFound desc = {text}\n")
        return 1
    record = found[0]
    if command == "logs":
        lines = record.log.lines()
        count = options.value("n")
        for line in lines[-int(count) :] if count.isdigit() and int(count) else lines:
            await (process.write if line.stream == "stdout" else process.error)(line.text + b"\n")
        return 0
    if command == "inspect":
        await process.write(json.dumps(_inspected(record), indent=2) + "\n")
        return 0
    if record.container is not None:
        record.container.stop()
    await process.write(f"{record.id}\n")
    return 0


def _inspected(record: ContainerRecord) -> dict[str, object]:
    state = f"CONTAINER_{_state(record).upper()}"
    status = {
        "id": record.id,
        "metadata": {"attempt": record.attempt, "name": record.name},
        "state": state,
        "createdAt": record.created_at,
        "startedAt": record.started_at,
        "finishedAt": record.finished_at or 0,
        "exitCode": record.exit_code,
        "reason": record.reason,
        "message": record.message,
        "imageRef": record.image.digest,
    }
    return {"status": status}
