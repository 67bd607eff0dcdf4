"""Signs approved certificate signing requests for the signers of Kubernetes, and removes old requests."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Protocol

from cryptography import x509
from cryptography.x509.oid import NameOID

from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.durations import parse_time
from srearena.cluster.embedded.objects import Obj, condition_is, dig, uid_of
from srearena.cluster.embedded.registry.admission.certificates import (
    API_CLIENT,
    REQUESTS,
    organizations,
    parsed_request,
)

KUBELET_SERVING = "kubernetes.io/kubelet-serving"
KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
_NODES = "system:nodes"
_NODE_PREFIX = "system:node:"
_LONGEST, _SHORTEST = 365 * 86_400, 600
_DECIDED_SECONDS, _PENDING_SECONDS = 3600.0, 86_400.0


class Authority(Protocol):
    def sign(
        self, request: x509.CertificateSigningRequest, usages: Sequence[str], seconds: int, now: float, purpose: str
    ) -> bytes:
        """A certificate (PEM) for a request; `purpose` determines its serial number."""
        ...


class _Invalid(Exception):
    """The signer refuses the request; the message is its reason."""


class CertificateSigningController(Controller):
    name = "certificate-controller"

    authority: Authority | None = None
    """The cluster's authority; without it nothing is signed."""

    def start(self) -> None:
        self.watch(REQUESTS)

    def reconcile(self, key: str) -> None:
        found = self.client.get(REQUESTS, "", key.rpartition("/")[2])
        if found is None or self._removed(key, found):
            return
        status = found.get("status") or {}
        approved = condition_is(found, "Approved") and not condition_is(found, "Failed")
        if not approved or status.get("certificate") or self.authority is None:
            return
        spec = found["spec"]
        try:
            request = parsed_request(found)
        except ValueError:
            return
        try:
            if not _recognized(spec["signerName"], request, spec.get("usages") or []):
                return
        except _Invalid as problem:
            now = self.clock.timestamp()
            failed = {"type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": str(problem)}
            moments = {"lastUpdateTime": now, "lastTransitionTime": now}
            conditions = [*(status.get("conditions") or ()), {**failed, **moments}]
            self.client.set_status(REQUESTS, found, {**status, "conditions": conditions})
            return
        seconds = min(_LONGEST, max(_SHORTEST, spec.get("expirationSeconds") or _LONGEST))
        pem = self.authority.sign(request, spec["usages"], seconds, self.clock.now, uid_of(found))
        self.client.set_status(REQUESTS, found, {**status, "certificate": b64encode(pem).decode()})

    def _removed(self, key: str, found: Obj) -> bool:
        """Delete a request that is old: an hour after it was decided, a day after it was made."""
        conditions = dig(found, "status", "conditions", default=[])
        moments = [parse_time(one["lastUpdateTime"]) for one in conditions if one.get("lastUpdateTime")]
        if moments:
            due = max(moments) + _DECIDED_SECONDS
        else:
            due = parse_time(found["metadata"]["creationTimestamp"]) + _PENDING_SECONDS
        if self.clock.now < due:
            self.enqueue(key, due - self.clock.now)
            return False
        self.client.delete(REQUESTS, found)
        return True


def _recognized(signer: str, request: x509.CertificateSigningRequest, usages: list[str]) -> bool:
    """Whether the signer is one of ours; _Invalid where it refuses the request."""
    if signer == API_CLIENT:
        for usage in usages:
            if usage not in ("digital signature", "key encipherment", "client auth"):
                raise _Invalid(f"invalid usage for client certificate: {usage}")
        if "client auth" not in usages:
            raise _Invalid("missing required usage for client certificate: client auth")
    elif signer == KUBELET_SERVING:
        _check_node(request, usages, "server auth")
    elif signer == KUBELET_CLIENT:
        _check_node(request, usages, "client auth")
    return signer in (API_CLIENT, KUBELET_SERVING, KUBELET_CLIENT)


def _check_node(request: x509.CertificateSigningRequest, usages: list[str], purpose: str) -> None:
    if organizations(request) != [_NODES]:
        raise _Invalid("subject organization is not system:nodes")
    alternatives = _alternative_names(request)
    if purpose == "server auth":
        if not alternatives.keys() & {x509.DNSName, x509.IPAddress}:
            raise _Invalid("DNS or IP subjectAltName is required")
        forbidden = {x509.RFC822Name: "Email", x509.UniformResourceIdentifier: "URI"}
    else:
        forbidden = _NAMES
    for kind, name in forbidden.items():
        if kind in alternatives:
            raise _Invalid(f"{name} subjectAltNames are not allowed")
    required = ["digital signature", "key encipherment", purpose]
    if set(usages) not in ({*required}, {"digital signature", purpose}):
        raise _Invalid(f"usages did not match [{' '.join(sorted(required))}]")
    names = [str(one.value) for one in request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if not names or not names[0].startswith(_NODE_PREFIX):
        raise _Invalid("subject common name does not begin with system:node:")


_NAMES: dict[type[x509.GeneralName], str] = {
    x509.DNSName: "DNS",
    x509.RFC822Name: "Email",
    x509.IPAddress: "IP",
    x509.UniformResourceIdentifier: "URI",
}


def _alternative_names(request: x509.CertificateSigningRequest) -> dict[type[x509.GeneralName], bool]:
    """The kinds of alternative names in a request."""
    try:
        found = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return {}
    return {type(name): True for name in found}
