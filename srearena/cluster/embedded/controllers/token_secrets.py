"""Long-lived tokens: secrets of type kubernetes.io/service-account-token are filled, and go with their account."""

from __future__ import annotations

from base64 import b64decode, b64encode

from srearena.cluster.embedded.controllers.controller import Controller, split_key
from srearena.cluster.embedded.objects import Obj, annotations_of, is_terminating, key_of, name_of, namespace_of, uid_of
from srearena.cluster.embedded.registry.tokens import TokenIssuer
from srearena.cluster.embedded.world import World

TOKEN_TYPE = "kubernetes.io/service-account-token"
ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"


class TokenSecretController(Controller):
    name = "tokens-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._issuer = TokenIssuer(world.clock, world.store, world.randomness)

    def start(self) -> None:
        self.store.add_index("secrets", "account", _account_key)
        self.watch("secrets", lambda secret: (key_of(secret),) if _account_key(secret) else ())
        self.watch("serviceaccounts", self._secrets_of)

    def renew(self) -> None:
        """Sign the tokens of all secrets with the key of the world's present secret."""
        self._issuer.renew()
        for secret in self.store.objects("secrets"):
            token = (secret.get("data") or {}).get("token")
            if not _account_key(secret) or not token:
                continue
            renewed = _encoded(self._issuer.signed_again(b64decode(token).decode()))

            def sign(current: Obj, renewed: str = renewed) -> None:
                current["data"]["token"] = renewed

            self.client.modify("secrets", namespace_of(secret), name_of(secret), sign)

    def _secrets_of(self, account: Obj) -> list[str]:
        return [key_of(secret) for secret in self.store.indexed("secrets", "account", key_of(account))]

    def reconcile(self, key: str) -> None:
        secret = self.client.get("secrets", *split_key(key))
        if secret is None or is_terminating(secret) or not _account_key(secret):
            return
        notes = annotations_of(secret)
        account = self.client.get("serviceaccounts", namespace_of(secret), notes[ACCOUNT_NAME])
        if account is None or notes.get(ACCOUNT_UID) not in (None, "", uid_of(account)):
            self.client.delete("secrets", secret)
            return
        data = secret.get("data") or {}
        wanted = {
            "ca.crt": _encoded(self.world.root_certificate),
            "namespace": _encoded(namespace_of(secret)),
            "token": data.get("token") or _encoded(self._issuer.issue_for_secret(account, secret)),
        }
        if notes.get(ACCOUNT_UID) == uid_of(account) and all(data.get(part) == wanted[part] for part in wanted):
            return

        def fill(current: Obj) -> None:
            current["metadata"].setdefault("annotations", {})[ACCOUNT_UID] = uid_of(account)
            current["data"] = {**(current.get("data") or {}), **wanted}

        self.client.modify("secrets", namespace_of(secret), name_of(secret), fill)


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def _account_key(secret: Obj) -> tuple[str, ...]:
    account = annotations_of(secret).get(ACCOUNT_NAME)
    return (f"{namespace_of(secret)}/{account}",) if secret.get("type") == TOKEN_TYPE and account else ()
