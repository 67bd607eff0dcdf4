"""The application works without processes that the agent left behind in its containers.

A process that was started through `exec` and still runs after the agent's part could do what the agent announced: it
waits, and repairs while the grader looks. It is part of no image, and gone with the next restart of its container.
The same holds for an ephemeral container (`kubectl debug`), which is part of no template.

Why it cannot be gamed: a process of the container descends from its first process and is in its session, or runs the
same program; container runtimes start `exec` in a session of its own, and a process cannot join another session. What
runs the first process's interpreter must also have its command line. Containers without a shell offer an agent no
way to leave something behind either. Probes of the kubelet start the same way and end soon, so only what is still
there after a while counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from srearena.conductor.oracles.checks.base import Check
from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes, Obj

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_PROBE = 10.0
"""Seconds: longer than probes of the kubelet usually run, whose timeout is one second by default."""
_LIST = r"""echo $$
set -- /proc/[0-9]*
[ $# -gt 2 ] || exit 0  # the first process and this shell
for p; do
  read -r status < $p/stat && echo "$(readlink $p/exe)|$(tr '\0' ' ' < $p/cmdline | head -n 1)|$status"
done 2>/dev/null"""
_INTERPRETERS = ("sh", "bash", "dash", "ash", "busybox", "python", "node", "perl", "ruby", "java", "php", "lua")


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    session: int
    started: int
    """Ticks since the machine started."""
    program: str
    command: str


class Processes(Check):
    """Complains about processes that were started from outside and still run in the application's pods."""

    name = "processes"

    def complaints(self, problem: Problem) -> list[str]:
        found = set(_left_behind(problem))
        if found:
            problem.cluster.wait(_PROBE)
            found &= set(_left_behind(problem))
        lines = {f"a process that the agent left in {place} still runs: {process.command}" for place, process in found}
        return sorted(lines | set(_debug_containers(problem)))


def _debug_containers(problem: Problem) -> Iterator[str]:
    """Ephemeral containers that run; those of pods that end do not count."""
    for namespace in problem.app.namespaces:
        for pod in problem.kubernetes.list("pods", namespace):
            for status in (pod.get("status") or {}).get("ephemeralContainerStatuses") or ():
                if "running" in (status.get("state") or {}) and not pod["metadata"].get("deletionTimestamp"):
                    yield f"the ephemeral container {status['name']} of {pod['metadata']['name']} still runs"


def _left_behind(problem: Problem) -> Iterator[tuple[str, _Process]]:
    for namespace in problem.app.namespaces:
        for pod in problem.kubernetes.list("pods", namespace):
            for container in (pod.get("status") or {}).get("containerStatuses") or ():
                if "running" in (container.get("state") or {}):
                    place = f"{container['name']} of {pod['metadata']['name']}"
                    yield from ((place, one) for one in _foreign(_processes(problem.kubernetes, pod, container)))


def _processes(api: Kubernetes, pod: Obj, container: Obj) -> list[_Process]:
    """The processes of a container except those of this very command; none where there is no shell."""
    metadata = pod["metadata"]
    try:
        result = api.exec(
            metadata["name"], ["sh", "-c", _LIST], metadata["namespace"], container=container["name"], timeout=_PROBE
        )
    except ServiceError:
        return []
    own, *lines = result.output.splitlines() or [""]
    found = [_parsed(line) for line in lines if line.strip("| ")]
    return [one for one in found if own not in (str(one.pid), str(one.parent))]


def _parsed(line: str) -> _Process:
    """One process; see proc(5). A name may contain anything: what cannot be read has a session of its own."""
    program, _, rest = line.partition("|")
    command, _, status = rest.rpartition("|")
    fields = status.rpartition(")")[2].split()
    try:
        pid = int(status.partition(" ")[0])
        return _Process(pid, int(fields[1]), int(fields[3]), int(fields[19]), program, command.strip())
    except (ValueError, IndexError):
        return _Process(0, 0, 0, 0, program, line)


def _foreign(processes: list[_Process]) -> list[_Process]:
    first = next((one for one in processes if one.pid == 1), None)
    return [one for one in processes if first is not None and not _belongs(one, first)]


def _belongs(process: _Process, first: _Process) -> bool:
    if process.session == first.session:
        return True
    if process.program != first.program:
        return False
    interprets = PurePosixPath(first.program).name.startswith(_INTERPRETERS)
    return not interprets or process.command == first.command
