"""The certificates an ingress controller shows: of each host that an Ingress gives a Secret, else its own.

A Secret that is not there, or holds no certificate for the host with its key, leaves the host with the controller's
own certificate, which is made out to nobody's name. One that is out of date is shown all the same, as in life.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from datetime import UTC, datetime

from srearena.cluster.embedded.machine.networking.certificates import BadCertificate, TlsIdentity, identity_of
from srearena.cluster.embedded.network.ingress import IngressTable
from srearena.cluster.embedded.store import Store

SECRETS = "secrets"
OWN = TlsIdentity(
    ("ingress.local",),
    "O=Acme Co; CN=Kubernetes Ingress Controller Fake Certificate",
    subject="O=Acme Co; CN=Kubernetes Ingress Controller Fake Certificate",
    self_signed=True,
)
_SOON = 240 * 3600.0


def shown(table: IngressTable, store: Store, host: str) -> TlsIdentity:
    """Who the controller is for a client that wants this host."""
    secret = table.route(host, "/", tls=True).tls_secret
    try:
        return _chosen(store, secret, host) if secret else OWN
    except BadCertificate:
        return OWN


def warnings(table: IngressTable, store: Store, now: float) -> Iterator[str]:
    """What the controller complains about when it has read its Ingresses."""
    for host, (secret, _) in sorted(table.certificates.items()):
        try:
            identity = _chosen(store, secret, host)
        except BadCertificate as problem:
            yield f"{problem}. Using default certificate"
            continue
        until = datetime.fromtimestamp(identity.expires_at, UTC).strftime("%Y-%m-%d %H:%M:%S +0000 UTC")
        if identity.expires_at < now:
            yield f'SSL certificate for server "{host}" expired ({until})'
        elif identity.expires_at < now + _SOON:
            yield f'SSL certificate for server "{host}" is about to expire ({until})'


def _chosen(store: Store, secret: str, host: str) -> TlsIdentity:
    try:
        identity = _identity(store, secret)
    except BadCertificate as problem:
        raise BadCertificate(f'Error getting SSL certificate "{secret}": {problem}') from problem
    if not identity.covers(host) and host not in identity.names:
        why = f'does not contain a Common Name or Subject Alternative Name for server "{host}"'
        raise BadCertificate(f'SSL certificate "{secret}" {why}')
    return identity


def _identity(store: Store, key: str) -> TlsIdentity:
    namespace, _, name = key.partition("/")
    secret = store.get(SECRETS, namespace, name)
    if secret is None:
        raise BadCertificate(f"local SSL certificate {key} was not found")
    data = secret.get("data") or {}
    try:
        chain, private = (base64.b64decode(data.get(part) or "", validate=True) for part in ("tls.crt", "tls.key"))
    except binascii.Error:
        chain = private = b""
    return identity_of(chain, private)
