"""A new certificate for the databases with its authority, stored only in a Secret."""

from __future__ import annotations

import base64
import datetime
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_FROM = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
_UNTIL = datetime.datetime(2044, 1, 1, tzinfo=datetime.UTC)
"""A fixed period around every virtual time, so that the certificate never expires by itself."""


def tls_secret(name: str, namespace: str) -> dict[str, Any]:
    """A Secret with `tls.pem` (certificate and key) and `ca.crt`, as mongod reads them."""
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{namespace} CA")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"*.{namespace}.svc.cluster.local")])
    authority = _certificate(issuer, issuer, authority_key, authority_key, is_authority=True)
    certificate = _certificate(subject, issuer, key, authority_key, is_authority=False)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    files = {"tls.pem": _pem(certificate) + private, "ca.crt": _pem(authority)}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "Opaque",
        "data": {file: base64.b64encode(content).decode() for file, content in files.items()},
    }


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    *,
    is_authority: bool,
) -> x509.Certificate:
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_FROM)
        .not_valid_after(_UNTIL)
        .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
    )
    if not is_authority:
        names = [x509.DNSName(str(attribute.value)) for attribute in subject]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(signer, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
