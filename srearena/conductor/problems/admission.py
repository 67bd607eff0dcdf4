"""Pods that are not let in."""

from __future__ import annotations

from base64 import b64encode
from datetime import datetime, timedelta

from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import problem
from srearena.generators.certificates import Authority, Certificate
from srearena.generators.fault.actors import deployment, service
from srearena.generators.fault.inject_control import ControlFaultInjector
from srearena.service.kubernetes import Obj


@problem(
    "admission_webhook_outage_hotel_reservation",
    app="hotel_reservation",
    service="recommendation",
    victims=("recommendation", "frontend"),
)
class AdmissionWebhookOutage(OriginProblem):
    family = "admission_webhook_outage"
    injector = ControlFaultInjector
    fault = "admission_webhook_outage"
    fault_type = "Dependency Problem"
    root_kind = "ValidatingWebhookConfiguration"
    origin = "pod-policy"
    origin_namespace = ""
    explanation = (
        "The webhook pod-policy must approve every new pod of the namespace, and the Service behind it does not exist: "
        "no pod is admitted, and that of {service}, once deleted, does not come back."
    )
    remedy = """\
kubectl delete validatingwebhookconfiguration pod-policy
kubectl -n {ns} rollout restart deployment/{service}"""


_PLACE, _POLICY, _PORT = "policy-system", "pod-policy", 8443


@problem(
    "admission_webhook_tls_mismatch_hotel_reservation",
    app="hotel_reservation",
    service="recommendation",
    victims=("recommendation", "frontend"),
)
class AdmissionWebhookTlsMismatch(OriginProblem):
    """With a webhook that reviews new pods, and answers under a certificate of the company's authority."""

    beside = (_PLACE,)
    family = "admission_webhook_tls_mismatch"
    difficulty = "hard"
    injector = ControlFaultInjector
    fault = "admission_webhook_tls_mismatch"
    root_kind = "ValidatingWebhookConfiguration"
    origin = _POLICY
    origin_namespace = ""
    explanation = (
        f"The configuration of the webhook {_POLICY} names an authority that did not sign the webhook's certificate: "
        "the API server does not believe it, no pod is admitted, and that of {service}, once deleted, does not return."
    )
    remedy = f"""\
bundle=$(kubectl -n {_PLACE} get configmap {_POLICY}-ca -o jsonpath='{{.data.ca\\.crt}}' | base64 -w 0)
kubectl patch validatingwebhookconfiguration {_POLICY} --type=json \
-p '[{{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": "'"$bundle"'"}}]'
kubectl -n {{ns}} rollout restart deployment/{{service}}"""

    def _authority(self, name: str) -> Authority:
        cluster = self.kubernetes.get("namespaces", "kube-system")["metadata"]["uid"]
        return Authority(name, cluster, self._today - timedelta(days=200))

    @property
    def _today(self) -> datetime:
        return datetime.fromisoformat(self.kubernetes.now()).replace(hour=0, minute=0, second=0, microsecond=0)

    def set_up(self) -> None:
        authority = self._authority("Platform CA")
        host = f"{_POLICY}.{_PLACE}.svc"
        held = authority.issue(host, self._today - timedelta(days=30), self._today + timedelta(days=335))
        for obj in _webhook_server(held, authority.pem):
            self.kubernetes.apply(obj)
        self.cluster.wait(45)
        self.kubernetes.apply(_reviewing(self.namespace, authority.pem))

    def inject_fault(self) -> None:
        self.options = {"webhook": _POLICY, "authority": self._authority("Platform Root CA").pem}
        super().inject_fault()


def _webhook_server(held: Certificate, authority: str) -> list[Obj]:
    """A program that allows every pod it is asked about, its certificate, and the authority for who needs it."""
    args = ["webhook", "--tls-cert-file=/tls/tls.crt", "--tls-private-key-file=/tls/tls.key", f"--port={_PORT}"]
    container = {
        "name": "webhook",
        "image": "registry.k8s.io/e2e-test-images/agnhost:2.53",
        "args": args,
        "ports": [{"containerPort": _PORT}],
        "readinessProbe": {"tcpSocket": {"port": _PORT}, "periodSeconds": 5},
        "volumeMounts": [{"name": "tls", "mountPath": "/tls", "readOnly": True}],
    }
    pod = {"containers": [container], "volumes": [{"name": "tls", "secret": {"secretName": f"{_POLICY}-tls"}}]}
    door = service(_POLICY, _PLACE, _PORT)
    door["spec"]["ports"] = [{"port": 443, "targetPort": _PORT}]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _PLACE}},
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {"name": f"{_POLICY}-tls", "namespace": _PLACE},
            "stringData": {"tls.crt": held.certificate, "tls.key": held.key},
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{_POLICY}-ca", "namespace": _PLACE},
            "data": {"ca.crt": authority},
        },
        deployment(_POLICY, _PLACE, pod),
        door,
    ]


def _reviewing(namespace: str, authority: str) -> Obj:
    """Every new pod of a namespace must be approved."""
    place = {"namespace": _PLACE, "name": _POLICY, "path": "/pods"}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": _POLICY},
        "webhooks": [
            {
                "name": f"{_POLICY}.platform.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "timeoutSeconds": 5,
                "clientConfig": {"service": place, "caBundle": b64encode(authority.encode()).decode()},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            }
        ],
    }
