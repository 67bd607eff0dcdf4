"""patch: the four ways to say what is to change, by their media types.

A patch works on what the client would read (see `views`) and the result goes the way of an update, so everything
that holds for updates holds here too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from srearena.cluster.embedded.api import applying, bodies, escalation
from srearena.cluster.embedded.api.options import write_wish
from srearena.cluster.embedded.api.requests import Request
from srearena.cluster.embedded.api.views import View, view_of
from srearena.cluster.embedded.api.writing import check_kind, namespace_in, settled, show_view
from srearena.cluster.embedded.objects import Obj, meta
from srearena.cluster.embedded.registry.errors import BadRequest, FieldError, Invalid, UnsupportedMediaType
from srearena.cluster.embedded.registry.patch.json_patch import apply_json_patch
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
    change = bodies.decode_json(await request.body())
    namespace, name, part = namespace_in(request, row), request.info.name, request.info.subresource
    view = view_of(backend, row, part)

    def write() -> Obj:
        def changed(current: Obj) -> Obj:
            wanted = patched(kind, view, view.show(current), change)
            escalation.check(backend.authorizer, row, request.user, namespace, wanted, current)
            return view.take(current, wanted)

        return backend.registry.update(row, namespace, name, changed, wish.options(), subresource=part)

    await show_view(backend, request, row, view, await settled(write))


def patched(kind: str, view: View, shown: Obj, change: Any) -> Obj:
    """What is shown, with the patch applied; its identity cannot be patched away."""
    name = meta(shown).get("name")
    wanted = _FUNCTIONS[kind](shown, change, view.schema)
    if not isinstance(wanted, dict):
        raise BadRequest("the patched object is not an object")
    check_kind(wanted, view)
    if meta(wanted).get("name") != name:
        raise BadRequest(
            f"the name of the object ({meta(wanted).get('name', '')}) does not match the name on the URL ({name})"
        )
    return wanted
