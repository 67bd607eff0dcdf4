"""Ingress routing: the Service for a host and a path."""

from __future__ import annotations

from typing import Any

import pytest

from srearena.cluster.embedded.network.ingress import IngressTable, ingresses_of_class
from srearena.cluster.embedded.objects import Obj
from tests.network.bench import Bench


def backend(name: str, port: int = 80) -> Obj:
    return {"service": {"name": name, "port": {"number": port}}}


def ingress(name: str, *rules: tuple[str, str, str, str], created: str = "2024-01-01T00:00:00Z", **more: Any) -> Obj:
    hosts: dict[str, list[Obj]] = {}
    for host, kind, path, service in rules:
        hosts.setdefault(host, []).append({"path": path, "pathType": kind, "backend": backend(service)})
    spec = {
        "ingressClassName": "nginx",
        "rules": [{**({"host": host} if host else {}), "http": {"paths": paths}} for host, paths in hosts.items()],
        **more.pop("spec", {}),
    }
    metadata = {"name": name, "namespace": "shop", "creationTimestamp": created, "annotations": more}
    return {"metadata": metadata, "spec": spec}


def service(table: IngressTable, host: str, path: str) -> str | None:
    rule = table.route(host, path).rule
    return rule.destination.service if rule is not None else None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "root"),
        ("/api", "api"),
        ("/api/", "api"),
        ("/api/v1", "api"),
        ("/apix", "root"),
        ("/api/v2/x", "api-v2"),
        ("/exact", "exact"),
        ("/exact/more", "root"),
    ],
)
def test_exact_paths_come_first_and_longer_prefixes_before_shorter(path: str, expected: str) -> None:
    table = IngressTable(
        [
            ingress(
                "shop",
                ("shop.example", "Prefix", "/", "root"),
                ("shop.example", "Prefix", "/api", "api"),
                ("shop.example", "Prefix", "/api/v2/", "api-v2"),
                ("shop.example", "Exact", "/exact", "exact"),
            )
        ]
    )
    assert service(table, "shop.example", path) == expected


def test_hosts_match_exactly_then_by_wildcard_then_without() -> None:
    table = IngressTable(
        [
            ingress("any", ("", "Prefix", "/", "any")),
            ingress("wild", ("*.example", "Prefix", "/", "wild")),
            ingress("one", ("www.example", "Prefix", "/", "one")),
        ]
    )
    assert service(table, "www.example:8080", "/") == "one"
    assert service(table, "API.example", "/") == "wild"
    assert service(table, "a.b.example", "/") == "any"


def test_the_older_of_two_equal_rules_wins() -> None:
    young = ingress("young", ("h", "Prefix", "/", "young"), created="2024-05-01T00:00:00Z")
    old = ingress("old", ("h", "Prefix", "/", "old"))
    assert service(IngressTable([young, old]), "h", "/") == "old"


def test_the_default_backend_gets_requests_without_rule() -> None:
    table = IngressTable([ingress("d", spec={"defaultBackend": backend("fallback"), "rules": []})])
    assert service(table, "whoever", "/x") == "fallback"
    assert service(IngressTable([]), "whoever", "/x") is None


def test_tls_hosts_are_redirected_unless_disabled() -> None:
    tls = {"tls": [{"hosts": ["shop.example"], "secretName": "cert"}]}
    table = IngressTable([ingress("s", ("shop.example", "Prefix", "/", "web"), spec=tls)])
    routed = table.route("shop.example", "/")
    assert routed.redirect_to_tls and routed.tls_secret == "shop/cert"
    assert not table.route("shop.example", "/", tls=True).redirect_to_tls
    calm = {"nginx.ingress.kubernetes.io/ssl-redirect": "false"}
    table = IngressTable([ingress("s", ("shop.example", "Prefix", "/", "web"), spec=tls, **calm)])
    assert not table.route("shop.example", "/").redirect_to_tls


def test_rewrite_target_uses_the_groups_of_the_path() -> None:
    annotations = {"nginx.ingress.kubernetes.io/rewrite-target": "/$2"}
    table = IngressTable([ingress("r", ("h", "ImplementationSpecific", "/api(/|$)(.*)", "api"), **annotations)])
    rule = table.route("h", "/api/users/1").rule
    assert rule is not None
    assert rule.backend_path("/api/users/1") == "/users/1"
    assert table.route("h", "/other").rule is None


def test_only_ingresses_of_the_controllers_classes_count() -> None:
    bench = Bench(dns=False)
    classes = "ingressclasses.networking.k8s.io"
    bench.store.put(classes, {"metadata": {"name": "nginx"}, "spec": {"controller": "k8s.io/ingress-nginx"}})
    mine, other = ingress("mine", ("h", "Prefix", "/", "a")), ingress("other", ("h", "Prefix", "/", "a"))
    other["spec"]["ingressClassName"] = "traefik"
    bare = ingress("bare", ("h", "Prefix", "/", "a"))
    del bare["spec"]["ingressClassName"]
    for obj in (mine, other, bare):
        bench.store.put("ingresses.networking.k8s.io", obj)

    def names() -> list[str]:
        return [o["metadata"]["name"] for o in ingresses_of_class(bench.store, "k8s.io/ingress-nginx")]

    assert names() == ["mine"]
    annotations = {"ingressclass.kubernetes.io/is-default-class": "true"}
    bench.store.put(
        classes,
        {"metadata": {"name": "nginx", "annotations": annotations}, "spec": {"controller": "k8s.io/ingress-nginx"}},
    )
    assert names() == ["bare", "mine"]
