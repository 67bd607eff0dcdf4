"""Network policies that block traffic, and names that do not resolve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import problem
from srearena.conductor.problems.targets import callers, components, itself_and_callers, named_by_dns
from srearena.conductor.problems.variation import Choice


class NetworkProblem(OriginProblem):
    level = "network"


@problem("network_policy_block", app="hotel_reservation", service="recommendation", victims=("frontend",))
class NetworkPolicyBlock(NetworkProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"service": components, "victims": callers}
    family = "network_policy_block"
    fault = "network_policy_block"
    root_kind = "NetworkPolicy"
    explanation = "A network policy selects the pods of {service} and allows no traffic, neither in nor out."
    remedy = "kubectl -n {ns} delete networkpolicy {service}"


class NameServiceProblem(NetworkProblem):
    """The origin is the configuration of DNS, whichever services are affected."""

    affects_new_pods = True
    root_kind = "ConfigMap"
    origin = "coredns"
    origin_namespace = "kube-system"
    misbehaving = ("kube-system/Deployment/coredns",)
    remedy = """\
kubectl -n kube-system get configmap coredns -o jsonpath='{.data.Corefile}' | sed '/^ *template /,/}/d' \
| kubectl -n kube-system create configmap coredns --from-file=Corefile=/dev/stdin --dry-run=client -o yaml \
| kubectl -n kube-system replace -f -
kubectl -n kube-system delete pods -l k8s-app=kube-dns
kubectl -n kube-system rollout status deployment/coredns --timeout=60s
kubectl -n {ns} rollout restart deployment"""


@problem(
    "service_dns_resolution_failure_social_network",
    app="social_network",
    service="user-service",
    victims=("user-service", "compose-post-service", "nginx-thrift"),
)
@problem(
    "service_dns_resolution_failure_astronomy_shop",
    app="astronomy_shop",
    service="frontend",
    victims=("frontend", "frontend-proxy"),
)
class ServiceDnsResolutionFailure(NameServiceProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"service": named_by_dns, "victims": itself_and_callers}
    family = "service_dns_resolution_failure"
    fault = "service_dns_resolution_failure"
    explanation = "The configuration of CoreDNS answers NXDOMAIN for the name of the Service {service}."


@problem(
    "stale_coredns_config_social_network",
    app="social_network",
    service="user-service",
    victims=("compose-post-service", "nginx-thrift"),
)
@problem("stale_coredns_config_astronomy_shop", app="astronomy_shop", service="frontend", victims=("frontend-proxy",))
class StaleCoreDnsConfig(NameServiceProblem):
    family = "stale_coredns_config"
    fault = "stale_coredns_config"
    explanation = "The configuration of CoreDNS answers NXDOMAIN for every Service of the cluster."
