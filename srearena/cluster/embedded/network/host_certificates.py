"""The certificates an ingress controller presents: for each host the one of its Ingress's Secret, else the default.

Where the Secret is missing, or has no certificate with key for the host, the controller presents its self-signed
default certificate. An expired certificate is presented all the same, as by the real controller.
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
DEFAULT_CERTIFICATE = TlsIdentity(
    ("ingress.local",),
    "O=Acme Co; CN=Kubernetes Ingress Controller Fake Certificate",
    subject="O=Acme Co; CN=Kubernetes Ingress Controller Fake Certificate",
    self_signed=True,
)
_EXPIRY_WARNING = 240 * 3600.0


def certificate_of(table: IngressTable, store: Store, host: str) -> TlsIdentity:
    """The certificate presented to a client that requests this host."""
    secret = table.route(host, "/", tls=True).tls_secret
    try:
        return _secret_certificate(store, secret, host) if secret else DEFAULT_CERTIFICATE
    except BadCertificate:
        return DEFAULT_CERTIFICATE


def warnings(table: IngressTable, store: Store, now: float) -> Iterator[str]:
    """The warnings the controller logs when it has read its Ingresses."""
    for host, (secret, _) in sorted(table.certificates.items()):
        try:
            identity = _secret_certificate(store, secret, host)
        except BadCertificate as problem:
            yield f"{problem}. Using default certificate"
            continue
        until = datetime.fromtimestamp(identity.expires_at, UTC).strftime("%Y-%m-%d %H:%M:%S +0000 UTC")
        if identity.expires_at < now:
            yield f'SSL certificate for server "{host}" expired ({until})'
        elif identity.expires_at < now + _EXPIRY_WARNING:
            yield f'SSL certificate for server "{host}" is about to expire ({until})'


def _secret_certificate(store: Store, secret: str, host: str) -> TlsIdentity:
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
