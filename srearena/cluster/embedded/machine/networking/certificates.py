"""Server identities in TLS handshakes, and their verification by clients.

Handshakes are not simulated byte by byte: a server presents a `TlsIdentity`, and a client verifies it as OpenSSL does,
with its messages and by the cluster's clock. An identity read from a certificate (`identity_of`) is verified by its
real signatures; a synthetic one of a cluster component names its authority instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from cryptography.x509.oid import NameOID


class BadCertificate(Exception):
    """No certificate, or one that does not match its key; the message says which."""


class Flaw(StrEnum):
    """A verification error, in OpenSSL's wording."""

    UNTRUSTED = "unable to get local issuer certificate"
    SELF_SIGNED = "self-signed certificate"
    EARLY = "certificate is not yet valid"
    EXPIRED = "certificate has expired"
    NAME = "hostname mismatch"

    @property
    def number(self) -> int:
        """OpenSSL's own."""
        return _NUMBERS[self]


_NUMBERS = {Flaw.UNTRUSTED: 20, Flaw.SELF_SIGNED: 18, Flaw.EARLY: 9, Flaw.EXPIRED: 10, Flaw.NAME: 62}


@dataclass(frozen=True, slots=True)
class TlsIdentity:
    """The identity of a server in a TLS handshake."""

    names: tuple[str, ...]
    issuer: str
    authority: bytes = b""
    """The certificate of the issuer (PEM), where there is no chain: who trusts exactly this one accepts the server."""
    expires_at: float = float("inf")
    starts_at: float = 0.0
    subject: str = ""
    chain: bytes = b""
    """The certificates themselves (PEM), the server's own first."""
    self_signed: bool = False

    def covers(self, host: str) -> bool:
        """Whether the certificate is valid for that name; a wildcard matches one label."""
        wild = "*." + host.partition(".")[2]
        return any(name.lower() in (host.lower(), wild.lower()) for name in self.names)

    def trusted_by(self, bundle: bytes) -> bool:
        """Whether one of these authorities (PEM) has issued it."""
        if not self.chain:
            return bool(self.authority.strip()) and self.authority.strip() in bundle
        return _stands_behind(_parsed(bundle), _parsed(self.chain))

    def flaw(self, host: str, now: float, bundle: bytes | None) -> Flaw | None:
        """The first verification error of a client that expects `host` and trusts `bundle` (None: all)."""
        if bundle is not None and not self.trusted_by(bundle):
            return Flaw.SELF_SIGNED if self.self_signed else Flaw.UNTRUSTED
        if now < self.starts_at:
            return Flaw.EARLY
        if now > self.expires_at:
            return Flaw.EXPIRED
        return None if self.covers(host) else Flaw.NAME


@lru_cache(maxsize=64)
def identity_of(chain: bytes, key: bytes) -> TlsIdentity:
    """The identity that a certificate chain and its key give (both PEM); BadCertificate where they give none."""
    found = _parsed(chain)
    if not found:
        raise BadCertificate("no valid PEM formatted block found")
    own = found[0]
    try:
        private = load_pem_private_key(key, None)
    except (ValueError, TypeError) as problem:
        raise BadCertificate("no valid PEM formatted private key found") from problem
    shape = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if private.public_key().public_bytes(*shape) != own.public_key().public_bytes(*shape):
        raise BadCertificate("certificate and private key does not have a matching public key")
    return TlsIdentity(
        _names(own),
        own.issuer.rfc4514_string(),
        expires_at=own.not_valid_after_utc.timestamp(),
        starts_at=own.not_valid_before_utc.timestamp(),
        subject=own.subject.rfc4514_string(),
        chain=b"".join(one.public_bytes(Encoding.PEM) for one in found),
        self_signed=_issued(own, own),
    )


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    """The names it is valid for; the common name counts only without alternative names."""
    try:
        named = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return tuple(named.get_values_for_type(x509.DNSName))
    except x509.ExtensionNotFound:
        return tuple(str(one.value) for one in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME))


@lru_cache(maxsize=64)
def _parsed(pem: bytes) -> tuple[x509.Certificate, ...]:
    try:
        return tuple(x509.load_pem_x509_certificates(pem))
    except ValueError:
        return ()


def _stands_behind(authorities: Sequence[x509.Certificate], chain: Sequence[x509.Certificate]) -> bool:
    if not chain:
        return False
    current, rest = chain[0], list(chain[1:])
    while True:
        if any(one == current or _issued(one, current) for one in authorities):
            return True
        above = next((one for one in rest if _issued(one, current)), None)
        if above is None:
            return False
        rest.remove(above)
        current = above


def _issued(issuer: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
