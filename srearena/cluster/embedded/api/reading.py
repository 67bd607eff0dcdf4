"""get and list, with the meaning of resourceVersion that the real server gives it.

Every read is of the latest state unless the client pins an exact revision: with `resourceVersionMatch=Exact`, with
`limit` and a revision, or by continuing a list it began before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from srearena.cluster.embedded.api.paging import Position, objects_at, page_at, place_of
from srearena.cluster.embedded.api.presenting import show_list, show_object
from srearena.cluster.embedded.api.requests import Request
from srearena.cluster.embedded.api.selection import Selection, selection_of
from srearena.cluster.embedded.api.waiting import settled
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry import conversion
from srearena.cluster.embedded.registry.errors import (
    ApiError,
    BadRequest,
    Expired,
    FieldError,
    Invalid,
    Timeout,
)
from srearena.cluster.embedded.registry.resources import Resource
from srearena.cluster.embedded.store import RevisionGone

if TYPE_CHECKING:
    from srearena.cluster.embedded.api.backend import Backend

_MATCHES: Final = ("Exact", "NotOlderThan")
_OPTIONS: Final = "ListOptions.meta.k8s.io"


async def get(backend: Backend, request: Request, row: Resource) -> None:
    check_not_future(backend, parse_revision(request.query.text("resourceVersion")))
    namespace = request.info.namespace if row.namespaced else ""
    found = await settled(lambda: backend.registry.get(row, namespace, request.info.name))
    await show_object(backend, request, row, found)


async def list_(backend: Backend, request: Request, row: Resource) -> None:
    check_list_options(request)
    selection = selection_of(request, row, backend.store)
    found, revision = _candidates(backend, request, row, selection)
    limit = request.query.number("limit") or 0
    metadata: Obj = {"resourceVersion": str(revision)}
    chosen = found if selection.everything else await selected(row, selection, found)
    if 0 < limit < len(chosen):
        rest = len(chosen) - limit
        chosen = chosen[:limit]
        start = place_of(chosen[-1], selection.namespace) + "\0"
        metadata["continue"] = Position(revision, start).token()
        if selection.everything:
            metadata["remainingItemCount"] = rest
    await show_list(backend, request, row, chosen, metadata)


async def selected(row: Resource, selection: Selection, stored: list[Obj]) -> list[Obj]:
    """The objects that a request selects; fields are those of the requested version."""
    if row.converter is None or selection.matcher is None:
        return selection.of(stored)
    shown = await settled(lambda: conversion.all_from_storage(row, stored))
    return [obj for obj, view in zip(stored, shown, strict=True) if selection.of([view])]


def _candidates(backend: Backend, request: Request, row: Resource, selection: Selection) -> tuple[list[Obj], int]:
    """What there is to choose from, at the revision the client asked for."""
    store, key = backend.store, row.storage_key
    token = request.query.text("continue")
    if token:
        return page_at(store, key, selection.namespace, Position.of(token))
    text = request.query.text("resourceVersion")
    revision = parse_revision(text)
    check_not_future(backend, revision)
    match = request.query.text("resourceVersionMatch")
    exact = match == "Exact" or (not match and bool(request.query.number("limit")) and revision > 0)
    if not exact:
        return store.objects(key, selection.namespace), store.revision
    try:
        return objects_at(store, key, selection.namespace, revision), revision
    except RevisionGone:
        raise Expired("The resourceVersion for the provided list is too old.") from None


def parse_revision(text: str, prefix: str = "invalid resource version: ", refusal: type[ApiError] = BadRequest) -> int:
    """A resourceVersion parameter as a number; 0 where it is not given. A watch refuses a bad one without a reason."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        quoted_text = f'"{text[:100]}"'
        problem = f"strconv.ParseUint: parsing {quoted_text}: invalid syntax"
        raise refusal(f"{prefix}resourceVersion: Invalid value: {quoted_text}: {problem}")
    return int(text)


def check_not_future(backend: Backend, revision: int) -> None:
    current = backend.store.revision
    if revision > current:
        raise TooLargeVersion(revision, current)


class TooLargeVersion(Timeout):
    """The client has seen a revision that this server has not reached."""

    def __init__(self, requested: int, current: int) -> None:
        message = f"Too large resource version: {requested}, current: {current}"
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        ApiError.__init__(self, f"Timeout: {message}", details={"causes": [cause], "retryAfterSeconds": 1})


def check_list_options(request: Request) -> None:
    query = request.query
    match, version = query.text("resourceVersionMatch"), query.text("resourceVersion")
    problems: list[FieldError] = []
    if query.has("sendInitialEvents"):
        problems.append(FieldError.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if match:
        problems += _match_errors(match, version, continued=bool(query.text("continue")))
    elif query.text("continue") and version not in ("", "0"):
        raise BadRequest("specifying resource version is not allowed when using continue")
    if problems:
        raise Invalid(_OPTIONS, "", problems)


def _match_errors(match: str, version: str, *, continued: bool) -> list[FieldError]:
    field = "resourceVersionMatch"
    problems: list[FieldError] = []
    if continued:
        problems.append(FieldError.forbidden(field, f"{field} is forbidden when continue is provided"))
    if not version:
        problems.append(FieldError.forbidden(field, f"{field} is forbidden unless resourceVersion is provided"))
    if match not in _MATCHES:
        problems.append(FieldError.not_supported(field, match, (*_MATCHES, "")))
    elif match == "Exact" and version == "0":
        problems.append(FieldError.forbidden(field, f'{field} "exact" is forbidden for resourceVersion "0"'))
    return problems
