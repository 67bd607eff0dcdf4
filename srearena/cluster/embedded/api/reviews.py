"""Questions about identity and permission, asked as objects that are answered and never stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from srearena.cluster.embedded.api.authorization import Attributes
from srearena.cluster.embedded.api.decoding import object_in
from srearena.cluster.embedded.api.options import write_wish
from srearena.cluster.embedded.api.presenting import show
from srearena.cluster.embedded.api.requests import Request
from srearena.cluster.embedded.api.views import view_of_kind
from srearena.cluster.embedded.objects import Obj, dig, namespace_of
from srearena.cluster.embedded.registry.errors import BadRequest, Invalid
from srearena.cluster.embedded.registry.identity import SUPERUSERS, User
from srearena.cluster.embedded.registry.resources import Resource
from srearena.cluster.embedded.registry.strategies import reviews
from srearena.cluster.embedded.registry.tokens import ISSUER, TokenRefused

if TYPE_CHECKING:
    from srearena.cluster.embedded.api.backend import Backend

Answer = Callable[["Backend", Request, Resource, Obj], Obj]
_EVERYTHING: Final = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)


async def create(backend: Backend, request: Request, row: Resource) -> None:
    """Answer a review."""
    wish = write_wish(request, "CreateOptions")
    review = object_in(await request.body(), request, view_of_kind(row.api_version, row.kind), wish)
    review.setdefault("spec", {})
    namespace = request.info.namespace
    if namespace:
        if namespace_of(review) not in ("", namespace):
            raise BadRequest(f"namespace does not match: {namespace_of(review)} vs {namespace}")
        review["metadata"] = {**(review.get("metadata") or {}), "namespace": namespace}
    strategy = reviews.STRATEGIES.get(row.group_resource)
    problems = strategy.validate(review) if strategy is not None and strategy.validate is not None else []
    if problems:
        # Decoding has emptied the kind that these refusals would name.
        raise Invalid(f".{row.group}", "", problems)
    status = ANSWERS[row.kind](backend, request, row, review)
    metadata = {"creationTimestamp": None, **review.get("metadata", {})}
    await show(request, {**review, "metadata": metadata, "status": status}, 201)


def _self_access(backend: Backend, request: Request, row: Resource, review: Obj) -> Obj:
    return _decision(backend, request.user, review["spec"])


def _access(backend: Backend, request: Request, row: Resource, review: Obj) -> Obj:
    spec = review["spec"]
    groups = spec.get("groups") or []
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    user = User(spec.get("user", ""), tuple(groups), spec.get("uid", ""), extra)
    return _decision(backend, user, spec)


def _local_access(backend: Backend, request: Request, row: Resource, review: Obj) -> Obj:
    return _access(backend, request, row, review)


def _decision(backend: Backend, user: User, spec: Obj) -> Obj:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None:
        keys = ("verb", "group", "resource", "subresource", "name", "namespace")
        wanted = Attributes(*(resource.get(key, "") for key in keys))
    else:
        wanted = Attributes(dig(path, "verb", default=""), path=dig(path, "path", default=""))
    decision = backend.authorizer.decide(user, wanted)
    status: Obj = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return status


def _self_rules(backend: Backend, request: Request, row: Resource, review: Obj) -> Obj:
    namespace = review["spec"].get("namespace")
    if not namespace:
        raise BadRequest("no namespace on request")
    user = request.user
    granted = [dict(rule) for rule in _EVERYTHING] if SUPERUSERS in user.groups else []
    grants = backend.authorizer.grants(user, namespace)
    granted += [rule.wire for rule in grants.rules]
    status: Obj = {
        "resourceRules": [_resource_rule(rule) for rule in granted if rule.get("resources")],
        "nonResourceRules": [
            {"verbs": rule.get("verbs") or [], "nonResourceURLs": rule["nonResourceURLs"]}
            for rule in granted
            if rule.get("nonResourceURLs")
        ],
        "incomplete": bool(grants.errors),
    }
    if grants.errors:
        status["evaluationError"] = ", ".join(grants.errors)
    return status


def _resource_rule(rule: Obj) -> Obj:
    keys = ("verbs", "apiGroups", "resources", "resourceNames")
    return {key: rule[key] for key in keys if rule.get(key)}


def _token(backend: Backend, request: Request, row: Resource, review: Obj) -> Obj:
    token = review["spec"].get("token")
    if not token:
        raise BadRequest("token is required for TokenReview in authentication")
    audiences = review["spec"].get("audiences") or []
    known = backend.authenticator.static_user(token)
    if known is not None:
        return {"authenticated": True, "user": known.info(), "audiences": audiences or [ISSUER]}
    try:
        user, agreed = backend.issuer.authenticate(token, audiences)
    except TokenRefused as refused:
        return {"user": {}, "error": str(refused)}
    return {"authenticated": True, "user": user.info(), "audiences": agreed}


def _self(backend: Backend, request: Request, row: Resource, review: Obj) -> Obj:
    return {"userInfo": request.user.info()}


ANSWERS: Final[Mapping[str, Answer]] = {
    "SelfSubjectAccessReview": _self_access,
    "SubjectAccessReview": _access,
    "LocalSubjectAccessReview": _local_access,
    "SelfSubjectRulesReview": _self_rules,
    "TokenReview": _token,
    "SelfSubjectReview": _self,
}
