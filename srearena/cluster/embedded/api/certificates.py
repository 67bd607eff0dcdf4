"""The cluster's certificate authority, and the certificates it signs.

Keys and serial numbers are derived from the cluster's secret, never drawn: two clusters made alike have equal
certificates, byte for byte, and one whose secret has entropy of its own cannot be forged by who knows its seed.
Certificates are valid from a day before the moment given, so that a client whose clock is a little off accepts them.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from ssl import CERT_OPTIONAL, PROTOCOL_TLS_SERVER, SSLContext, TLSVersion

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from srearena.cluster.embedded.keys import derived_key
from srearena.cluster.embedded.registry.identity import AUTHENTICATED, User

SERVER_NAMES = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "localhost",
)
SERVER_ADDRESSES = ("10.96.0.1", "127.0.0.1")
LIFETIME = timedelta(days=3650)
_EARLY = timedelta(days=1)


_BACKDATED = timedelta(minutes=5)
_EXTENDED_USAGES = {
    "client auth": ExtendedKeyUsageOID.CLIENT_AUTH,
    "server auth": ExtendedKeyUsageOID.SERVER_AUTH,
}


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate with its key, both as PEM."""

    certificate: bytes
    key: bytes


class CertificateAuthority:
    def __init__(self, secret: bytes, valid_from: float) -> None:
        self._secret = secret
        self._not_before = datetime.fromtimestamp(int(valid_from), UTC) - _EARLY
        self._key = derived_key(secret, "ca")
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
        usage = _key_usage(digital_signature=True, key_encipherment=True, key_cert_sign=True)
        builder = self._builder(name, name, self._key.public_key(), "ca")
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(usage, critical=True)
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("kubernetes")]), critical=False)
        self._certificate = self._signed(builder)
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    def serving_certificate(self) -> Certificate:
        names: list[x509.GeneralName] = [x509.DNSName(name) for name in SERVER_NAMES]
        names += [x509.IPAddress(ip_address(address)) for address in SERVER_ADDRESSES]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
        return self._issue("serving", subject, ExtendedKeyUsageOID.SERVER_AUTH, x509.SubjectAlternativeName(names))

    def client_certificate(self, user: User) -> Certificate:
        """A certificate that authenticates as the user: the common name is the user, organizations are groups."""
        groups = [group for group in user.groups if group != AUTHENTICATED]
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, user.name))
        purpose = "/".join(("client", user.name, *groups))
        return self._issue(purpose, x509.Name(attributes), ExtendedKeyUsageOID.CLIENT_AUTH)

    def sign(
        self, request: x509.CertificateSigningRequest, usages: Sequence[str], seconds: int, now: float, purpose: str
    ) -> bytes:
        """Sign what a request asks for, for some seconds from now on."""
        start = datetime.fromtimestamp(int(now), UTC) - _BACKDATED
        builder = (
            x509.CertificateBuilder()
            .subject_name(request.subject)
            .issuer_name(self._certificate.subject)
            .public_key(request.public_key())
            .serial_number(self._serial(f"request/{purpose}"))
            .not_valid_before(start)
            .not_valid_after(min(start + timedelta(seconds=seconds), self._not_before + LIFETIME))
            .add_extension(_usage_of(usages), critical=True)
        )
        purposes = [_EXTENDED_USAGES[usage] for usage in usages if usage in _EXTENDED_USAGES]
        if purposes:
            builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(authority, critical=False)
        try:
            names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            pass
        else:
            builder = builder.add_extension(names, critical=False)
        return self._signed(builder).public_bytes(serialization.Encoding.PEM)

    def server_context(self) -> SSLContext:
        """TLS for the server: a client may show a certificate, and then it must be one of ours."""
        context = SSLContext(PROTOCOL_TLS_SERVER)
        context.minimum_version = TLSVersion.TLSv1_2
        context.verify_mode = CERT_OPTIONAL
        context.load_verify_locations(cadata=self.pem.decode())
        context.set_alpn_protocols(["http/1.1"])
        serving = self.serving_certificate()
        # The ssl module reads keys from files only; this one exists just as long as that takes.
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "serving.pem")
            path.touch(mode=0o600)
            path.write_bytes(serving.certificate + serving.key)
            context.load_cert_chain(path)
        return context

    def _issue(
        self,
        purpose: str,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None = None,
    ) -> Certificate:
        key = derived_key(self._secret, purpose)
        builder = self._builder(subject, self._certificate.subject, key.public_key(), purpose)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(digital_signature=True, key_encipherment=True), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(authority, critical=False)
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        pem = self._signed(builder).public_bytes(serialization.Encoding.PEM)
        return Certificate(
            pem,
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            ),
        )

    def _builder(
        self, subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, purpose: str
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(public_key)
            .serial_number(self._serial(purpose))
            .not_valid_before(self._not_before)
            .not_valid_after(self._not_before + LIFETIME)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        )

    def _serial(self, purpose: str) -> int:
        return int.from_bytes(hashlib.sha256(self._secret + b"/serial/" + purpose.encode()).digest()[:8]) | 1

    def _signed(self, builder: x509.CertificateBuilder) -> x509.Certificate:
        return builder.sign(self._key, hashes.SHA256(), ecdsa_deterministic=True)


def _usage_of(usages: Sequence[str]) -> x509.KeyUsage:
    return _key_usage(digital_signature="digital signature" in usages, key_encipherment="key encipherment" in usages)


def _key_usage(
    *, digital_signature: bool = False, key_encipherment: bool = False, key_cert_sign: bool = False
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=key_encipherment,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
