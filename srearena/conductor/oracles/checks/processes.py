"""The application works without processes that the agent left behind in its containers.

A process that was started through `exec` and still runs after the agent's part could do what the agent announced: it
waits, and repairs while the grader looks. It is part of no image, and gone with the next restart of its container.
The same holds for an ephemeral container (`kubectl debug`), which is part of no template.

Why it cannot be gamed: a process of the container descends from its first process and is in its session, or runs the
same file; container runtimes start `exec` in a session of its own, and a process cannot join another session. The same
file is the same inode: a copy of a shell may have any name, also the one under which the first program is found. What
runs the first process's interpreter must also have its command line. The files of a container are the agent's to
change, its shell too: so where the kubelet counts more processes than on the healthy system, an ephemeral container
of the grader lists them with tools of its own. Probes of the kubelet start the same way as `exec` and end soon, so only
what is still there after a while counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from srearena.conductor.oracles.checks.base import Check
from srearena.conductor.oracles.checks.probing import RESTRICTED
from srearena.service.errors import ServiceError, TimedOut
from srearena.service.kubernetes import Kubernetes, Obj
from srearena.service.waiting import wait_until

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_PROBE = 10.0
"""Seconds: longer than probes of the kubelet usually run, whose timeout is one second by default."""
_LIST = r"""echo $$
set -- /proc/[0-9]*
[ $# -gt 2 ] || exit 0  # the first process and this shell
for p; do
  [ $p/exe -ef /proc/1/exe ] && same=same || same=
  read -r status < $p/stat && echo "$same|$(readlink $p/exe)|$(tr '\0' ' ' < $p/cmdline | head -n 1)|$status"
done 2>/dev/null"""
_LISTER = "busybox:1.36"
"""The image of the grader's probes too: most nodes have it."""
_LISTING = 60.0
"""Seconds for an ephemeral container: a pull of its image, and the list."""
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
    name: str = ""
    """The kernel's short name of the program, for where its file cannot be read."""
    same: bool = False
    """Whether it runs the very file that the first process runs."""


class Processes(Check):
    """Complains about processes that were started from outside and still run in the application's pods."""

    name = "processes"

    def record_baseline(self, problem: Problem) -> dict[str, int]:
        """The most processes that pods with the same containers have."""
        usual: dict[str, int] = {}
        counts = _counts(problem)
        for pod in _pods(problem):
            count = counts.get(pod["metadata"]["uid"], 0)
            usual[_sort(pod)] = max(count, usual.get(_sort(pod), 0))
        return usual

    def complaints(self, problem: Problem) -> list[str]:
        usual: dict[str, int] = self.baseline_value(problem) or {}
        found = set(_left_behind(problem, usual))
        if found:
            problem.cluster.wait(_PROBE)
            found &= set(_left_behind(problem, usual))
        lines = {f"a process that the agent left in {place} still runs: {process.command}" for place, process in found}
        return sorted(lines | set(_debug_containers(problem)))


def _pods(problem: Problem) -> list[Obj]:
    return [pod for namespace in problem.app.namespaces for pod in problem.kubernetes.list("pods", namespace)]


def _sort(pod: Obj) -> str:
    """What pods have in common that run the same containers."""
    return " ".join(sorted(f"{container['name']}={container['image']}" for container in pod["spec"]["containers"]))


def _counts(problem: Problem) -> dict[str, int]:
    """The number of processes in each pod by its kubelet, which asks the kernel; none of kubelets that are silent."""
    counts: dict[str, int] = {}
    for node in problem.kubernetes.list("nodes"):
        path = f"/api/v1/nodes/{node['metadata']['name']}/proxy/stats/summary"
        try:
            pods: list[dict[str, Any]] = problem.kubernetes.raw(path).get("pods") or []
        except ServiceError:
            continue
        for pod in pods:
            count = (pod.get("process_stats") or {}).get("process_count")
            if count is not None:
                counts[str(pod["podRef"]["uid"])] = int(count)
    return counts


def _debug_containers(problem: Problem) -> Iterator[str]:
    """Ephemeral containers that run; those of pods that end do not count."""
    for namespace in problem.app.namespaces:
        for pod in problem.kubernetes.list("pods", namespace):
            for status in (pod.get("status") or {}).get("ephemeralContainerStatuses") or ():
                if "running" in (status.get("state") or {}) and not pod["metadata"].get("deletionTimestamp"):
                    yield f"the ephemeral container {status['name']} of {pod['metadata']['name']} still runs"


def _left_behind(problem: Problem, usual: dict[str, int]) -> Iterator[tuple[str, _Process]]:
    counts = _counts(problem)
    for pod in _pods(problem):
        running = list(_running(pod))
        count = counts.get(pod["metadata"]["uid"])
        if count is not None and count <= len(running):
            continue  # each container has its first process, and no other
        strange = count is not None and count > usual.get(_sort(pod), len(running))
        for container in running:
            found = (
                _listed_from_outside(problem, pod, container)
                if strange
                else _processes(problem.kubernetes, pod, container)
            )
            place = f"{container['name']} of {pod['metadata']['name']}"
            yield from ((place, one) for one in _foreign(found))


def _running(pod: Obj) -> Iterator[Obj]:
    status = pod.get("status") or {}
    for field in ("containerStatuses", "initContainerStatuses"):
        for container in status.get(field) or ():
            if "running" in (container.get("state") or {}):
                yield container


def _listed_from_outside(problem: Problem, pod: Obj, container: Obj) -> list[_Process]:
    """The processes of a container, by an ephemeral container that sees them."""
    refusal = ""
    for settings in ({}, {"securityContext": RESTRICTED}):  # the second one for namespaces that demand it
        try:
            return _listed(problem, pod, container, settings)
        except (ServiceError, TimedOut) as refused:
            refusal = str(refused)
    unknown = f"something that cannot be listed ({refusal})"
    return [_Process(1, 0, 1, 0, "", ""), _Process(0, 0, 0, 0, "unknown", unknown)]


def _listed(problem: Problem, pod: Obj, container: Obj, settings: Obj) -> list[_Process]:
    api, name, namespace = problem.kubernetes, pod["metadata"]["name"], pod["metadata"]["namespace"]
    lister = f"shell-{len(api.get('pods', name, namespace)['spec'].get('ephemeralContainers') or ())}"
    added = {"name": lister, "image": _LISTER, "command": ["sh", "-c", _LIST], **settings}
    added["targetContainerName"] = container["name"]

    def has_ended() -> bool:
        statuses = (api.get("pods", name, namespace).get("status") or {}).get("ephemeralContainerStatuses") or ()
        return any("terminated" in (one.get("state") or {}) for one in statuses if one["name"] == lister)

    patch = {"spec": {"ephemeralContainers": [added]}}
    api.patch("pods", name, patch, namespace, subresource="ephemeralcontainers", manager="kubectl-debug")
    wait_until(has_ended, problem.cluster.wait, _LISTING, what="a list of processes")
    return _read(api.logs(name, namespace, container=lister))


def _processes(api: Kubernetes, pod: Obj, container: Obj) -> list[_Process]:
    """The processes of a container, by its own shell; none where there is no shell."""
    metadata = pod["metadata"]
    try:
        result = api.exec(
            metadata["name"], ["sh", "-c", _LIST], metadata["namespace"], container=container["name"], timeout=_PROBE
        )
    except ServiceError:
        return []
    return _read(result.output)


def _read(output: str) -> list[_Process]:
    """The processes of a list, except those that made it."""
    own, *lines = output.splitlines() or [""]
    found = [_parsed(line) for line in lines if line.strip("| ")]
    return [one for one in found if own not in (str(one.pid), str(one.parent))]


def _parsed(line: str) -> _Process:
    """One process; see proc(5). A name may contain anything: what cannot be read has a session of its own."""
    same, _, rest = line.partition("|")  # it comes first: a program may have any name
    program, _, rest = rest.partition("|")
    command, _, status = rest.rpartition("|")
    fields = status.rpartition(")")[2].split()
    try:
        pid = int(status.partition(" ")[0])
        name = status.partition("(")[2].rpartition(")")[0]
        return _Process(
            pid, int(fields[1]), int(fields[3]), int(fields[19]), program, command.strip(), name, bool(same)
        )
    except (ValueError, IndexError):
        return _Process(0, 0, 0, 0, program, line)


def _foreign(processes: list[_Process]) -> list[_Process]:
    first = next((one for one in processes if one.pid == 1), None)
    return [one for one in processes if first is not None and not _belongs(one, first)]


def _belongs(process: _Process, first: _Process) -> bool:
    if process.session == first.session:
        return True
    unknown = not process.program and not first.program and process.name == first.name
    if not process.same and not unknown:
        return False
    interprets = PurePosixPath(first.program).name.startswith(_INTERPRETERS)
    return not interprets or process.command == first.command
