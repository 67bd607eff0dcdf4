"""Plug-ins for certificate signing requests: who may approve and sign, and which groups are never signed."""

from __future__ import annotations

import base64

from cryptography import x509
from cryptography.x509.oid import NameOID

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.registry.admission.chain import Attributes, Plugin
from srearena.cluster.embedded.registry.admission.conditions import Conditions
from srearena.cluster.embedded.registry.identity import SUPERUSERS

REQUESTS = "certificatesigningrequests.certificates.k8s.io"
API_CLIENT = "kubernetes.io/kube-apiserver-client"


class CertificateApproval(Plugin):
    """Approving and denying needs the right to approve for the signer."""

    name = "CertificateApproval"

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions

    def validate(self, attributes: Attributes) -> None:
        if attributes.is_for(REQUESTS, subresource="approval"):
            _require(self._conditions, attributes, "approve")


class CertificateSigning(Plugin):
    """Writing a certificate or a condition needs the right to sign for the signer."""

    name = "CertificateSigning"

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions

    def validate(self, attributes: Attributes) -> None:
        if not attributes.is_for(REQUESTS, "UPDATE", subresource="status"):
            return
        if any(_status(attributes.obj, key) != _status(attributes.old, key) for key in ("certificate", "conditions")):
            _require(self._conditions, attributes, "sign")


class CertificateSubjectRestriction(Plugin):
    """No certificate of the API's clients is for the group of superusers."""

    name = "CertificateSubjectRestriction"

    def validate(self, attributes: Attributes) -> None:
        if not attributes.is_for(REQUESTS, "CREATE") or dig(attributes.obj, "spec", "signerName") != API_CLIENT:
            return
        try:
            request = parsed_request(attributes.obj or {})
        except ValueError as problem:
            raise attributes.refusal(f"failed to parse CSR: {problem}") from None
        if SUPERUSERS in organizations(request):
            raise attributes.refusal(f"use of {API_CLIENT} signer with {SUPERUSERS} group is not allowed")


def parsed_request(obj: Obj) -> x509.CertificateSigningRequest:
    """The PKCS#10 request in an object; ValueError where it is none."""
    return x509.load_pem_x509_csr(base64.b64decode(dig(obj, "spec", "request", default="")))


def organizations(request: x509.CertificateSigningRequest) -> list[str]:
    return [str(one.value) for one in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]


def _status(obj: Obj | None, key: str) -> object:
    return dig(obj or {}, "status", key)


def _require(conditions: Conditions, attributes: Attributes, verb: str) -> None:
    """Refuse users without a right on the signer, by its name or for all of its domain."""
    from srearena.cluster.embedded.cel.kubernetes import Check

    decide = conditions.authorize
    if decide is None:
        return
    signer = str(dig(attributes.old or {}, "spec", "signerName", default=""))
    for name in (signer, f"{signer.partition('/')[0]}/*"):
        check = Check(lambda _: (False, ""), group="certificates.k8s.io", resource="signers", name=name, verb=verb)
        if decide(attributes.user, check)[0]:
            return
    raise attributes.refusal(f"user not permitted to {verb} requests with signerName {quoted(signer)}")
