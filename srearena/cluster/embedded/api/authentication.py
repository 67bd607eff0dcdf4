"""Authentication: client certificates, bearer tokens, and impersonation.

Anonymous requests are refused. A credential that does not hold is never replaced by a weaker one: a bad token is
a 401 even on a connection with a good certificate. Requests in progress end when their service account is deleted.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Final
from urllib.parse import unquote

from srearena.cluster.embedded.api.certificates import CertificateAuthority
from srearena.cluster.embedded.api.connections import Connection
from srearena.cluster.embedded.api.requests import Request
from srearena.cluster.embedded.objects import Obj, uid_of
from srearena.cluster.embedded.registry.errors import BadRequest, Unauthorized
from srearena.cluster.embedded.registry.identity import AUTHENTICATED, User
from srearena.cluster.embedded.registry.tokens import CREDENTIAL, TokenIssuer, TokenRefused
from srearena.cluster.embedded.store import Change, Store

_SOCKET_TOKEN: Final = "base64url.bearer.authorization.k8s.io."


class Credentials:
    """The certificate authority of a cluster and the bearer tokens its operator handed out."""

    def __init__(self, secret: bytes, valid_from: float) -> None:
        self.authority = CertificateAuthority(secret, valid_from)
        self._secret = secret
        self._users: dict[str, User] = {}

    def token(self, user: User) -> str:
        """A bearer token that authenticates as this user for as long as the server runs."""
        identity = "\0".join((user.name, user.uid, *user.groups)).encode()
        token = base64.b32encode(hashlib.sha256(self._secret + b"/token/" + identity).digest()).decode()
        token = token.rstrip("=").lower()
        self._users[token] = _authenticated(user)
        return token

    def user_of(self, token: str) -> User | None:
        return self._users.get(token)

    def kubeconfig(
        self,
        url: str,
        user: User,
        *,
        cluster: str = "kubernetes",
        namespace: str = "",
        with_token: bool = False,
    ) -> Obj:
        """A kubeconfig for the user with everything embedded; a client certificate unless a token is asked for."""
        login: Obj
        if with_token:
            login = {"token": self.token(user)}
        else:
            pair = self.authority.client_certificate(user)
            login = {
                "client-certificate-data": base64.b64encode(pair.certificate).decode(),
                "client-key-data": base64.b64encode(pair.key).decode(),
            }
        context = {"cluster": cluster, "user": user.name, **({"namespace": namespace} if namespace else {})}
        authority = base64.b64encode(self.authority.pem).decode()
        name = f"{user.name}@{cluster}"
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": cluster, "cluster": {"certificate-authority-data": authority, "server": url}}],
            "contexts": [{"name": name, "context": context}],
            "current-context": name,
            "preferences": {},
            "users": [{"name": user.name, "user": login}],
        }


def _authenticated(user: User) -> User:
    if AUTHENTICATED in user.groups:
        return user
    return User(user.name, (*user.groups, AUTHENTICATED), user.uid, user.extra)


class AccountConnections:
    """The open connections of service accounts; the requests in progress of an account end with the account.

    Credentials are checked once per request. A watch, an `exec` or a port-forward would outlive a deleted account.
    """

    def __init__(self, store: Store) -> None:
        self._connections: dict[str, dict[Connection, None]] = {}
        store.subscribe(self._changed, "serviceaccounts")

    def add(self, uid: str, connection: Connection) -> None:
        known = self._connections.setdefault(uid, {})
        if connection in known:
            return
        known[connection] = None

        def remove() -> None:
            known.pop(connection, None)
            if not known and self._connections.get(uid) is known:
                del self._connections[uid]

        connection.on_lost(remove)

    def close(self) -> None:
        """Drop all connections."""
        for connections in list(self._connections.values()):
            for connection in list(connections):
                connection.abort()

    def _changed(self, change: Change) -> None:
        if change.type == "DELETED":
            for connection in list(self._connections.get(uid_of(change.new), ())):
                connection.abort_request()


class Authenticator:
    def __init__(self, credentials: Credentials, issuer: TokenIssuer, store: Store) -> None:
        self._credentials = credentials
        self._issuer = issuer
        self._accounts = AccountConnections(store)
        self._accepts_accounts = True

    def use(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def end_accounts(self) -> None:
        """Refuse service accounts from outside the cluster from now on, and drop their connections."""
        self._accepts_accounts = False
        self._accounts.close()

    def authenticate(self, request: Request) -> User:
        """The user of a request; Unauthorized without valid credentials."""
        header = request.header("authorization")
        scheme, _, token = header.partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else _socket_token(request)
        connection = request.connection
        if token:
            user = self.user_of_token(token)
            if user.uid and connection is not None:
                if not self._accepts_accounts:
                    raise Unauthorized
                self._accounts.add(user.uid, connection)
            return user
        if connection is not None and connection.common_name:
            extra: dict[str, tuple[str, ...]] = {CREDENTIAL: (f"X509SHA256={connection.certificate_digest}",)}
            return User(connection.common_name, (*connection.organizations, AUTHENTICATED), extra=extra)
        raise Unauthorized

    def static_user(self, token: str) -> User | None:
        """The user of a token that the operator handed out."""
        return self._credentials.user_of(token)

    def user_of_token(self, token: str) -> User:
        known = self.static_user(token)
        if known is not None:
            return known
        try:
            return self._issuer.authenticate(token)[0]
        except TokenRefused:
            raise Unauthorized from None


def _socket_token(request: Request) -> str:
    """Browsers cannot set headers on a WebSocket and send their token as a subprotocol."""
    for protocol in request.scope.get("subprotocols") or ():
        if protocol.startswith(_SOCKET_TOKEN):
            text = protocol.removeprefix(_SOCKET_TOKEN)
            try:
                return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
            except ValueError:
                raise Unauthorized from None
    return ""


def impersonated(request: Request) -> User | None:
    """The user that Impersonate-* headers ask to act as; None where there are none of them."""
    name = request.header("impersonate-user")
    groups = request.header_values("impersonate-group")
    uid = request.header("impersonate-uid")
    extra: dict[str, tuple[str, ...]] = {}
    for key in request.headers:
        if key.startswith("impersonate-extra-"):
            extra[unquote(key.removeprefix("impersonate-extra-"))] = tuple(request.header_values(key))
    if not name:
        requested = [*(f"Group {group}" for group in groups), *([f"UID {uid}"] if uid else []), *extra]
        if requested:
            raise BadRequest(f"requested [{' '.join(requested)}] without impersonating a user")
        return None
    if name.startswith("system:serviceaccount:") and not groups:
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{name.split(':')[2]}"]
    if name != "system:anonymous" and AUTHENTICATED not in groups:
        groups = [*groups, AUTHENTICATED]
    return User(name, tuple(groups), uid, extra)
