"""Recent changes as evidence: who edited which field when, and what the revisions of a workload changed.

A change alone proves nothing: teams roll out, annotate and add all day. So each change of a pod template is judged by
what it touches. What cannot break a program (an annotation, one more variable, a longer grace period) is innocent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from clients.rules.system import Obj, System, moment, template_of

_CONTROLLERS = re.compile(
    r"^(kube-controller-manager|kube-scheduler|kubelet|kube-apiserver|service-controller|endpoint.*|cloud-.*)$"
)
_INNOCENT_POD_FIELDS = frozenset({"terminationGracePeriodSeconds", "schedulerName", "restartPolicy", "containers"})
_INNOCENT_CONTAINER_FIELDS = frozenset(
    {"name", "terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy", "env"}
)
_RUNTIME_VARIABLES = re.compile(
    r"^(GOGC|GOMEMLIMIT|GOMAXPROCS|GODEBUG|JAVA_.*|_JAVA_OPTIONS|JDK_.*|NODE_OPTIONS|UV_THREADPOOL_SIZE|PYTHON.*|"
    r"RUBY.*|DOTNET_.*|MALLOC_.*|LD_.*|TZ|PATH|(HTTPS?|NO|ALL)_PROXY|RES_OPTIONS|LOCALDOMAIN|SSL_CERT_.*)$",
    re.IGNORECASE,
)
"""Variables that language runtimes, the linker and resolvers read, whatever the program."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Fields of an object that one manager owns who is not its first author."""

    manager: str
    at: float
    fields: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """A field of a pod template that a revision changed."""

    path: tuple[str | int, ...]
    """From the pod's spec, as in a JSON patch; containers are numbered as in the newer template."""
    old: Any
    new: Any
    removed_container: bool = False

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.path))}: {_short(self.old)} became {_short(self.new)}"


def _short(value: Any) -> str:
    return "nothing" if value is None else f"{str(value)[:80]!r}"


def edits(obj: Obj) -> list[Edit]:
    """Edits after the creation by people and pipelines, the latest first."""
    entries = [
        entry
        for entry in obj["metadata"].get("managedFields") or ()
        if not entry.get("subresource") and not _CONTROLLERS.match(str(entry.get("manager")))
    ]
    if not entries:
        return []
    first = min(entries, key=lambda entry: moment(str(entry.get("time", ""))))
    created = moment(str(obj["metadata"].get("creationTimestamp", "")))
    found = []
    for entry in entries:
        at = moment(str(entry.get("time", "")))
        if entry is first and at <= created + 2:
            continue
        fields = tuple(sorted(_leaves(entry.get("fieldsV1") or {}, ())))
        found.append(Edit(str(entry.get("manager")), at, fields))
    return sorted(found, key=lambda edit: -edit.at)


def _leaves(fields: Obj, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for key, inner in fields.items():
        if key == ".":
            continue
        here = (*path, key.removeprefix("f:"))
        if inner:
            yield from _leaves(inner, here)
        else:
            yield here


def edited(obj: Obj, *prefix: str) -> float:
    """When a field (or one below it) was last edited; 0 where it never was."""
    return max((one.at for one in edits(obj) for path in one.fields if path[: len(prefix)] == prefix), default=0.0)


def created_at(obj: Obj) -> float:
    return moment(str(obj["metadata"].get("creationTimestamp", "")))


def template_differences(old: Obj, new: Obj) -> list[Difference]:
    """What a newer pod template (`spec` of pods) changed that can break a program."""
    found: list[Difference] = []
    for key in sorted((old.keys() | new.keys()) - _INNOCENT_POD_FIELDS):
        if old.get(key) != new.get(key):
            found.append(Difference((key,), old.get(key), new.get(key)))
    before = {str(one["name"]): one for one in old.get("containers") or ()}
    after = [str(one["name"]) for one in new.get("containers") or ()]
    for index, container in enumerate(new.get("containers") or ()):
        previous = before.get(str(container["name"]))
        if previous is None:
            found.append(Difference(("containers", index), None, container))
            continue
        for key in sorted((previous.keys() | container.keys()) - _INNOCENT_CONTAINER_FIELDS):
            if previous.get(key) != container.get(key):
                found.append(Difference(("containers", index, key), previous.get(key), container.get(key)))
        found += _variable_differences(index, previous, container)
    for name, previous in before.items():
        if name not in after:
            found.append(Difference(("containers", len(after)), previous, None, removed_container=True))
    return found


def _variable_differences(index: int, old: Obj, new: Obj) -> Iterator[Difference]:
    """Variables that were removed or set to another value, and added ones that runtimes read; others are innocent."""
    present = {str(one["name"]): (place, one) for place, one in enumerate(new.get("env") or ())}
    for variable in old.get("env") or ():
        name = str(variable["name"])
        place, now = present.get(name, (len(new.get("env") or ()), None))
        if now != variable:
            yield Difference(("containers", index, "env", place), variable, now)
    before = {str(one["name"]) for one in old.get("env") or ()}
    for name, (place, variable) in present.items():
        if name not in before and _RUNTIME_VARIABLES.match(name):
            yield Difference(("containers", index, "env", place), None, variable)


@dataclass(frozen=True, slots=True)
class Revision:
    """The latest revision of a workload that changed something that can break it."""

    at: float
    differences: tuple[Difference, ...]
    old: Obj
    """The pod spec before it."""


def suspicious_revision(system: System, deployment: Obj) -> Revision | None:
    """The latest revision whose suspicious changes are still in force, compared with the one before it."""
    history = (system.first or system).revisions(deployment)
    declared = {
        str(variable["name"])
        for container in (history[0]["spec"]["template"]["spec"]["containers"] if history else ())
        for variable in container.get("env") or ()
    }

    def breaking(old: Obj, new: Obj) -> list[Difference]:
        """Without other values of variables that came later than the program: nothing can depend on them."""
        return [
            one
            for one in template_differences(old, new)
            if "env" not in one.path or one.old is None or one.old["name"] in declared
        ]

    current = template_of(deployment)["spec"]
    for place, (older, newer) in reversed(list(enumerate(pairwise(history)))):
        before, after = template_of(older)["spec"], template_of(newer)["spec"]
        if not breaking(before, after):
            continue
        if any(not breaking(template_of(earlier)["spec"], current) for earlier in history[:place]):
            return None  # it has run like this before: a change was taken back
        in_force = breaking(before, current)
        if in_force:
            return Revision(created_at(newer), tuple(in_force), before)
    return None
