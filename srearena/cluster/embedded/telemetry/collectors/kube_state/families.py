"""Metric families of kube-state-metrics, and the few shapes that almost all of them have.

A family reads one object and yields readings: further labels, and a value. Names, labels and semantics are those of
kube-state-metrics 2.15; a family that does not apply to an object yields no reading, as there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from srearena.cluster.embedded.durations import moment_of
from srearena.cluster.embedded.objects import Obj, dig, meta, name_of, namespace_of
from srearena.cluster.embedded.quantity import parse

Reading = tuple[Mapping[str, str], float]
Read = Callable[[Obj], Iterable[Reading]]
Path = tuple[str, ...]
STATUSES = ("true", "false", "unknown")
_NONE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Family:
    name: str
    help: str
    read: Read
    kind: Literal["gauge", "counter"] = "gauge"


@dataclass(frozen=True, slots=True)
class Kind:
    """A resource, the labels every series of its objects has, and its families."""

    resource: str
    labels: Callable[[Obj], Mapping[str, str]]
    families: tuple[Family, ...]

    def series(self, obj: Obj) -> tuple[list[Mapping[str, str]], list[float]]:
        """Return all series of an object: labels with the name and without empty values, and the values."""
        object_labels = self.labels(obj)
        labels: list[Mapping[str, str]] = []
        values: list[float] = []
        for family in self.families:
            name = family.name
            for further, value in family.read(obj):
                row = {"__name__": name, **object_labels}
                for key, text in further.items():
                    if text:
                        row[key] = text
                labels.append(row)
                values.append(value)
        return labels, values


def named(label: str) -> Callable[[Obj], Mapping[str, str]]:
    """Return labels of namespaced objects: `namespace`, and the name under the kind's label."""
    return lambda obj: {"namespace": namespace_of(obj), label: name_of(obj)}


def clusterwide(label: str) -> Callable[[Obj], Mapping[str, str]]:
    return lambda obj: {label: name_of(obj)}


def seconds(value: object) -> float | None:
    """Return a timestamp of the API in whole seconds since the epoch."""
    moment = moment_of(value) if value else None
    return float(int(moment)) if moment is not None else None


def amount(value: object) -> float:
    """Return a quantity, to a thousandth."""
    quantity = parse(value)
    return quantity.milli_value() / 1000


def truth(value: object) -> float:
    return 1.0 if value else 0.0


def text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


# Shapes of families


def number(name: str, help: str, *path: str, default: float | None = 0.0) -> Family:
    """A number of the object; with `default=None` no reading where it is missing."""

    def read(obj: Obj) -> Iterable[Reading]:
        value = dig(obj, *path, default=default)
        return () if value is None else ((_NONE, float(value)),)

    return Family(name, help, read)


def moment(name: str, help: str, *path: str) -> Family:
    """A timestamp of the object, if it is set."""

    def read(obj: Obj) -> Iterable[Reading]:
        found = seconds(dig(obj, *path))
        return () if found is None else ((_NONE, found),)

    return Family(name, help, read)


def created(prefix: str) -> Family:
    return moment(f"{prefix}_created", "When the object was created.", "metadata", "creationTimestamp")


def deleted(prefix: str) -> Family:
    path = ("metadata", "deletionTimestamp")
    return moment(f"{prefix}_deletion_timestamp", "When the object is to be gone.", *path)


def generation(prefix: str) -> Family:
    name = f"{prefix}_metadata_generation"
    return number(name, "Which version of the wish this is.", "metadata", "generation")


def observed(prefix: str) -> Family:
    name = f"{prefix}_status_observed_generation"
    return number(name, "The generation that the controller has observed.", "status", "observedGeneration")


def version(prefix: str) -> Family:
    def read(obj: Obj) -> Iterable[Reading]:
        return ((_NONE, float(meta(obj)["resourceVersion"])),)

    return Family(f"{prefix}_metadata_resource_version", "The object's resource version.", read)


def info(name: str, help: str, /, **labels: Path) -> Family:
    """Facts as labels of a series that is always 1."""

    def read(obj: Obj) -> Iterable[Reading]:
        return (({label: text(dig(obj, *path)) for label, path in labels.items()}, 1.0),)

    return Family(name, help, read)


def one_of(name: str, help: str, label: str, values: Sequence[str], *path: str) -> Family:
    """One series per possible value, 1 for the present one; none where there is no value yet."""
    rows = tuple(({label: value}, value) for value in values)

    def read(obj: Obj) -> Iterable[Reading]:
        current = dig(obj, *path)
        return [(labels, truth(value == current)) for labels, value in rows] if current else ()

    return Family(name, help, read)


def by_status(status: object, label: str = "condition", **further: str) -> list[Reading]:
    """A condition's status as three series."""
    current = str(status).lower()
    return [({**further, label: value}, truth(value == current)) for value in STATUSES]


def conditions(name: str, help: str) -> Family:
    def read(obj: Obj) -> Iterable[Reading]:
        rows = dig(obj, "status", "conditions", default=())
        return [reading for row in rows for reading in by_status(row["status"], "status", condition=row["type"])]

    return Family(name, help, read)


def condition_of(name: str, help: str, kind: str) -> Family:
    def read(obj: Obj) -> Iterable[Reading]:
        rows = dig(obj, "status", "conditions", default=())
        return [reading for row in rows if row["type"] == kind for reading in by_status(row["status"])]

    return Family(name, help, read)


def condition_since(name: str, help: str, kind: str) -> Family:
    """The transition time of a condition, while it is true."""

    def read(obj: Obj) -> Iterable[Reading]:
        for row in dig(obj, "status", "conditions", default=()):
            since = seconds(row.get("lastTransitionTime"))
            if row["type"] == kind and row["status"] == "True" and since is not None:
                yield _NONE, since

    return Family(name, help, read)


def owners(name: str) -> Family:
    def read(obj: Obj) -> Iterable[Reading]:
        references = meta(obj).get("ownerReferences")
        if not references:
            return ((_NONE, 1.0),)
        return [
            (
                {
                    "owner_kind": reference["kind"],
                    "owner_name": reference["name"],
                    "owner_is_controller": text(bool(reference.get("controller"))),
                },
                1.0,
            )
            for reference in references
        ]

    return Family(name, "Owner of the object.", read)


# Resources

_BYTES = ("memory", "storage", "ephemeral-storage")


def unit_of(resource: str) -> str:
    """`core`, `byte` or `integer`; empty for what kube-state-metrics does not show."""
    if resource == "cpu":
        return "core"
    if resource in _BYTES or resource.startswith(("hugepages-", "attachable-volumes-")):
        return "byte"
    extended = "/" in resource and "kubernetes.io/" not in resource and not resource.startswith("requests.")
    return "integer" if extended else ""


def label_name(name: str) -> str:
    """A resource's name as the value of the label `resource`."""
    return "".join(char if (char.isalnum() and char.isascii()) or char == "_" else "_" for char in name)
