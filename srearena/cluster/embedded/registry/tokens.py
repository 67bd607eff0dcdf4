"""Tokens of service accounts: signed by the cluster, bound to objects, and worthless once those are gone.

A token is a JWT (RS256). Its signature is deterministic, and the key is derived from the cluster's secret, so every
`TokenIssuer` of a world issues and accepts the same tokens: the API on the wire, the kubelet that mounts a token
into a pod, and the controller that fills token secrets need not know each other.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import Any, Final, cast

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.durations import parse_time
from srearena.cluster.embedded.keys import derived_rsa_key
from srearena.cluster.embedded.objects import Obj, dig, meta, name_of, namespace_of, uid_of
from srearena.cluster.embedded.randomness import Randomness
from srearena.cluster.embedded.registry.identity import User, service_account
from srearena.cluster.embedded.store import Store

ALGORITHM: Final = "RS256"
ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
LEGACY_ISSUER: Final = "kubernetes/serviceaccount"
_EXTRA: Final = "authentication.kubernetes.io/"
CREDENTIAL: Final = f"{_EXTRA}credential-id"
"""What in a user's extra attributes names the credential that was used."""
_LEGACY_CLAIM: Final = "kubernetes.io/serviceaccount/"
# What a token may be bound to: the claim it is kept under, and where such objects are stored.
_BOUND: Final = {"Pod": ("pod", "pods"), "Secret": ("secret", "secrets"), "Node": ("node", "nodes")}


class TokenRefused(Exception):
    """The token is invalid; the message says why."""


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class _Signer:
    """A key, with what follows from it."""

    def __init__(self, key: rsa.RSAPrivateKey) -> None:
        self._key = key
        self.public = key.public_key()
        encoded = self.public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self.key_id = _encoded(hashlib.sha256(encoded).digest())
        self._header = _encoded(orjson.dumps({"alg": ALGORITHM, "kid": self.key_id}))

    def token(self, claims: Obj) -> str:
        text = f"{self._header}.{_encoded(orjson.dumps(claims))}"
        return f"{text}.{_encoded(self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def claims(self, token: str) -> Obj:
        """What the token states; TokenRefused where this key did not sign it."""
        text, _, signature = token.rpartition(".")
        try:
            if not text.startswith(f"{self._header}."):
                raise TokenRefused("invalid bearer token")
            self.public.verify(_decoded(signature), text.encode(), padding.PKCS1v15(), hashes.SHA256())
        except (InvalidSignature, ValueError):
            raise TokenRefused("invalid bearer token") from None
        return cast(Obj, orjson.loads(_decoded(text.partition(".")[2])))


