"""Ingress faults: a wrong backend, or an expired certificate."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from srearena.conductor.oracles.checks import Check
from srearena.conductor.oracles.checks.probing import ProbeFailed, run_probe
from srearena.conductor.oracles.checks.public_name import PublicName
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.network import NetworkProblem
from srearena.conductor.problems.registry import problem
from srearena.conductor.problems.targets import components, one_of
from srearena.conductor.problems.variation import Choice
from srearena.generators.certificates import Authority, Certificate, self_signed
from srearena.service.kubernetes import Obj

_CONTROLLER, _NAMESPACE = "ingress-nginx-controller", "ingress-nginx"
_HOST = "hotel.example.com"
_QUARTER = timedelta(days=90)
"""The validity of certificates from public authorities such as Let's Encrypt."""
_LABELS = {"app.kubernetes.io/name": "ingress-nginx", "app.kubernetes.io/component": "controller"}
_INGRESS_NGINX: tuple[Obj, ...] = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}},
    {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IngressClass",
        "metadata": {"name": "nginx"},
        "spec": {"controller": "k8s.io/ingress-nginx"},
    },
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": _CONTROLLER, "namespace": _NAMESPACE, "labels": _LABELS},
        "spec": {
            "selector": {"matchLabels": _LABELS},
            "template": {
                "metadata": {"labels": _LABELS},
                "spec": {
                    "containers": [
                        {
                            "name": "controller",
                            "image": "registry.k8s.io/ingress-nginx/controller:v1.13.0",
                            "args": ["/nginx-ingress-controller", "--controller-class=k8s.io/ingress-nginx"],
                            "ports": [{"name": "http", "containerPort": 80}, {"name": "https", "containerPort": 443}],
                            "readinessProbe": {"httpGet": {"path": "/healthz", "port": 10254}},
                        }
                    ]
                },
            },
        },
    },
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": _CONTROLLER, "namespace": _NAMESPACE, "labels": _LABELS},
        "spec": {
            "selector": _LABELS,
            "ports": [
                {"name": "http", "port": 80, "targetPort": "http"},
                {"name": "https", "port": 443, "targetPort": "https"},
            ],
        },
    },
)


class IngressRequests(Check):
    """Requests through the Ingress get the same responses as requests to the frontend.

    Why it cannot be gamed: a pod of the harness sends requests for the host name to the ingress controller. Deleting
    the Ingress, or pointing it at a backend that does not respond as the application does, fails.
    """

    name = "ingress"

    def record_baseline(self, problem: Problem) -> list[str]:
        return sorted(self._answered(problem))

    def complaints(self, problem: Problem) -> list[str]:
        try:
            now = self._answered(problem)
        except ProbeFailed as failed:
            return [str(failed)]
        missing = [path for path in self.baseline_value(problem) or () if path not in now]
        return [f"{path} does not get the expected response at http://{_HOST}" for path in missing]

    def _answered(self, problem: Problem) -> set[str]:
        frontend = problem.app.frontend
        requests = [one for one in frontend.requests if one.method == "GET"] if frontend else []
        address = f"{_CONTROLLER}.{_NAMESPACE}.svc.cluster.local"
        script = "\n".join(
            f"echo; echo 'asked {one.path}'\n"
            f"wget -q -T 10 -O - --header 'Host: {_HOST}' 'http://{address}{one.path}' || true"
            for one in requests
        )
        answers = dict(
            answer.partition("\n")[::2]
            for answer in f"\n{run_probe(problem, script)}".split("\nasked ")
            if answer.strip()
        )
        return {one.path for one in requests if answers.get(one.path, "").strip() and one.contains in answers[one.path]}


