"""Decode the bytes of a request body to an object of the expected kind, in the form in which the server stores it.

Types are those of the schema. Unknown and repeated fields are dropped, and reported as the client requested. Code that
runs later need not check the shape of the object again.
"""

from __future__ import annotations

from typing import Any

from srearena.cluster.embedded.api import bodies
from srearena.cluster.embedded.api.options import WriteWish
from srearena.cluster.embedded.api.requests import Request
from srearena.cluster.embedded.api.views import View
from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.errors import BadRequest
from srearena.cluster.embedded.registry.field_validation import Directive, decode_object, decode_patched
from srearena.cluster.embedded.registry.json_reader import repeated_fields
from srearena.cluster.embedded.registry.json_values import kind_of
from srearena.cluster.embedded.registry.schema import Schema
from srearena.cluster.embedded.registry.structural import decode_custom


def object_in(data: bytes, request: Request, view: View, wish: WriteWish) -> Obj:
    """The object of a request's body; the warnings about it go to the client."""
    content_type = request.header("content-type")
    obj = bodies.decode_object(data, content_type)
    check_kind(obj, view)
    directive = Directive(wish.validation)
    looked_at = directive is not Directive.IGNORE and bodies.is_json(content_type)
    repeated = repeated_fields(data) if looked_at else []
    decoded, warnings = typed(obj, view, directive, repeated)
    wish.warnings.extend(warnings)
    return decoded


def typed(obj: Obj, view: View, directive: Directive, repeated: list[str] | None = None) -> tuple[Obj, list[str]]:
    version = view.api_version.rpartition("/")[2]
    schema = _schema(view)
    decode = decode_custom if view.custom else decode_object
    return decode(obj, schema, kind=view.kind, version=version, directive=directive, repeated=repeated or ())


def patched(
    obj: Obj, view: View, wish: WriteWish, *, patch: Any, strategic: bool = False, strict: list[str] | None = None
) -> Obj:
    """What a patch made of an object, decoded."""
    check_kind(obj, view)
    directive = Directive(wish.validation)
    if view.custom:
        decoded, warnings = typed(obj, view, directive, None)
    else:
        decoded, warnings = decode_patched(
            obj, _schema(view), patch=patch, strategic=strategic, directive=directive, strict=strict or ()
        )
    wish.warnings.extend(warnings)
    return decoded


def _schema(view: View) -> Schema:
    if view.schema is None:
        raise BadRequest(f"no kind {quoted(view.kind)} is registered for version {quoted(view.api_version)}")
    return view.schema


def check_kind(obj: Obj, view: View) -> None:
    """The object must be of the kind that the path stands for; what it leaves out is what the path says."""
    version, kind = obj.get("apiVersion"), obj.get("kind")
    obj["apiVersion"], obj["kind"] = version or view.api_version, kind or view.kind
    number = view.api_version.rpartition("/")[2]
    if version and version != view.api_version:
        raise BadRequest(
            f"the API version in the data ({version}) does not match the expected API version ({view.api_version})"
        )
    if kind and kind != view.kind:
        raise BadRequest(
            f"{kind} in version {quoted(number)} cannot be handled as a {view.kind}: no kind {quoted(str(kind))} "
            f"is registered for version {quoted(view.api_version)}"
        )
    metadata = obj.setdefault("metadata", {})
    if metadata is None:
        obj["metadata"] = {}
    elif not isinstance(metadata, dict):
        raise BadRequest(
            f"{view.kind} in version {quoted(number)} cannot be handled as a {view.kind}: json: cannot unmarshal "
            f"{kind_of(metadata)} into Go struct field {view.kind}.metadata of type v1.ObjectMeta"
        )
