"""Delegated authentication and authorization, as extension API servers built on Kubernetes' library do it.

The headers of a connection of the front proxy name the user; a bearer token is reviewed by the API server; all
others are anonymous. A SubjectAccessReview decides whether the user may do it.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

import orjson

from srearena.cluster.embedded.machine.networking.sockets import HttpRequest
from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.programs.toolboxes.cluster_api import ApiFailure, ApiPath, ClusterApi
from srearena.cluster.embedded.registry.errors import ApiError, Unauthorized
from srearena.cluster.embedded.registry.identity import SUPERUSERS, User

_CONFIGURATION = ApiPath("", "v1", "configmaps", "kube-system", "extension-apiserver-authentication")
_ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
_EXTRA = "x-remote-extra-"


@dataclass(frozen=True, slots=True)
class Access:
    """What a request wants to do."""

    verb: str
    path: str
    group: str = ""
    version: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""


class Delegation:
    def __init__(self, api: ClusterApi) -> None:
        self._api = api
        self._authority = b""
        self._names: list[str] = []

    async def load(self) -> None:
        """Read how to recognize the front proxy; ApiFailure where the program may not read it."""
        data = (await self._api.call("GET", _CONFIGURATION)).get("data") or {}
        self._authority = str(data.get("requestheader-client-ca-file", "")).encode()
        try:
            names = orjson.loads(data.get("requestheader-allowed-names") or "[]")
        except orjson.JSONDecodeError:
            names = []
        self._names = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []

    async def user_of(self, request: HttpRequest) -> User:
        client = request.client
        name = request.header("X-Remote-User")
        trusted = client is not None and client.trusted_by(self._authority) and client.subject in (self._names or [""])
        if trusted and name:
            extra = {
                unquote(key[len(_EXTRA) :]): tuple(map(unquote, text.split(",")))
                for key, text in request.headers.items()
                if key.lower().startswith(_EXTRA)
            }
            groups = tuple(unquote(group) for group in request.header("X-Remote-Group").split(",") if group)
            return User(name, groups, request.header("X-Remote-Uid"), extra)
        scheme, _, token = request.header("Authorization").partition(" ")
        return await self._reviewed(token.strip()) if scheme.lower() == "bearer" else _ANONYMOUS

    async def _reviewed(self, token: str) -> User:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = (await self._call("authentication.k8s.io", "tokenreviews", review)).get("status") or {}
        if not status.get("authenticated"):
            raise Unauthorized
        user = status.get("user") or {}
        return User(user.get("username", ""), tuple(user.get("groups") or ()), user.get("uid", ""))

    async def check(self, user: User, access: Access) -> None:
        """Refuse what the user may not do."""
        if SUPERUSERS in user.groups:
            return
        spec: Obj = {"user": user.name, "groups": list(user.groups)}
        if user.extra:
            spec["extra"] = {key: list(values) for key, values in user.extra.items()}
        if access.resource:
            fields = ("verb", "group", "version", "resource", "namespace", "name")
            spec["resourceAttributes"] = {name: text for name in fields if (text := getattr(access, name))}
        else:
            spec["nonResourceAttributes"] = {"path": access.path, "verb": access.verb}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        answer = await self._call("authorization.k8s.io", "subjectaccessreviews", review)
        if not dig(answer, "status", "allowed", default=False):
            raise _forbidden(user, access)

    async def _call(self, group: str, resource: str, review: Obj) -> Obj:
        try:
            return await self._api.call("POST", ApiPath(group, "v1", resource), review)
        except ApiFailure as failure:
            raise ApiError(f"Internal error occurred: {failure.message}", reason="InternalError") from None


def _forbidden(user: User, access: Access) -> ApiError:
    if not access.resource:
        text = f'User "{user.name}" cannot {access.verb} path "{access.path}"'
        return ApiError(f"forbidden: {text}", code=403, reason="Forbidden", details={})
    qualified = f"{access.resource}.{access.group}" if access.group else access.resource
    named = f'{qualified} "{access.name}"' if access.name else qualified
    where = f'in the namespace "{access.namespace}"' if access.namespace else "at the cluster scope"
    what = f'cannot {access.verb} resource "{access.resource}" in API group "{access.group}" {where}'
    details = {"name": access.name, "group": access.group, "kind": access.resource}
    message = f'{named} is forbidden: User "{user.name}" {what}'
    return ApiError(message, code=403, reason="Forbidden", details=details)
