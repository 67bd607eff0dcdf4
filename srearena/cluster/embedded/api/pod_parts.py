"""Small subresources that are written once and read back elsewhere: bindings of pods, tokens of service accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from srearena.cluster.embedded.api.decoding import object_in
from srearena.cluster.embedded.api.options import write_wish
from srearena.cluster.embedded.api.presenting import show
from srearena.cluster.embedded.api.requests import Request
from srearena.cluster.embedded.api.views import view_of_kind
from srearena.cluster.embedded.api.writing import success
from srearena.cluster.embedded.durations import format_time
from srearena.cluster.embedded.objects import Obj, dig, name_of, namespace_of, uid_of
from srearena.cluster.embedded.registry.binding import bind
from srearena.cluster.embedded.registry.errors import BadRequest, Conflict, FieldError, Invalid, NotFound
from srearena.cluster.embedded.registry.resources import Resource
from srearena.cluster.embedded.registry.tokens import ISSUER

if TYPE_CHECKING:
    from srearena.cluster.embedded.api.backend import Backend

_BOUND_KINDS: Final = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}
_SHORTEST: Final = 600
_LONGEST: Final = 2**32
_DEFAULT_SECONDS: Final = 3600
_EXTENDED: Final = 3607
"""The lifetime kubelets ask for; such tokens live a year, and warn after this."""
_YEAR: Final = 365 * 24 * 3600


async def create_binding(backend: Backend, request: Request, row: Resource) -> None:
    """`pods/binding`, and the older `bindings` in which the object carries the pod's name."""
    wish = write_wish(request, "CreateOptions")
    binding = object_in(await request.body(), request, view_of_kind("v1", "Binding"), wish)
    name = request.info.name or name_of(binding)
    if name_of(binding) != name:
        raise BadRequest("name in URL does not match name in Binding object")
    node, kind = dig(binding, "target", "name", default=""), dig(binding, "target", "kind", default="Node")
    problems = []
    if kind not in ("", "Node"):
        problems.append(FieldError.not_supported("target.kind", kind, ("Node", "<empty>")))
    if not node:
        problems.append(FieldError.required("target.name"))
    if problems:
        raise Invalid("Binding", name, problems)
    if not wish.dry_run:
        bind(backend.registry, request.info.namespace, name, node, binding)
    await show(request, {**success({}), "code": 201}, 201)


async def create_token(backend: Backend, request: Request, row: Resource) -> None:
    """`serviceaccounts/token`: a TokenRequest, answered."""
    wish = write_wish(request, "CreateOptions")
    view = view_of_kind("authentication.k8s.io/v1", "TokenRequest")
    requested = object_in(await request.body(), request, view, wish)
    namespace, name = request.info.namespace, request.info.name
    account = backend.store.get("serviceaccounts", namespace, name)
    if account is None:
        raise NotFound("serviceaccounts", name)
    if name_of(requested) not in ("", name) or namespace_of(requested) not in ("", namespace):
        raise BadRequest("the name of the TokenRequest does not match the name on the URL")
    spec = requested.get("spec") or {}
    audiences = spec.get("audiences") or []
    seconds = _lifetime(spec.get("expirationSeconds"))
    bound = _bound(backend, namespace, spec.get("boundObjectRef"), account)
    extended = seconds == _EXTENDED and bound is not None
    token = backend.issuer.issue(
        account,
        audiences=audiences,
        seconds=_YEAR if extended else seconds,
        bound_to=bound,
        warn_after=seconds if extended else None,
    )
    now = backend.world.clock.now
    answer = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": format_time(now)},
        "spec": {
            "audiences": audiences or [ISSUER],
            "expirationSeconds": seconds,
            "boundObjectRef": spec.get("boundObjectRef"),
        },
        "status": {"token": token, "expirationTimestamp": format_time(int(now) + seconds)},
    }
    await show(request, answer, 201)


def _lifetime(requested: int | None) -> int:
    if requested is None:
        return _DEFAULT_SECONDS
    why = ""
    if requested < _SHORTEST:
        why = "may not specify a duration less than 10 minutes"
    elif requested > _LONGEST:
        why = "may not specify a duration larger than 2^32 seconds"
    if why:
        problem = FieldError.invalid("spec.expirationSeconds", requested, why)
        raise Invalid("TokenRequest.authentication.k8s.io", "", [problem])
    return requested


def _bound(backend: Backend, namespace: str, reference: Obj | None, account: Obj) -> Obj | None:
    """The object that the token is to die with."""
    if reference is None:
        return None
    kind, name = reference.get("kind", ""), reference.get("name", "")
    resource = _BOUND_KINDS.get(kind)
    if resource is None:
        raise BadRequest(f"cannot bind token to object of type {reference.get('apiVersion', '')}, Kind={kind}")
    found = backend.store.get(resource, "" if kind == "Node" else namespace, name)
    if found is None:
        raise NotFound(resource, name)
    if kind == "Pod":
        used = dig(found, "spec", "serviceAccountName", default="")
        if used != name_of(account):
            raise BadRequest(
                f'cannot bind token for serviceaccount "{name_of(account)}" to pod running with different '
                f"serviceaccount name."
            )
    uid = reference.get("uid")
    if uid and uid != uid_of(found):
        why = (
            f"the UID in the bound object reference ({uid}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise Conflict(resource, name, why)
    return found