class IngressProblem(NetworkProblem):
    """Adds an ingress controller and an Ingress for the application's public host name."""

    extra_namespaces = (_NAMESPACE,)
    tls: ClassVar[list[Obj]] = []
    """The `tls` section of the healthy Ingress."""

    def set_up(self) -> None:
        for obj in _INGRESS_NGINX:
            self.kubernetes.apply(obj)
        backend = {"service": {"name": "frontend", "port": {"number": 5000}}}
        rule = {"host": _HOST, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
        spec: Obj = {"ingressClassName": "nginx", "rules": [rule]}
        if self.tls:
            spec["tls"] = self.tls
        self.kubernetes.apply(
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "Ingress",
                "metadata": {"name": self.services[0], "namespace": self.namespace},
                "spec": spec,
            }
        )
        self.cluster.wait(60)


_GRPC_PORTS = {
    "geo": 8083,
    "profile": 8081,
    "rate": 8084,
    "recommendation": 8085,
    "reservation": 8087,
    "search": 8082,
    "user": 8086,
}


@problem("ingress_misroute", app="hotel_reservation", service="hotel-reservation", backend="recommendation", port=8085)
class IngressMisroute(IngressProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"backend": components, "port": one_of(_GRPC_PORTS, "backend")}
    family = "ingress_misroute"
    fault = "ingress_misroute"
    root_kind = "Ingress"
    misbehaving = (f"{_NAMESPACE}/Deployment/{_CONTROLLER}",)
    explanation = "The Ingress {service} sends visitors to {backend}, which speaks gRPC, instead of to frontend."
    remedy = """\
kubectl -n {ns} patch ingress {service} --type=json \
-p '[{"op": "replace", "path": "/spec/rules/0/http/paths/0/backend/service", \
"value": {"name": "frontend", "port": {"number": 5000}}}]'"""

    def more_checks(self) -> Iterable[Check]:
        return [IngressRequests()]


@problem("expired_tls_hotel_reservation", app="hotel_reservation", service="hotel-example-com")
class ExpiredTls(IngressProblem):
    """The Ingress and the Secret of its certificate have the same name, derived from the host."""

    family = "expired_tls"
    fault = "expired_tls"
    root_kind = "Secret"
    misbehaving = ("Ingress/{service}", f"{_NAMESPACE}/Deployment/{_CONTROLLER}")
    fault_type = "Authentication Issue"
    tls: ClassVar[list[Obj]] = [{"hosts": [_HOST], "secretName": "hotel-example-com"}]
    explanation = (
        f"The Secret {{service}}, from which the Ingress takes the certificate of {_HOST}, holds the one of the "
        "quarter before again, which has expired: visitors over HTTPS turn away."
    )

    def _remedy(self) -> str:
        """Replace the Secret by a self-signed certificate with a long validity."""
        years = (datetime(2020, 1, 1, tzinfo=UTC), datetime(2050, 1, 1, tzinfo=UTC))
        return f"kubectl replace -f - <<'END'\n{json.dumps(self._secret(self_signed(_HOST, 'renewed', *years)))}\nEND"

    def _secret(self, certificate: Certificate) -> Obj:
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {"name": self.services[0], "namespace": self.namespace},
            "stringData": {"tls.crt": certificate.certificate, "tls.key": certificate.key},
        }

    def _certificate(self, quarters: int) -> Certificate:
        """The certificate issued `quarters` quarters earlier, counted from two months before today."""
        cluster = self.kubernetes.get("namespaces", "kube-system")["metadata"]["uid"]
        today = datetime.fromisoformat(self.kubernetes.now()).replace(hour=0, minute=0, second=0, microsecond=0)
        since = today - timedelta(days=60) - quarters * _QUARTER
        authority = Authority("Example Issuing CA", cluster, today - timedelta(days=700))
        return authority.issue(_HOST, since, since + _QUARTER)

    def set_up(self) -> None:
        self.kubernetes.apply(self._secret(self._certificate(0)))
        super().set_up()

    def inject_fault(self) -> None:
        self.options = {"certificate": self._certificate(1)}
        super().inject_fault()

    def more_checks(self) -> Iterable[Check]:
        return [PublicName(_HOST, _CONTROLLER, _NAMESPACE)]
