"""The distribution of endpoints over slices of at most a hundred, with minimal changes. Pure functions.

An endpoint stays in the slice it is in. New ones go into slices that change anyway, then into one with room, then
into new slices; slices that become empty go.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from srearena.cluster.embedded.objects import Obj, dig, name_of

SLICE_SIZE = 100


@dataclass(slots=True)
class Layout:
    """The changes: new contents by slice name, contents of slices to create, slices to delete."""

    update: dict[str, list[Obj]] = field(default_factory=dict)
    create: list[list[Obj]] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)


def layout(known: list[Obj], desired: list[Obj]) -> Layout:
    """From the slices of one combination of ports to those that should be."""
    result = Layout()
    left = {_identity(endpoint): endpoint for endpoint in desired}
    unchanged: dict[str, list[Obj]] = {}
    for piece in known:
        before: list[Obj] = piece.get("endpoints") or []
        after = [left.pop(_identity(endpoint)) for endpoint in before if _identity(endpoint) in left]
        if after == before and after:
            unchanged[name_of(piece)] = after
        else:
            result.update[name_of(piece)] = after
    rest = list(left.values())
    for name in sorted(result.update, key=lambda name: -len(result.update[name])):
        room = SLICE_SIZE - len(result.update[name])
        result.update[name] = [*result.update[name], *rest[:room]]
        rest = rest[room:]
    if rest and len(rest) < SLICE_SIZE:
        fitting = [name for name, present in unchanged.items() if len(present) + len(rest) <= SLICE_SIZE]
        if fitting:
            fullest = max(fitting, key=lambda name: (len(unchanged[name]), name))
            result.update[fullest] = [*unchanged[fullest], *rest]
            rest = []
    result.create = [rest[start : start + SLICE_SIZE] for start in range(0, len(rest), SLICE_SIZE)]
    result.delete = [name for name, contents in result.update.items() if not contents]
    for name in result.delete:
        del result.update[name]
    return result


def _identity(endpoint: Obj) -> str:
    uid = dig(endpoint, "targetRef", "uid", default="")
    return f"{uid}|{','.join(endpoint.get('addresses') or ())}"
