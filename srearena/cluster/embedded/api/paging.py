"""Lists in pieces, and lists of the past: continue tokens, and the objects as they were at an earlier revision.

A token names the revision of the first page and the place where the next one starts. The past is rebuilt by undoing
the changes since; where those are no longer kept the client gets an error with a token to continue without
consistency.
"""

from __future__ import annotations

import base64
import string
from bisect import bisect_left
from dataclasses import dataclass

import orjson

from srearena.cluster.embedded.objects import Obj, meta
from srearena.cluster.embedded.registry.errors import BadRequest, Expired
from srearena.cluster.embedded.registry.json_reader import JsonSyntaxError, read_json
from srearena.cluster.embedded.store import RevisionGone, Store

_TOKEN_VERSION = "meta.k8s.io/v1"
_INVALID = "invalid continue token: continue key is not valid"
_LETTERS = frozenset(string.ascii_letters + string.digits + "-_")
LATEST = -1
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class ContinueExpired(Expired):
    """The page's revision is gone; the Status carries a token to go on with."""

    def __init__(self, token: str) -> None:
        super().__init__(_TOO_OLD)
        self._token = token

    def status(self) -> Obj:
        return {**super().status(), "metadata": {"continue": self._token}}


@dataclass(frozen=True, slots=True)
class Position:
    """Where a page starts: the first place not yet shown, at a revision (or LATEST)."""

    revision: int
    start: str

    def token(self) -> str:
        content = {"v": _TOKEN_VERSION, "rv": self.revision, "start": self.start}
        return base64.urlsafe_b64encode(orjson.dumps(content)).rstrip(b"=").decode()

    @classmethod
    def of(cls, token: str) -> Position:
        try:
            data = base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True)
        except ValueError:
            odd = next((place for place, letter in enumerate(token) if letter not in _LETTERS), len(token))
            raise BadRequest(f"{_INVALID}: illegal base64 data at input byte {odd}") from None
        try:
            content = read_json(data.decode(errors="replace").encode())
        except JsonSyntaxError as problem:
            raise BadRequest(f"{_INVALID}: {problem}") from None
        if not isinstance(content, dict) or content.get("v") != _TOKEN_VERSION:
            raise BadRequest(
                f"{_INVALID}: server does not recognize this encoded version "
                + (str(content.get("v")) if isinstance(content, dict) else "")
            )
        revision, start = content.get("rv"), content.get("start")
        if type(revision) is not int or not isinstance(start, str) or not start or revision == 0:
            raise BadRequest(f"{_INVALID}: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
        return cls(revision, start)


def place_of(obj: Obj, namespace: str) -> str:
    """Where an object stands in a list of that namespace (or of all, for the empty one)."""
    metadata = meta(obj)
    home = metadata.get("namespace", "")
    name: str = metadata["name"]
    return f"{home}/{name}" if home and not namespace else name


def after(objects: list[Obj], namespace: str, start: str) -> list[Obj]:
    """The objects at `start` and behind it, of a list in the store's order."""
    first = bisect_left(objects, start, key=lambda obj: place_of(obj, namespace))
    return objects[first:]


def objects_at(store: Store, resource: str, namespace: str, revision: int) -> list[Obj]:
    """The objects as they were at an earlier revision; RevisionGone where that is too long ago."""
    if revision < store.compacted:
        raise RevisionGone(revision, store.compacted)
    changes = store.changes_since(resource, revision)
    now = store.objects(resource, namespace)
    if not changes:
        return now
    places = {(meta(obj).get("namespace", ""), meta(obj)["name"]): obj for obj in now}
    for change in reversed(changes):
        metadata = change.new["metadata"]
        place = (metadata.get("namespace", ""), metadata["name"])
        if namespace and place[0] != namespace:
            continue
        if change.old is None:
            places.pop(place, None)
        else:
            places[place] = change.old
    return [places[place] for place in sorted(places, key="/".join)]


def page_at(store: Store, resource: str, namespace: str, position: Position) -> tuple[list[Obj], int]:
    """The objects from a continue token's position on, and the revision they show."""
    if position.revision == LATEST:
        return after(store.objects(resource, namespace), namespace, position.start), store.revision
    if position.revision > store.revision:
        raise BadRequest("continue key is not valid: resourceVersion is in the future")
    try:
        found = objects_at(store, resource, namespace, position.revision)
    except RevisionGone:
        raise ContinueExpired(Position(LATEST, position.start).token()) from None
    return after(found, namespace, position.start), position.revision
