"""watch: every change of what the client selected, in order, from where it left off.

Each stored resource that is watched has one feed; it hears a change once, and the line that tells of it is encoded
once, for all watchers that see the same version of it. A watcher has a bounded queue: a client too slow for the
cluster is disconnected and will start again, instead of the server remembering the world for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import orjson

from srearena.cluster.embedded.api.negotiation import PROTOBUF, Accepted
from srearena.cluster.embedded.api.presenting import accepted_format, shape
from srearena.cluster.embedded.api.reading import check_not_future, parse_revision
from srearena.cluster.embedded.api.requests import Disconnected, Request
from srearena.cluster.embedded.api.selection import Selection, selection_of
from srearena.cluster.embedded.api.waiting import IN_WORLD, VirtualWake, Wake, settled
from srearena.cluster.embedded.objects import Obj, meta
from srearena.cluster.embedded.registry import conversion
from srearena.cluster.embedded.registry.errors import ApiError, Expired, FieldError, Invalid
from srearena.cluster.embedded.registry.resources import Resource
from srearena.cluster.embedded.store import Change, RevisionGone, Store

if TYPE_CHECKING:
    from srearena.cluster.embedded.api.backend import Backend

QUEUE_LIMIT: Final = 10_000
BOOKMARK_SECONDS: Final = 60.0
DEFAULT_SECONDS: Final = 2700
"""How long a watch lasts if the client does not say; the real server takes half an hour to an hour."""
_INITIAL_END: Final = "k8s.io/initial-events-end"
_CHUNK: Final = 256 * 1024


class Event:
    """One change, with the lines made of it so far."""

    __slots__ = ("_lines", "change")

    def __init__(self, change: Change) -> None:
        self.change = change
        self._lines: dict[tuple[str, str], bytes] = {}

    def obj(self, kind: str) -> Obj:
        """The object to show; one that merely left the selection shows its last selected state, as of now."""
        change = self.change
        if kind == "DELETED" and change.type != "DELETED" and change.old is not None:
            return {**change.old, "metadata": {**meta(change.old), "resourceVersion": str(change.revision)}}
        return change.new

    def line(self, kind: str, row: Resource, store: Store) -> bytes:
        key = (kind, row.api_version)
        found = self._lines.get(key)
        if found is None:
            obj = conversion.from_storage(row, self.obj(kind))
            found = self._lines[key] = event_line(kind, store.encoded(row.storage_key, obj))
        return found


def event_line(kind: str, encoded: bytes) -> bytes:
    return b"".join((b'{"type":"', kind.encode(), b'","object":', encoded, b"}\n"))


class Watcher:
    """One client's view of a feed."""

    __slots__ = ("_queue", "overflowed", "selection", "wake")

    def __init__(self, selection: Selection, wake: Wake) -> None:
        self.selection = selection
        self.wake = wake
        self.overflowed = False
        self._queue: deque[tuple[str, Event]] = deque()

    def offer(self, event: Event) -> None:
        kind = self._kind(event.change)
        if not kind:
            return
        if len(self._queue) >= QUEUE_LIMIT:
            self.overflowed = True
            self._queue.clear()
        elif not self.overflowed:
            self._queue.append((kind, event))
        self.wake.set()

    def take(self) -> list[tuple[str, Event]]:
        taken = list(self._queue)
        self._queue.clear()
        self.wake.clear()
        return taken

    def _kind(self, change: Change) -> str:
        """What the change looks like through the selection; empty if it cannot be seen."""
        if not self.selection.covers(change.new):
            return ""
        return visible_kind(self.selection, change.type, change.old, change.new)


def visible_kind(selection: Selection, kind: str, old: Obj | None, new: Obj) -> str:
    """What a change looks like to a client that sees matching objects only; empty if it cannot be seen."""
    if selection.matcher is None:
        return kind
    before = old is not None and selection.matches(old)
    after = kind != "DELETED" and selection.matches(new)
    if after:
        return "MODIFIED" if before else "ADDED"
    return "DELETED" if before else ""


