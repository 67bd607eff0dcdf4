"""Admission faults: webhooks that keep pods from being created."""

from __future__ import annotations

from abc import abstractmethod
from base64 import b64encode
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar

from srearena.conductor.oracles.checks import Check
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import problem
from srearena.conductor.problems.targets import components, itself_and_callers
from srearena.conductor.problems.variation import Choice
from srearena.generators.certificates import Authority, Certificate
from srearena.generators.fault.actors import deployment, service
from srearena.service.kubernetes import Obj


@problem(
    "admission_webhook_outage_hotel_reservation",
    app="hotel_reservation",
    service="recommendation",
    victims=("recommendation", "frontend"),
)
class AdmissionWebhookOutage(OriginProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"service": components, "victims": itself_and_callers}
    affects_new_pods = True
    family = "admission_webhook_outage"
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


WEBHOOK_NAMESPACE, POLICY, _PORT = "policy-system", "pod-policy", 8443


class WebhookProblem(OriginProblem):
    """Adds a webhook server with a certificate of the company's authority."""

    affects_new_pods = True
    extra_namespaces = (WEBHOOK_NAMESPACE,)
    server: ClassVar[Obj] = {"image": "registry.k8s.io/e2e-test-images/agnhost:2.53", "args": ["webhook"]}

    def _authority(self, name: str = "Platform CA") -> Authority:
        cluster = self.kubernetes.get("namespaces", "kube-system")["metadata"]["uid"]
        return Authority(name, cluster, self._today - timedelta(days=200))

    @property
    def _today(self) -> datetime:
        return datetime.fromisoformat(self.kubernetes.now()).replace(hour=0, minute=0, second=0, microsecond=0)

    def set_up(self) -> None:
        authority = self._authority()
        host = f"{POLICY}.{WEBHOOK_NAMESPACE}.svc"
        certificate = authority.issue(host, self._today - timedelta(days=30), self._today + timedelta(days=335))
        for obj in _webhook_server(self.server, certificate, authority.pem):
            self.kubernetes.apply(obj)
        self.cluster.wait(45)
        for obj in self.configurations(authority.pem):
            self.kubernetes.apply(obj)

    @abstractmethod
    def configurations(self, authority: str) -> Iterable[Obj]:
        """The webhook configuration, with the authority that signs the server's certificate."""


@problem(
    "admission_webhook_tls_mismatch_hotel_reservation",
    app="hotel_reservation",
    service="recommendation",
    victims=("recommendation", "frontend"),
)
class AdmissionWebhookTlsMismatch(WebhookProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"service": components, "victims": itself_and_callers}
    family = "admission_webhook_tls_mismatch"
    difficulty = "hard"
    fault = "admission_webhook_tls_mismatch"
    fault_type = "Authentication Issue"
    contributing = (f"{WEBHOOK_NAMESPACE}/Deployment/{POLICY}",)  # the server behind it has the same name
    root_kind = "ValidatingWebhookConfiguration"
    origin = POLICY
    origin_namespace = ""
    explanation = (
        f"The configuration of the webhook {POLICY} names an authority that did not sign the webhook's certificate: "
        "the API server does not believe it, no pod is admitted, and that of {service}, once deleted, does not return."
    )
    remedy = f"""\
kubectl delete validatingwebhookconfiguration {POLICY}
kubectl -n {{ns}} rollout restart deployment/{{service}}"""

    def configurations(self, authority: str) -> Iterable[Obj]:
        return [reviewing(POLICY, self.namespace, authority)]

    def inject_fault(self) -> None:
        self.options = {"webhook": POLICY, "authority": self._authority("Platform Root CA").pem}
        super().inject_fault()


def _webhook_server(server: Obj, certificate: Certificate, authority: str) -> list[Obj]:
    """The webhook server with its Service, certificate and authority."""
    files = ["--tls-cert-file=/tls/tls.crt", "--tls-private-key-file=/tls/tls.key", f"--port={_PORT}"]
    container = {
        "name": "webhook",
        **server,
        "args": [*server.get("args", ()), *files],
        "ports": [{"containerPort": _PORT}],
        "readinessProbe": {"tcpSocket": {"port": _PORT}, "periodSeconds": 5},
        "volumeMounts": [{"name": "tls", "mountPath": "/tls", "readOnly": True}],
    }
    pod = {"containers": [container], "volumes": [{"name": "tls", "secret": {"secretName": f"{POLICY}-tls"}}]}
    webhook_service = service(POLICY, WEBHOOK_NAMESPACE, _PORT)
    webhook_service["spec"]["ports"] = [{"port": 443, "targetPort": _PORT}]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": WEBHOOK_NAMESPACE}},
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {"name": f"{POLICY}-tls", "namespace": WEBHOOK_NAMESPACE},
            "stringData": {"tls.crt": certificate.certificate, "tls.key": certificate.key},
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{POLICY}-ca", "namespace": WEBHOOK_NAMESPACE},
            "data": {"ca.crt": authority},
        },
        deployment(POLICY, WEBHOOK_NAMESPACE, pod),
        webhook_service,
    ]