class TokenIssuer:
    def __init__(self, clock: Clock, store: Store, randomness: Randomness) -> None:
        self._clock = clock
        self._store = store
        self._randomness = randomness
        self.renew()

    def renew(self) -> None:
        """Use the key of the world's present secret: tokens that were signed with another one are refused."""
        self._known_signer: _Signer | None = None
        self._verified: dict[str, Obj] = {}

    @property
    def _signer(self) -> _Signer:
        """Made when a token is first signed or checked: many clusters never do either."""
        if self._known_signer is None:
            self._known_signer = _Signer(derived_rsa_key(self._randomness.secret("service-accounts"), "signing"))
        return self._known_signer

    def public_key(self) -> Obj:
        """The key that tokens are checked with, as a JSON Web Key."""
        numbers = self._signer.public.public_numbers()
        n, e = (_encoded(number.to_bytes((number.bit_length() + 7) // 8)) for number in (numbers.n, numbers.e))
        return {"use": "sig", "kty": "RSA", "kid": self._signer.key_id, "alg": ALGORITHM, "n": n, "e": e}

    # Issuing

    def issue(
        self,
        account: Obj,
        *,
        audiences: Sequence[str] = (),
        seconds: int = 3600,
        bound_to: Obj | None = None,
        warn_after: int | None = None,
    ) -> str:
        """A token for a service account; `bound_to` is the pod, secret or node whose end ends the token too."""
        now = int(self._clock.now)
        private: Obj = {
            "namespace": namespace_of(account),
            "serviceaccount": {"name": name_of(account), "uid": uid_of(account)},
        }
        if bound_to is not None:
            claim, _ = _BOUND[bound_to["kind"]]
            private[claim] = {"name": name_of(bound_to), "uid": uid_of(bound_to)}
            node = (
                self._store.get("nodes", "", dig(bound_to, "spec", "nodeName", default="")) if claim == "pod" else None
            )
            if node is not None:
                private["node"] = {"name": name_of(node), "uid": uid_of(node)}
        if warn_after is not None:
            private["warnafter"] = now + warn_after
        return self._signed(
            {
                "aud": list(audiences) or [ISSUER],
                "exp": now + seconds,
                "iat": now,
                "iss": ISSUER,
                "jti": self._randomness.uid(),
                "kubernetes.io": dict(sorted(private.items())),
                "nbf": now,
                "sub": f"system:serviceaccount:{namespace_of(account)}:{name_of(account)}",
            }
        )

    def issue_for_secret(self, account: Obj, secret: Obj) -> str:
        """The token without an end that a secret of type kubernetes.io/service-account-token holds."""
        return self._signed(
            {
                "iss": LEGACY_ISSUER,
                f"{_LEGACY_CLAIM}namespace": namespace_of(account),
                f"{_LEGACY_CLAIM}secret.name": name_of(secret),
                f"{_LEGACY_CLAIM}service-account.name": name_of(account),
                f"{_LEGACY_CLAIM}service-account.uid": uid_of(account),
                "sub": f"system:serviceaccount:{namespace_of(account)}:{name_of(account)}",
            }
        )

    def signed_again(self, token: str) -> str:
        """The same claims under the present key; the token itself where it is none of a service account."""
        parts = token.split(".")
        return self._signed(orjson.loads(_decoded(parts[1]))) if len(parts) == 3 else token

    def _signed(self, claims: Obj) -> str:
        return self._signer.token(claims)

    # Checking

    def authenticate(self, token: str, audiences: Sequence[str] = ()) -> tuple[User, list[str]]:
        """Who the token stands for, and for which of the audiences; TokenRefused if it is not good any more."""
        claims = self._claims(token)
        if claims.get("iss") == LEGACY_ISSUER:
            return self._legacy_user(claims, token), list(audiences) or [ISSUER]
        if claims.get("iss") != ISSUER:
            raise TokenRefused("invalid bearer token")
        now = self._clock.now
        if now >= claims["exp"]:
            raise TokenRefused("[invalid bearer token, service account token has expired]")
        if now < claims["nbf"] - 1:
            raise TokenRefused("[invalid bearer token, service account token is not valid yet]")
        wanted = list(audiences) or [ISSUER]
        agreed = [audience for audience in wanted if audience in claims["aud"]]
        if not agreed:
            actual, expected = (" ".join(f'"{a}"' for a in names) for names in (claims["aud"], wanted))
            raise TokenRefused(
                f"[invalid bearer token, token audiences [{actual}] is invalid for the target audiences [{expected}]]"
            )
        return self._bound_user(claims), agreed

    def _claims(self, token: str) -> Obj:
        found = self._verified.get(token)
        if found is not None:
            return found
        claims = self._signer.claims(token)
        if len(self._verified) >= 1024:
            self._verified.clear()
        self._verified[token] = claims
        return claims

    def _bound_user(self, claims: Obj) -> User:
        private = claims["kubernetes.io"]
        account = self._account(private["namespace"], private["serviceaccount"])
        extra: dict[str, tuple[str, ...]] = {CREDENTIAL: (f"JTI={claims['jti']}",)}
        for claim, resource in _BOUND.values():
            reference = private.get(claim)
            if reference is None:
                continue
            namespace = "" if claim == "node" else private["namespace"]
            self._check_bound(claim, resource, namespace, reference, required="pod" not in private or claim == "pod")
            if claim != "secret":
                extra[f"{_EXTRA}{claim}-name"] = (reference["name"],)
                extra[f"{_EXTRA}{claim}-uid"] = (reference["uid"],)
        return service_account(private["namespace"], name_of(account), uid_of(account), extra)

    def _account(self, namespace: str, reference: Obj) -> Obj:
        account = self._store.get("serviceaccounts", namespace, reference["name"])
        if account is None:
            raise TokenRefused(f'[invalid bearer token, serviceaccounts "{reference["name"]}" not found]')
        if uid_of(account) != reference["uid"]:
            why = f"service account UID ({uid_of(account)}) does not match claim ({reference['uid']})"
            raise TokenRefused(f"[invalid bearer token, {why}]")
        return account

    def _check_bound(self, claim: str, resource: str, namespace: str, reference: Obj, *, required: bool) -> None:
        """Refuse a token whose bound object is gone; the node of a pod is recorded in the token but not required."""
        if not required:
            return
        found = self._store.get(resource, namespace, reference["name"])
        if found is None or uid_of(found) != reference["uid"] or self._past_deletion(found):
            raise TokenRefused("[invalid bearer token, service account token has been invalidated]")

    def _past_deletion(self, obj: Obj) -> bool:
        deleted = meta(obj).get("deletionTimestamp")
        return deleted is not None and self._clock.now > parse_time(deleted) + 60

    def _legacy_user(self, claims: Obj, token: str) -> User:
        def claim(name: str) -> Any:
            return claims.get(f"{_LEGACY_CLAIM}{name}", "")

        namespace = claim("namespace")
        reference = {"name": claim("service-account.name"), "uid": claim("service-account.uid")}
        secret = self._store.get("secrets", namespace, claim("secret.name"))
        stored_token = base64.b64decode(dig(secret, "data", "token", default="")) if secret else b""
        if stored_token != token.encode():
            raise TokenRefused("[invalid bearer token, token has been invalidated]")
        account = self._account(namespace, reference)
        return service_account(namespace, name_of(account), uid_of(account))
