"""X.509 certificates for hosts, issued by a private authority.

Keys and serial numbers are derived, not random: the same authority, host and dates give the same certificate, so that
runs are reproducible to the byte. An authority is as secret as the text it is derived from.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

__all__ = ["Authority", "Certificate", "self_signed"]

_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_LIFETIME = timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key, both as PEM."""

    certificate: str
    key: str


class Authority:
    """A certificate authority, valid from `since`; its keys are derived from `secret`."""

    def __init__(self, name: str, secret: str, since: datetime) -> None:
        self._secret = secret
        self._key = _key(f"{secret}/{name}")
        self._name = _common_name(name)
        builder = _builder(self._name, self._name, self._key, f"{secret}/{name}", since, since + _LIFETIME)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.pem = _pem(builder.sign(self._key, hashes.SHA256(), ecdsa_deterministic=True))

    def issue(self, host: str, since: datetime, until: datetime) -> Certificate:
        """Issue a certificate for a host."""
        purpose = f"{self._secret}/{host}/{since:%Y-%m-%d}"
        return _issue(_key(purpose), self._key, host, self._name, purpose, since, until)


def self_signed(host: str, secret: str, since: datetime, until: datetime) -> Certificate:
    """Create a self-signed certificate, as `openssl req -x509` does."""
    key = _key(f"{secret}/{host}")
    return _issue(key, key, host, _common_name(host), f"{secret}/{host}", since, until)


def _issue(
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    host: str,
    issuer: x509.Name,
    purpose: str,
    since: datetime,
    until: datetime,
) -> Certificate:
    builder = _builder(_common_name(host), issuer, key, purpose, since, until)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
    signed = builder.sign(signer, hashes.SHA256(), ecdsa_deterministic=True)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Certificate(_pem(signed), private.decode())


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    purpose: str,
    since: datetime,
    until: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(int.from_bytes(hashlib.sha256(f"{purpose}/serial".encode()).digest()[:8]) | 1)
        .not_valid_before(since)
        .not_valid_after(until)
    )


def _key(purpose: str) -> ec.EllipticCurvePrivateKey:
    digest = hashlib.sha512(purpose.encode()).digest()
    return ec.derive_private_key(int.from_bytes(digest) % (_P256_ORDER - 1) + 1, ec.SECP256R1())


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()
