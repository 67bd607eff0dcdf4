"""Certificates of Ingresses that have expired, or are not for their host."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from datetime import UTC, datetime

from cryptography import x509

from clients.rules import commands
from clients.rules.hypotheses import Hypothesis, Repair, Strength
from clients.rules.runbooks import runbook
from clients.rules.system import Obj, System, name_of, namespace_of, path_of


def _certificate(secret: Obj) -> x509.Certificate | None:
    try:
        return x509.load_pem_x509_certificate(base64.b64decode((secret.get("data") or {}).get("tls.crt") or ""))
    except (ValueError, binascii.Error):
        return None


def _valid(certificate: x509.Certificate, host: str, now: float) -> bool:
    at = datetime.fromtimestamp(now, UTC)
    if not certificate.not_valid_before_utc <= at <= certificate.not_valid_after_utc:
        return False
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return True
    known = names.get_values_for_type(x509.DNSName)
    return host in known or f"*.{host.partition('.')[2]}" in known


@runbook
def expired(system: System) -> Iterator[Hypothesis]:
    """What visitors are shown is out of date; another Secret may have the right one."""
    for ingress in system.own("ingresses"):
        for entry in ingress["spec"].get("tls") or ():
            secret = system.find("secrets", str(entry.get("secretName")), namespace_of(ingress))
            certificate = _certificate(secret) if secret is not None else None
            host = next(iter(entry.get("hosts") or ()), "")
            if secret is None or certificate is None or _valid(certificate, host, system.now):
                continue
            yield Hypothesis(
                path_of(secret),
                f"its certificate is not valid for {host} now (until {certificate.not_valid_after_utc:%Y-%m-%d})",
                Strength.CONFIRMED,
                _replaced(system, secret, host),
                frozenset({name_of(secret), name_of(ingress)}),
            )


def _replaced(system: System, secret: Obj, host: str) -> list[Repair]:
    for other in system.own("secrets"):
        certificate = _certificate(other)
        if other is not secret and certificate is not None and _valid(certificate, host, system.now):
            changes = [(("data", key), str(other["data"][key])) for key in ("tls.crt", "tls.key")]
            return [commands.patch(secret, changes)]
    return []