class Feeds:
    """The feeds of all watched resources; a feed exists while it has watchers."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watchers: dict[str, dict[Watcher, None]] = {}
        self._unsubscribe: dict[str, Callable[[], None]] = {}

    def join(self, resource: str, watcher: Watcher) -> None:
        watchers = self._watchers.get(resource)
        if watchers is None:
            watchers = self._watchers[resource] = {}
            self._unsubscribe[resource] = self._store.subscribe(self._publish, resource)
        watchers[watcher] = None

    def leave(self, resource: str, watcher: Watcher) -> None:
        watchers = self._watchers[resource]
        watchers.pop(watcher, None)
        if not watchers:
            del self._watchers[resource]
            self._unsubscribe.pop(resource)()

    def _publish(self, change: Change) -> None:
        event = Event(change)
        for watcher in self._watchers.get(change.resource, ()):
            watcher.offer(event)


async def watch(backend: Backend, request: Request, row: Resource) -> None:
    _check_options(request)
    revision = parse_revision(request.query.text("resourceVersion"), prefix="", refusal=ApiError)
    check_not_future(backend, revision)
    wake = VirtualWake(backend.world.clock) if IN_WORLD.get() else asyncio.Event()
    selection = selection_of(request, row, backend.store)
    stream = _Stream(backend, request, row, accepted_format(request))
    if row.converter is not None and selection.matcher is not None:
        # Fields are those of the requested version: what is selected turns out when objects are converted.
        stream.selection, selection = selection, replace(selection, matcher=None)
    watcher = Watcher(selection, wake)
    backend.feeds.join(row.storage_key, watcher)
    try:
        # Between joining and here nothing has run, so the past ends exactly where the feed begins.
        begin = _first_lines(backend, request, watcher, stream, revision)
        first = begin if isinstance(begin, Expired) else await _encoded(begin)
        await request.start(200, stream.content_type)
        if isinstance(wake, VirtualWake):
            await _one_round(request, watcher, wake, stream, first)
        else:
            await _run(request, watcher, wake, stream, first)
        await request.finish()
    except Disconnected:
        return
    finally:
        backend.feeds.leave(row.storage_key, watcher)


def _check_options(request: Request) -> None:
    query = request.query
    match = query.text("resourceVersionMatch")
    problems: list[FieldError] = []
    if query.has("sendInitialEvents"):
        if match != "NotOlderThan":
            why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            problems.append(FieldError.forbidden("resourceVersionMatch", why))
            if match:
                problems.append(FieldError.not_supported("resourceVersionMatch", match, ["NotOlderThan"]))
    elif match:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        problems.append(FieldError.forbidden("resourceVersionMatch", why))
    if problems:
        raise Invalid("ListOptions.meta.k8s.io", "", problems)


class _Stream:
    """Turns events into what this client reads."""

    def __init__(self, backend: Backend, request: Request, row: Resource, choice: Accepted) -> None:
        self._backend = backend
        self._request = request
        self._row = row
        self._choice = choice
        self._headers = True
        self.selection: Selection | None = None
        """What the client selects, where that is not known before objects are converted."""
        self.bookmarks = request.query.flag("allowWatchBookmarks")
        self._binary = choice.content_type == PROTOBUF
        self.content_type = f"{PROTOBUF};stream=watch" if self._binary else "application/json"

    def change(self, kind: str, event: Event) -> bytes:
        """The line of a change; empty where the client does not see it."""
        if self.selection is not None:
            old = event.change.old
            before = None if old is None else conversion.from_storage(self._row, old)
            after = conversion.from_storage(self._row, event.change.new)
            kind = visible_kind(self.selection, event.change.type, before, after)
            if not kind:
                return b""
        if not self._choice.transform and not self._binary:
            return event.line(kind, self._row, self._backend.store)
        return self._shaped(kind, conversion.from_storage(self._row, event.obj(kind)))

    def addition(self, stored: Obj) -> bytes:
        """An object that was there before the watch began; empty where the client does not see it."""
        if self.selection is not None and not self.selection.matches(conversion.from_storage(self._row, stored)):
            return b""
        if not self._choice.transform and not self._binary:
            obj = conversion.from_storage(self._row, stored)
            return event_line("ADDED", self._backend.store.encoded(self._row.storage_key, obj))
        return self._shaped("ADDED", conversion.from_storage(self._row, stored))

    def bookmark(self, *, initial_end: bool = False) -> bytes:
        metadata: Obj = {"resourceVersion": str(self._backend.store.revision), "creationTimestamp": None}
        if initial_end:
            metadata["annotations"] = {_INITIAL_END: "true"}
        obj: Obj = {"kind": self._row.kind, "apiVersion": self._row.api_version, "metadata": metadata}
        if self._choice.transform or self._binary:
            return self._shaped("BOOKMARK", obj)
        return event_line("BOOKMARK", orjson.dumps(obj))

    def error(self, error: ApiError) -> bytes:
        return self._line("ERROR", error.status())

    def _shaped(self, kind: str, obj: Obj) -> bytes:
        # A client that reads tables needs the column definitions once.
        shaped = shape(self._backend, self._request, self._row, obj, self._choice, headers=self._headers)
        self._headers = False
        return self._line(kind, shaped)

    def _line(self, kind: str, obj: Obj) -> bytes:
        return self._choice.encode_event(kind, obj) if self._binary else event_line(kind, orjson.dumps(obj))


def _first_lines(
    backend: Backend, request: Request, watcher: Watcher, stream: _Stream, revision: int
) -> list[Callable[[], bytes]] | Expired:
    """What makes the initial events of a watch; Expired where the revision is too old."""
    selection, store = watcher.selection, backend.store
    initial_events_requested = request.query.has("sendInitialEvents")
    initial = request.query.flag("sendInitialEvents") if initial_events_requested else revision == 0
    key = stream._row.storage_key
    if initial:
        found = selection.of(store.objects(key, selection.namespace))
        lines: list[Callable[[], bytes]] = [partial(stream.addition, obj) for obj in found]
        if initial_events_requested and stream.bookmarks:
            end = stream.bookmark(initial_end=True)
            lines.append(lambda: end)
        return lines
    if revision == 0:
        return []
    try:
        missed = store.changes_since(key, revision)
    except RevisionGone as gone:
        return Expired.too_old(gone.requested, gone.oldest)
    for change in missed:
        watcher.offer(Event(change))
    return [partial(stream.change, kind, event) for kind, event in watcher.take()]


async def _lines(watcher: Watcher, stream: _Stream) -> list[bytes]:
    """What has happened since the last time."""
    return await _encoded([partial(stream.change, kind, event) for kind, event in watcher.take()])


async def _encoded(lines: Iterable[Callable[[], bytes]]) -> list[bytes]:
    encoded = [await settled(line) for line in lines]
    return [line for line in encoded if line]


async def _one_round(
    request: Request, watcher: Watcher, wake: VirtualWake, stream: _Stream, first: list[bytes] | Expired
) -> None:
    """A watch of a client inside the simulation: over as soon as there is something to tell."""
    if isinstance(first, Expired):
        first = [stream.error(first)]
    if not first:
        await wake.wait(request.query.number("timeoutSeconds") or DEFAULT_SECONDS)
        first = await _lines(watcher, stream)
    await request.write(b"".join(first))


async def _run(
    request: Request, watcher: Watcher, wake: asyncio.Event, stream: _Stream, first: list[bytes] | Expired
) -> None:
    if isinstance(first, Expired):
        await request.write(stream.error(first))
        return
    loop = asyncio.get_running_loop()
    seconds = request.query.number("timeoutSeconds")
    ends_at = loop.time() + (seconds if seconds is not None and seconds > 0 else DEFAULT_SECONDS)
    bookmark_at = loop.time() + BOOKMARK_SECONDS if stream.bookmarks else ends_at
    forget = request.connection.on_lost(wake.set) if request.connection else None
    pending = first
    try:
        while True:
            for piece in _pieces(pending):
                await request.write(piece)
            if watcher.overflowed:
                raise Disconnected
            if not wake.is_set():
                alarm = loop.call_at(min(ends_at, bookmark_at), wake.set)
                await wake.wait()
                alarm.cancel()
            if request.gone:
                raise Disconnected
            pending = await _lines(watcher, stream)
            now = loop.time()
            if now >= ends_at:
                for piece in _pieces(pending):
                    await request.write(piece)
                return
            if now >= bookmark_at:
                bookmark_at = now + BOOKMARK_SECONDS
                pending.append(stream.bookmark())
    except Disconnected:
        if watcher.overflowed and request.connection is not None:
            request.connection.abort()
        raise
    finally:
        if forget is not None:
            forget()


def _pieces(lines: list[bytes]) -> list[bytes]:
    """The lines joined into writes of a sensible size."""
    if len(lines) < 2:
        return lines
    pieces: list[bytes] = []
    batch: list[bytes] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if size >= _CHUNK:
            pieces.append(b"".join(batch))
            batch, size = [], 0
    if batch:
        pieces.append(b"".join(batch))
    return pieces
