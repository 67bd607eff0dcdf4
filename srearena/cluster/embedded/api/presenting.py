"""Objects on their way out, in the shape the client asked for.

The common case, JSON of whole objects, is put together from the bytes the store keeps of every object; only tables,
bare metadata, YAML and pretty printing build anything new.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from srearena.cluster.embedded.api import custom, tables
from srearena.cluster.embedded.api.negotiation import Accepted, accepted
from srearena.cluster.embedded.api.requests import Request
from srearena.cluster.embedded.api.waiting import settled
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry import conversion
from srearena.cluster.embedded.registry.errors import BadRequest
from srearena.cluster.embedded.registry.resources import Resource

if TYPE_CHECKING:
    from srearena.cluster.embedded.api.backend import Backend


def accepted_format(request: Request) -> Accepted:
    return accepted(request.header("accept"))


def pretty(request: Request) -> bool:
    return request.query.text("pretty") in ("1", "true")


def include_object(request: Request) -> str:
    chosen = request.query.text("includeObject") or "Metadata"
    if chosen not in tables.INCLUDE_OBJECT:
        raise BadRequest(f'unrecognized includeObject value: "{chosen[:100]}"')
    return chosen


async def show(request: Request, document: Any, status: int = 200) -> None:
    """Answer with a document that is not a stored object: a Status, a Scale, a review."""
    choice = accepted(request.header("accept"), transforms=False)
    await request.reply(status, choice.encode(document, pretty(request)), choice.content_type)


async def show_object(backend: Backend, request: Request, row: Resource, obj: Obj, status: int = 200) -> None:
    """Answer with one object, given in the version of the row."""
    choice = accepted_format(request)
    if choice.plain_json and not pretty(request):
        await request.reply(status, backend.store.encoded(row.storage_key, obj) + b"\n")
        return
    shaped = shape(backend, request, row, obj, choice)
    await request.reply(status, choice.encode(shaped, pretty(request)), choice.content_type)


async def show_computed(backend: Backend, request: Request, row: Resource, obj: Obj) -> None:
    """Answer with one object that is computed rather than stored."""
    choice = accepted_format(request)
    shaped = shape(backend, request, row, obj, choice)
    await request.reply(200, choice.encode(shaped, pretty(request)), choice.content_type)


def shape(
    backend: Backend, request: Request, row: Resource, obj: Obj, choice: Accepted, *, headers: bool = True
) -> Obj:
    """One object as the transform wants it."""
    if choice.transform == "Table":
        return tables.table_for(
            row.group,
            row.plural,
            [obj],
            backend.world.clock.now,
            include_object=include_object(request),
            crd_columns=custom.printer_columns(backend.store, row),
            api_version=f"meta.k8s.io/{choice.version}",
            headers=headers,
        )
    if choice.transform:
        return tables.partial_object_metadata(obj, f"meta.k8s.io/{choice.version}")
    return obj


async def show_list(
    backend: Backend, request: Request, row: Resource, stored: list[Obj], metadata: Obj, *, computed: bool = False
) -> None:
    """Answer with a list of objects as the store holds them (or `computed` ones, which it does not hold)."""
    choice = accepted_format(request)
    if choice.plain_json and not pretty(request):
        await request.reply(200, await settled(lambda: _joined(backend, row, stored, metadata, computed)))
        return
    objects = stored if computed else await settled(lambda: conversion.all_from_storage(row, stored))
    version = f"meta.k8s.io/{choice.version}"
    if choice.transform == "Table":
        document = tables.table_for(
            row.group,
            row.plural,
            objects,
            backend.world.clock.now,
            include_object=include_object(request),
            crd_columns=custom.printer_columns(backend.store, row),
            list_meta=metadata,
            api_version=version,
        )
    elif choice.transform:
        document = tables.partial_list(objects, metadata, version)
    else:
        document = {**_list_head(row), "metadata": metadata, "items": objects}
    await request.reply(200, choice.encode(document, pretty(request)), choice.content_type)


def _list_head(row: Resource) -> Obj:
    return {"kind": f"{row.kind}List", "apiVersion": row.api_version}


def _joined(backend: Backend, row: Resource, stored: list[Obj], metadata: Obj, computed: bool) -> bytes:
    head = orjson.dumps({**_list_head(row), "metadata": metadata})[:-1]
    if computed:
        items = [orjson.dumps(obj) for obj in stored]
    elif not conversion.shows_stored(row):
        encoded, key = backend.store.encoded, row.storage_key
        items = [encoded(key, obj) for obj in conversion.all_from_storage(row, stored)]
    else:
        encoded, key = backend.store.encoded, row.storage_key
        items = [encoded(key, obj) for obj in stored]
    return b"".join((head, b',"items":[', b",".join(items), b"]}\n"))
