"""Probes of Services from outside the application: they fail when, and only when, a connection would."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

from srearena.cluster.embedded.objects import name_of
from srearena.generators.certificates import self_signed
from tests.collectors.harness import Observed, deployment, service

INSTANCE = "web.shop.svc.cluster.local:80"


def _shop(cluster: Observed, replicas: int = 2) -> None:
    cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
    cluster.apply(deployment("web", replicas=replicas), "shop")
    cluster.apply(service("web"), "shop")
    cluster.pass_time(30)


def _success(cluster: Observed) -> float:
    return cluster.value("probe_success", instance=INSTANCE, namespace="shop", service="web")


def test_a_service_that_answers(cluster: Observed) -> None:
    _shop(cluster)
    assert _success(cluster) == 1
    assert 0 < cluster.value("probe_duration_seconds", instance=INSTANCE) < 0.01
    assert cluster.value("up", instance=INSTANCE) == 1
    assert {dict(labels)["service"] for labels in cluster.series("probe_success")} == {"web"}


def test_a_service_is_known_by_its_first_port(cluster: Observed) -> None:
    _shop(cluster)
    ports = [{"name": "http", "port": 80}, {"name": "metrics", "port": 9090}]
    cluster.change("services", "shop", "web", ports=ports)
    cluster.pass_time()
    assert [dict(labels)["instance"] for labels in cluster.series("probe_success")] == [INSTANCE]
    cluster.change("services", "shop", "web", ports=ports[::-1])
    cluster.pass_time()
    (found,) = cluster.series("probe_success").items()
    assert dict(found[0])["instance"] == "web.shop.svc.cluster.local:9090" and found[1] == 0


def test_a_wrong_target_port_fails_the_probe_until_it_is_put_right(cluster: Observed) -> None:
    _shop(cluster)
    cluster.change("services", "shop", "web", ports=[{"port": 80, "targetPort": 8080}])
    cluster.pass_time()
    assert _success(cluster) == 0
    cluster.change("services", "shop", "web", ports=[{"port": 80, "targetPort": 80}])
    cluster.pass_time()
    assert _success(cluster) == 1


def test_a_service_without_endpoints_fails_and_one_that_is_gone_is_not_probed(cluster: Observed) -> None:
    _shop(cluster)
    cluster.change("deployments.apps", "shop", "web", replicas=0)
    cluster.pass_time(60)
    assert _success(cluster) == 0
    cluster.delete("services", "shop", "web")
    cluster.pass_time()
    assert not cluster.series("probe_success")
    assert not cluster.series("up", instance=INSTANCE)


def test_a_policy_that_lets_nobody_in_fails_the_probe(cluster: Observed) -> None:
    _shop(cluster)
    policy = {"podSelector": {}, "policyTypes": ["Ingress"]}
    kind = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "closed"}}
    cluster.apply(yaml.safe_dump({**kind, "spec": policy}), "shop")
    cluster.pass_time()
    assert _success(cluster) == 0
    assert cluster.value("probe_duration_seconds", instance=INSTANCE) == 5
    cluster.delete("networkpolicies.networking.k8s.io", "shop", "closed")
    cluster.pass_time()
    assert _success(cluster) == 1


def test_one_endpoint_of_two_that_does_not_listen_fails_some_probes(cluster: Observed) -> None:
    _shop(cluster)
    pod = cluster.pods("web", "shop")[0]
    for listener in cluster.nodes.sandbox("shop", name_of(pod)).namespace.listeners():  # type: ignore[union-attr]
        listener.close()
    seen = set()
    for _ in range(20):
        cluster.pass_time()
        seen.add(_success(cluster))
    assert seen == {0.0, 1.0}


def test_without_dns_no_probe_succeeds(cluster: Observed) -> None:
    _shop(cluster)
    cluster.change("deployments.apps", "kube-system", "coredns", replicas=0)
    cluster.pass_time(60)
    assert _success(cluster) == 0
    cluster.change("deployments.apps", "kube-system", "coredns", replicas=2)
    cluster.pass_time(60)
    assert _success(cluster) == 1


def test_name_servers_count_questions(cluster: Observed) -> None:
    _shop(cluster)
    command = "while true; do nslookup web.shop.svc.cluster.local; nslookup nobody.example; sleep 1; done"
    cluster.apply(deployment("asker", "busybox:1.36", command))
    cluster.pass_time(60)
    for rcode in ("NOERROR", "NXDOMAIN"):
        answers = cluster.series("coredns_dns_responses_total", job="kube-dns", rcode=rcode)
        assert sum(answers.values()) > 20
    assert {dict(labels)["namespace"] for labels in answers} == {"kube-system"}
    assert cluster.series("coredns_dns_requests_total", type="A")


def test_lookups_of_probes_are_counted_at_the_name_servers(cluster: Observed) -> None:
    _shop(cluster)
    cluster.pass_time(60)
    for server in {dict(labels)["pod"] for labels in cluster.series("coredns_dns_requests_total", type="AAAA")}:
        assert cluster.rate("coredns_dns_requests_total", type="AAAA", pod=server) > 0
    assert len(cluster.series("coredns_dns_requests_total", type="AAAA")) == 2, "they take turns"


def _door(cluster: Observed, **more: Any) -> None:
    """Create an Ingress for the shop, without a controller."""
    cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: ingress-nginx}}")
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    rule = {"host": "shop.example", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    networking = {"apiVersion": "networking.k8s.io/v1", "metadata": {"name": "nginx"}}
    cluster.apply(
        yaml.safe_dump({**networking, "kind": "IngressClass", "spec": {"controller": "k8s.io/ingress-nginx"}})
    )
    spec = {"ingressClassName": "nginx", "rules": [rule], **more}
    cluster.apply(yaml.safe_dump({**networking, "kind": "Ingress", "metadata": {"name": "door"}, "spec": spec}), "shop")


def test_the_frontend_is_probed_through_the_ingress_controller(cluster: Observed) -> None:
    _shop(cluster)
    _door(cluster)
    cluster.pass_time(30)
    assert not cluster.series("probe_success", ingress="door"), "there is no ingress controller"

    name = "ingress-nginx-controller"
    cluster.apply(deployment(name, "registry.k8s.io/ingress-nginx/controller:v1.13.0"), "ingress-nginx")
    cluster.apply(service(name), "ingress-nginx")
    cluster.pass_time(75)
    about = {"namespace": "shop", "ingress": "door", "instance": "http://shop.example/"}
    assert cluster.value("probe_success", **about) == 1
    assert cluster.value("probe_http_status_code", **about) == 200

    cluster.change("deployments.apps", "shop", "web", replicas=0)
    cluster.pass_time(60)
    assert cluster.value("probe_success", **about) == 0
    assert cluster.value("probe_http_status_code", **about) == 503
    cluster.delete("ingresses.networking.k8s.io", "shop", "door")
    cluster.pass_time()
    assert not cluster.series("probe_success", ingress="door")


def test_a_frontend_with_tls_needs_a_certificate_in_date(cluster: Observed) -> None:
    _shop(cluster)
    _door(cluster, tls=[{"hosts": ["shop.example"], "secretName": "cert"}])
    name = "ingress-nginx-controller"
    cluster.apply(deployment(name, "registry.k8s.io/ingress-nginx/controller:v1.13.0"), "ingress-nginx")
    controller = yaml.safe_load(service(name))
    controller["spec"]["ports"] = [{"name": "http", "port": 80}, {"name": "https", "port": 443}]
    cluster.apply(yaml.safe_dump(controller), "ingress-nginx")

    def probe_success(until: float) -> float:
        now = datetime.fromtimestamp(cluster.world.clock.now, UTC)
        identity = self_signed("shop.example", "s", now - timedelta(days=90), now + timedelta(days=until))
        files = {"tls.crt": identity.certificate, "tls.key": identity.key}
        data = {key: b64encode(text.encode()).decode() for key, text in files.items()}
        if cluster.world.store.get("secrets", "shop", "cert") is not None:
            cluster.delete("secrets", "shop", "cert")
        meta = {"name": "cert", "namespace": "shop"}
        cluster.apply(yaml.safe_dump({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}), "shop")
        cluster.pass_time(75)
        return cluster.value("probe_success", namespace="shop", ingress="door", instance="http://shop.example/")

    assert probe_success(30) == 1
    assert probe_success(-1) == 0
    assert cluster.value("probe_http_status_code", ingress="door", instance="http://shop.example/") == 0
    assert probe_success(60) == 1
