"""Certificate signing requests: approved, signed by the cluster's authority, and used to authenticate."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from srearena.cluster import Cluster, start_embedded
from srearena.service.errors import ApiRefused
from srearena.service.kubernetes import Kubernetes
from srearena.service.transport import decode

GROUP = "certificates.k8s.io"
API_CLIENT = "kubernetes.io/kube-apiserver-client"
CLIENT_USAGES = ("digital signature", "client auth")
KEY = ec.generate_private_key(ec.SECP256R1())


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with start_embedded(in_process=True, nodes=1, speed=0) as started:
        yield started


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Iterator[Kubernetes]:
    with Kubernetes.of(cluster) as client:
        yield client


def request_of(
    name: str, user: str, *groups: str, signer: str = API_CLIENT, usages: tuple[str, ...] = CLIENT_USAGES, **spec: Any
) -> dict[str, Any]:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, user)])
    pem = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(KEY, hashes.SHA256())
    request = base64.b64encode(pem.public_bytes(serialization.Encoding.PEM)).decode()
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {"request": request, "signerName": signer, "usages": list(usages), **spec},
    }


def approve(api: Kubernetes, name: str, **headers: str) -> None:
    path = f"/apis/{GROUP}/v1/certificatesigningrequests/{name}"
    found = api.raw(path)
    condition = {"type": "Approved", "status": "True", "reason": "ByTest", "message": "approved"}
    found["status"]["conditions"] = [condition]
    content = json.dumps(found).encode()
    reply = api._transport.send(
        "PUT", f"{path}/approval", content=content, headers={"content-type": "application/json", **headers}
    )
    decode(reply)


def test_an_approved_request_becomes_a_login(cluster: Cluster, api: Kubernetes, tmp_path: Path) -> None:
    api.create(request_of("jane", "jane", "developers", expirationSeconds=3600))
    cluster.wait(1)
    assert "certificate" not in api.get("certificatesigningrequests", "jane")["status"]
    approve(api, "jane")
    cluster.wait(1)
    pem = base64.b64decode(api.get("certificatesigningrequests", "jane")["status"]["certificate"])
    signed = x509.load_pem_x509_certificate(pem)
    assert (signed.not_valid_after_utc - signed.not_valid_before_utc).total_seconds() == 3600
    usage = signed.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]

    key = KEY.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "login.pem").write_bytes(pem + key)
    access = yaml.safe_load(cluster.kubeconfig.read_text())["clusters"][0]["cluster"]
    authority = base64.b64decode(access["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    context.load_cert_chain(tmp_path / "login.pem")
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    with httpx.Client(base_url=access["server"], verify=context) as client:
        answer = client.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json=review).json()
    user = answer["status"]["userInfo"]
    assert (user["username"], user["groups"]) == ("jane", ["developers", "system:authenticated"])


def test_signers_check_what_they_sign(cluster: Cluster, api: Kubernetes) -> None:
    serving = "kubernetes.io/kubelet-serving"
    server = ("digital signature", "server auth")
    cases = {
        "wrong-usage": (request_of("wrong-usage", "jane", usages=("client auth", "server auth")), "invalid usage"),
        "no-node": (request_of("no-node", "jane", signer=serving, usages=server), "organization is not system:nodes"),
        "no-address": (
            request_of("no-address", "system:node:worker-1", "system:nodes", signer=serving, usages=server),
            "DNS or IP subjectAltName is required",
        ),
    }
    for name, (request, _) in cases.items():
        api.create(request)
        approve(api, name)
    api.create(request_of("other", "jane", signer="example.com/other"))
    approve(api, "other")
    cluster.wait(1)
    for name, (_, problem) in cases.items():
        status = api.get("certificatesigningrequests", name)["status"]
        assert "certificate" not in status
        failed = next(one for one in status["conditions"] if one["type"] == "Failed")
        assert failed["reason"] == "SignerValidationFailure" and problem in failed["message"]
    assert [one["type"] for one in api.get("certificatesigningrequests", "other")["status"]["conditions"]] == [
        "Approved"
    ]


def test_certificates_give_no_more_rights_than_their_approver_may_give(cluster: Cluster, api: Kubernetes) -> None:
    with pytest.raises(ApiRefused, match="signer with system:masters group is not allowed"):
        api.create(request_of("root", "jane", "system:masters"))
    resources = ["certificatesigningrequests", "certificatesigningrequests/approval"]
    rules = [{"apiGroups": [GROUP], "resources": resources, "verbs": ["*"]}]
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "approver"}}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "approver"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "joe"}
    api.create({**rbac, "kind": "ClusterRole", "rules": rules})
    api.create({**rbac, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]})
    api.create(request_of("manager", "system:kube-controller-manager"))
    with pytest.raises(ApiRefused, match="user not permitted to approve requests with signerName"):
        approve(api, "manager", **{"impersonate-user": "joe"})


def test_old_requests_are_removed(cluster: Cluster, api: Kubernetes) -> None:
    for name in ("pending", "decided"):
        api.create(request_of(name, "jane"))
    approve(api, "decided")
    cluster.wait(3610)
    left = {request["metadata"]["name"] for request in api.list("certificatesigningrequests")}
    assert "pending" in left and "decided" not in left
