"""Server-side apply: a manager's whole wish for an object, merged into it or creating it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from srearena.cluster.embedded.api import bodies, escalation, scaling
from srearena.cluster.embedded.api.decoding import check_kind, typed
from srearena.cluster.embedded.api.options import WriteWish
from srearena.cluster.embedded.api.requests import Request
from srearena.cluster.embedded.api.views import view_of
from srearena.cluster.embedded.api.waiting import settled
from srearena.cluster.embedded.api.writing import check_name, namespace_in, show_view
from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj, meta
from srearena.cluster.embedded.registry.errors import BadRequest, Conflict, FieldError, Invalid, NotFound
from srearena.cluster.embedded.registry.field_validation import Directive
from srearena.cluster.embedded.registry.json_reader import repeated_fields
from srearena.cluster.embedded.registry.patch.apply import server_side_apply
from srearena.cluster.embedded.registry.patch.managed_fields import reset_fields
from srearena.cluster.embedded.registry.resources import Resource

if TYPE_CHECKING:
    from srearena.cluster.embedded.api.backend import Backend

_WHOLE: Final = reset_fields(["status"])
_STATUS: Final = reset_fields(["spec", "metadata"])


async def apply(backend: Backend, request: Request, row: Resource, wish: WriteWish) -> None:
    if not request.query.text("fieldManager"):
        problem = FieldError.required("fieldManager", "is required for apply patch")
        raise Invalid("PatchOptions.meta.k8s.io", "", [problem])
    force = request.query.flag("force")
    data = await request.body()
    _check_keys(data, wish)
    namespace, name, part = namespace_in(request, row), request.info.name, request.info.subresource
    view = view_of(backend, row, part)

    def applied(live: Obj | None) -> Obj:
        config = _config(backend, row, part, data)
        check_name(config, name, namespace)
        result = server_side_apply(
            live,
            config,
            manager=wish.manager,
            force=force,
            api_version=row.api_version,
            kind=row.kind,
            time=backend.world.clock.timestamp(),
            schema=backend.registry.schema(row),
            subresource=part,
            reset=_STATUS if part == "status" else _WHOLE if row.has_status else None,
        )
        result, _ = typed(result, view_of(backend, row, ""), Directive.IGNORE)
        escalation.check(backend.authorizer, row, request.user, namespace, result, live)
        return result if not part or part in ("status", "scale") or live is None else view.take(live, result)

    def write() -> tuple[Obj, int]:
        options = wish.options("Apply")
        try:
            return backend.registry.update(row, namespace, name, applied, options, subresource=part), 200
        except NotFound:
            if part:
                raise
        new_object = applied(None)
        uid = meta(new_object).get("uid")
        if uid:
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise Conflict(row.group_resource, name, why)
        return backend.registry.create(row, namespace, new_object, options), 201

    obj, status = await settled(write)
    await show_view(backend, request, row, view, obj, status)


def _check_keys(data: bytes, wish: WriteWish) -> None:
    """Refuse keys that stand twice in a mapping, or warn of them, as the request wants it."""
    directive = Directive(wish.validation)
    if directive is Directive.IGNORE or (data[:1] == b"{" and not repeated_fields(data)):
        return
    lines = [f"  line {line}: key {quoted(key)} already set in map" for line, key in bodies.repeated_yaml_keys(data)]
    if not lines:
        return
    problem = "error converting YAML to JSON: yaml: unmarshal errors:\n" + "\n".join(lines)
    if directive is Directive.STRICT:
        raise BadRequest(f"error strict decoding YAML: {problem}")
    wish.warnings.append(problem)


def _config(backend: Backend, row: Resource, part: str, data: bytes) -> Obj:
    """What is applied. JSON is YAML, and most clients send it: the quicker reader goes first."""
    config = _read(data)
    if not isinstance(config, dict):
        raise BadRequest("error decoding YAML: the configuration is not an object")
    if not isinstance(config.setdefault("metadata", {}), dict):
        raise BadRequest("error decoding YAML: metadata is not an object")
    if part != "scale":
        return config
    view = view_of(backend, row, part)
    check_kind(config, view)
    return _of_parent(backend, row, typed(config, view, Directive.IGNORE)[0])


def _read(data: bytes) -> Any:
    if data[:1] == b"{":
        try:
            return bodies.decode_json(data)
        except BadRequest:
            # Flow style that is YAML only, such as a comma behind the last entry.
            return bodies.decode_yaml(data)
    return bodies.decode_yaml(data)


def _of_parent(backend: Backend, row: Resource, scale: Obj) -> Obj:
    """A Scale as the workload it is about: the one field it speaks of."""
    wish: Obj = {"apiVersion": row.api_version, "kind": row.kind, "metadata": dict(meta(scale))}
    return scaling.with_replicas(wish, scale, scaling.paths_of(backend, row))