def reviewing(
    name: str, namespace: str, authority: str, kind: str = "Validating", seconds: int = 5, failure: str = "Fail"
) -> Obj:
    """A webhook configuration for all new pods of a namespace."""
    service_reference = {"namespace": WEBHOOK_NAMESPACE, "name": POLICY, "path": "/pods"}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": f"{name}.platform.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": failure,
                "timeoutSeconds": seconds,
                "clientConfig": {"service": service_reference, "caBundle": b64encode(authority.encode()).decode()},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            }
        ],
    }


DEFAULTS = {"pod-labels": 12, "pod-priority": 8, "pod-tolerations": 11, "pod-topology": 9}
"""Webhooks that set defaults on pods, each with its timeout in seconds."""
_ISOLATION = "webhook-isolation"


class Guarded(Check):
    """At least some of the webhooks and their network policy still exist.

    Why it cannot be gamed: deleting the admission control or its protection is not a repair.
    """

    name = "guarded"
    policy = True

    def complaints(self, problem: Problem) -> list[str]:
        api = problem.kubernetes
        complaints = []
        if not any(api.find("mutatingwebhookconfigurations", name) for name in DEFAULTS):
            complaints.append("none of the mutating webhooks is configured any more")
        policies = api.list("networkpolicies", WEBHOOK_NAMESPACE)
        if not any("Ingress" in (one["spec"].get("policyTypes") or ["Ingress"]) for one in policies):
            complaints.append(f"no network policy protects the webhooks in {WEBHOOK_NAMESPACE} any more")
        return complaints


@problem(
    "cumulative_admission_webhook_timeout_hotel_reservation",
    app="hotel_reservation",
    service="recommendation",
    victims=("recommendation", "frontend"),
)
class CumulativeWebhookTimeout(WebhookProblem):
    """Adds four webhooks with `failurePolicy: Ignore`, behind a network policy that admits the API server."""

    varies: ClassVar[Mapping[str, Choice]] = {"service": components, "victims": itself_and_callers}
    family = "cumulative_admission_webhook_timeout"
    difficulty = "hard"
    fault = "webhooks_cut_off"
    misbehaving = (f"{WEBHOOK_NAMESPACE}/Deployment/{POLICY}", "Deployment/{service}")
    contributing = tuple(f"MutatingWebhookConfiguration/{name}" for name in DEFAULTS)
    root_kind = "NetworkPolicy"
    origin = _ISOLATION
    origin_namespace = WEBHOOK_NAMESPACE
    explanation = (
        f"The network policy {_ISOLATION} lets pods reach the webhooks, and not the API server: each of four is waited "
        "for in turn, and though each may fail, together they take longer than a request may. No pod is admitted."
    )
    remedy = f"""\
kubectl -n {WEBHOOK_NAMESPACE} patch networkpolicy {_ISOLATION} --type=json -p '[{{"op": "add", \
"path": "/spec/ingress/0/from/-", "value": {{"ipBlock": {{"cidr": "0.0.0.0/0"}}}}}}]'
kubectl -n {{ns}} rollout restart deployment/{{service}}"""

    def __init__(self, app: str, service: str, **options: Any) -> None:
        super().__init__(app, service, policy=_ISOLATION, place=WEBHOOK_NAMESPACE, **options)

    def more_checks(self) -> Iterable[Check]:
        return [Guarded()]

    def configurations(self, authority: str) -> Iterable[Obj]:
        source = [{"namespaceSelector": {}}, {"ipBlock": {"cidr": "0.0.0.0/0"}}]
        yield {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": _ISOLATION, "namespace": WEBHOOK_NAMESPACE},
            "spec": {
                "podSelector": {"matchLabels": {"app": POLICY}},
                "policyTypes": ["Ingress"],
                "ingress": [{"from": source, "ports": [{"protocol": "TCP", "port": _PORT}]}],
            },
        }
        for name, seconds in DEFAULTS.items():
            yield reviewing(name, self.namespace, authority, "Mutating", seconds, "Ignore")
