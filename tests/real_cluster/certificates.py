"""The cluster's own certificate authority and the kubeconfigs made with it."""

from __future__ import annotations

import base64
import datetime
import ipaddress
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.real_cluster.layout import API_URL


class Authority:
    """Signs certificates into a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._name = _subject("kubernetes", "")
        self._certificate = self._sign(self._key.public_key(), self._name, (), authority=True)
        self._write("ca", self._key, self._certificate)

    def issue(self, file: str, user: str, group: str = "", hosts: tuple[str, ...] = ()) -> None:
        """Write `file`.crt and `file`.key for this user, valid as server for these hosts."""
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._write(file, key, self._sign(key.public_key(), _subject(user, group), hosts))

    def kubeconfig(self, file: str, user: str, group: str = "", hosts: tuple[str, ...] = ()) -> Path:
        """Write a kubeconfig with embedded credentials for this user; its path."""
        self.issue(file, user, group, hosts)
        path = self.folder / f"{file}.kubeconfig"
        cluster = {"server": API_URL, "certificate-authority-data": self._encoded("ca.crt")}
        person = {
            "client-certificate-data": self._encoded(f"{file}.crt"),
            "client-key-data": self._encoded(f"{file}.key"),
        }
        path.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "real", "cluster": cluster}],
                    "users": [{"name": user, "user": person}],
                    "contexts": [{"name": "real", "context": {"cluster": "real", "user": user}}],
                    "current-context": "real",
                }
            )
        )
        path.chmod(0o600)
        return path

    def _encoded(self, name: str) -> str:
        return base64.b64encode((self.folder / name).read_bytes()).decode()

    def _write(self, file: str, key: rsa.RSAPrivateKey, certificate: x509.Certificate) -> None:
        (self.folder / f"{file}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        path = self.folder / f"{file}.key"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        path.chmod(0o600)

    def _sign(
        self, key: rsa.RSAPublicKey, subject: x509.Name, hosts: tuple[str, ...], *, authority: bool = False
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + datetime.timedelta(days=30))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if not authority:
            usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
            builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if hosts:
            names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _subject(user: str, group: str) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    if group:
        parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(parts)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
