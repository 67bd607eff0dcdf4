"""create, update, delete and deletecollection, for every resource alike.

A write may have to wait for an admission webhook. Nothing has changed by then, so it is simply made again when the
answer is there; that is why each is written as a function that can be called more than once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from srearena.cluster.embedded.api import bodies, escalation
from srearena.cluster.embedded.api.decoding import object_in, typed
from srearena.cluster.embedded.api.options import delete_wish, write_wish
from srearena.cluster.embedded.api.presenting import show, show_list, show_object
from srearena.cluster.embedded.api.reading import selected
from srearena.cluster.embedded.api.requests import Request
from srearena.cluster.embedded.api.selection import selection_of
from srearena.cluster.embedded.api.views import View, view_of, view_of_kind
from srearena.cluster.embedded.api.waiting import settled
from srearena.cluster.embedded.objects import Obj, copy_of, meta, name_of, namespace_of, uid_of
from srearena.cluster.embedded.registry import conversion, deletion
from srearena.cluster.embedded.registry.errors import BadRequest, NotFound
from srearena.cluster.embedded.registry.field_validation import Directive
from srearena.cluster.embedded.registry.registry import WriteOptions
from srearena.cluster.embedded.registry.resources import Resource

if TYPE_CHECKING:
    from srearena.cluster.embedded.api.backend import Backend

# Resources whose last state is shown when they are deleted at once; for others only name and UID are returned.
_SHOWN_WHEN_GONE: Final = frozenset(
    {
        "pods",
        "services",
        "serviceaccounts",
        "podtemplates",
        "persistentvolumes",
        "persistentvolumeclaims",
        "resourcequotas",
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "storageclasses.storage.k8s.io",
        "volumeattachments.storage.k8s.io",
    }
)
# Resources that a PUT creates where they are not there.
_CREATED_BY_UPDATE: Final = frozenset(
    {
        "endpoints",
        "events",
        "limitranges",
        "services",
        "leases.coordination.k8s.io",
        "clusterrolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
        "roles.rbac.authorization.k8s.io",
    }
)


def namespace_in(request: Request, row: Resource) -> str:
    return request.info.namespace if row.namespaced else ""


async def get_view(backend: Backend, request: Request, row: Resource) -> None:
    """Read a subresource."""
    found = await settled(lambda: backend.registry.get(row, namespace_in(request, row), request.info.name))
    await show_view(backend, request, row, view_of(backend, row, request.info.subresource), found)


async def show_view(backend: Backend, request: Request, row: Resource, view: View, obj: Obj, status: int = 200) -> None:
    if view.whole:
        await show_object(backend, request, row, obj, status)
    else:
        await show(request, view.show(obj), status)


async def create(backend: Backend, request: Request, row: Resource) -> None:
    wish = write_wish(request, "CreateOptions")
    data = await request.body()
    namespace = namespace_in(request, row)
    obj = object_in(data, request, view_of(backend, row, ""), wish)
    escalation.check(backend.authorizer, row, request.user, namespace, obj, None)

    def write() -> Obj:
        return backend.registry.create(row, namespace, copy_of(obj), wish.options())

    await show_object(backend, request, row, await settled(write), 201)


async def update(backend: Backend, request: Request, row: Resource) -> None:
    wish = write_wish(request, "UpdateOptions")
    data = await request.body()
    namespace, name, part = namespace_in(request, row), request.info.name, request.info.subresource
    view = view_of(backend, row, part)
    wanted = object_in(data, request, view, wish)
    check_name(wanted, name, namespace)

    def write() -> tuple[Obj, int]:
        def change(current: Obj) -> Obj:
            escalation.check(backend.authorizer, row, request.user, namespace, wanted, current)
            return view.take(current, copy_of(wanted))

        try:
            return backend.registry.update(row, namespace, name, change, wish.options(), subresource=part), 200
        except NotFound:
            if part or row.group_resource not in _CREATED_BY_UPDATE or meta(wanted).get("resourceVersion"):
                raise
        escalation.check(backend.authorizer, row, request.user, namespace, wanted, None)
        return backend.registry.create(row, namespace, copy_of(wanted), wish.options()), 201

    obj, status = await settled(write)
    await show_view(backend, request, row, view, obj, status)


def check_name(obj: Obj, name: str, namespace: str) -> None:
    """The object must be the one that the URL names; a namespace left out is the URL's."""
    found = name_of(obj)
    if not found:
        raise BadRequest(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if found != name:
        raise BadRequest(f"the name of the object ({found}) does not match the name on the URL ({name})")
    home = namespace_of(obj)
    if namespace and home and home != namespace:
        raise BadRequest(
            f"the namespace of the object ({home}) does not match the namespace on the request ({namespace})"
        )
    if namespace:
        obj["metadata"]["namespace"] = namespace


async def delete(backend: Backend, request: Request, row: Resource) -> None:
    wish, options = await _deletion(request)
    namespace, name = namespace_in(request, row), request.info.name
    stored, gone = await settled(lambda: deletion.delete(backend.registry, row, namespace, name, wish, options))
    obj = await settled(lambda: conversion.from_storage(row, stored))
    if gone and row.group_resource not in _SHOWN_WHEN_GONE:
        details = {"name": name, "group": row.group, "kind": row.plural, "uid": uid_of(obj)}
        await show(request, success({key: value for key, value in details.items() if value}))
        return
    lingers = not gone and wish.get("orphanDependents") is False
    await show_object(backend, request, row, obj, 202 if lingers else 200)


async def deletecollection(backend: Backend, request: Request, row: Resource) -> None:
    wish, options = await _deletion(request)
    selection = selection_of(request, row, backend.store)
    deleted: list[Obj] = []
    for obj in await selected(row, selection, backend.store.objects(row.storage_key, selection.namespace)):
        place = (namespace_of(obj), name_of(obj))

        def write(place: tuple[str, str] = place) -> tuple[Obj, bool]:
            return deletion.delete(backend.registry, row, *place, dict(wish), options)

        try:
            deleted.append((await settled(write))[0])
        except NotFound:
            continue  # a concurrent write succeeded first
    await show_list(backend, request, row, deleted, {"resourceVersion": str(backend.store.revision)})


async def _deletion(request: Request) -> tuple[Obj, WriteOptions]:
    wished = write_wish(request, "DeleteOptions")
    data = await request.body()
    body: Obj | None = None
    if data.strip():
        body = bodies.decode_object(data, request.header("content-type"))
        # Any group may have its own spelling of the same options.
        view = view_of_kind("v1", "DeleteOptions")
        body, _ = typed({**body, "apiVersion": view.api_version, "kind": view.kind}, view, Directive.IGNORE)
    wish = delete_wish(request, body)
    options = wished.options()
    options.dry_run = options.dry_run or bool(wish.pop("dryRun", None))
    return wish, options


def success(details: Obj) -> Obj:
    status: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return {**status, "details": details} if details else status
