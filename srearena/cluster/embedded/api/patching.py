"""patch: the four ways to say what is to change, by their media types.

A patch works on what the client would read (see `views`) and the result goes the way of an update, so everything
that holds for updates holds here too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from srearena.cluster.embedded.api import applying, bodies, decoding, escalation
from srearena.cluster.embedded.api.options import write_wish
from srearena.cluster.embedded.api.requests import Request
from srearena.cluster.embedded.api.views import view_of
from srearena.cluster.embedded.api.waiting import settled
from srearena.cluster.embedded.api.writing import namespace_in, show_view
from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj, meta
from srearena.cluster.embedded.registry.errors import BadRequest, FieldError, Invalid, UnsupportedMediaType
from srearena.cluster.embedded.registry.json_reader import repeated_fields
from srearena.cluster.embedded.registry.patch.json_patch import apply_json_patch, check_operations
from srearena.cluster.embedded.registry.patch.merge_patch import apply_merge_patch
from srearena.cluster.embedded.registry.patch.strategic import apply_strategic_patch
from srearena.cluster.embedded.registry.resources import Resource

if TYPE_CHECKING:
    from srearena.cluster.embedded.api.backend import Backend

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
_FUNCTIONS: Final[Mapping[str, Callable[..., Obj]]] = {
    JSON_PATCH: apply_json_patch,
    MERGE_PATCH: apply_merge_patch,
    STRATEGIC_PATCH: apply_strategic_patch,
}


async def patch(backend: Backend, request: Request, row: Resource) -> None:
    wish = write_wish(request, "PatchOptions")
    kind = bodies.media_type(request.header("content-type"))
    accepted = (JSON_PATCH, MERGE_PATCH, *(() if row.custom else (STRATEGIC_PATCH,)), APPLY_PATCH)
    if kind not in accepted:
        raise UnsupportedMediaType(accepted)
    if kind == APPLY_PATCH:
        await applying.apply(backend, request, row, wish)
        return
    if request.query.has("force"):
        problem = FieldError.forbidden("force", "may not be specified for non-apply patch")
        raise Invalid("PatchOptions.meta.k8s.io", "", [problem])
    data = await request.body()
    change = bodies.decode_json(data, typed=False)
    if kind == JSON_PATCH:
        strict = check_operations(change)
    else:
        strict = [f"duplicate field {quoted(path)}" for path in repeated_fields(data)]
    namespace, name, part = namespace_in(request, row), request.info.name, request.info.subresource
    view = view_of(backend, row, part)

    def write() -> Obj:
        def changed(current: Obj) -> Obj:
            shown = view.show(current)
            result = _FUNCTIONS[kind](shown, change, view.schema)
            wanted = decoding.patched(
                result, view, wish, patch=change, strategic=kind == STRATEGIC_PATCH, strict=strict
            )
            if meta(wanted).get("name") != name:
                found = meta(wanted).get("name", "")
                raise BadRequest(f"the name of the object ({found}) does not match the name on the URL ({name})")
            escalation.check(backend.authorizer, row, request.user, namespace, wanted, current)
            return view.take(current, wanted)

        return backend.registry.update(row, namespace, name, changed, wish.options(), subresource=part)

    await show_view(backend, request, row, view, await settled(write))
