"""Certificates: verification by clients, and the certificate an ingress controller presents for a host."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.cluster.embedded.machine.networking.certificates import BadCertificate, Flaw, TlsIdentity, identity_of
from srearena.cluster.embedded.objects import Obj
from srearena.generators.certificates import Authority, Certificate, self_signed
from tests.network.whole_cluster import WholeCluster

START = datetime.fromtimestamp(1_700_000_000, UTC)
HOST = "shop.example"
AUTHORITY = Authority("Example CA", "s", START - timedelta(days=300))


def days(number: float) -> timedelta:
    return timedelta(days=number)


def issued(since: float, until: float, host: str = HOST) -> Certificate:
    return AUTHORITY.issue(host, START + days(since), START + days(until))


def identity(signed: Certificate) -> TlsIdentity:
    return identity_of(signed.certificate.encode(), signed.key.encode())


@given(st.integers(-200, 200), st.integers(1, 200), st.integers(-400, 400))
def test_a_certificate_is_good_from_its_first_to_its_last_day(since: int, length: int, today: int) -> None:
    shown = identity(issued(since, since + length))
    flaw = shown.flaw(HOST, (START + days(today)).timestamp(), AUTHORITY.pem.encode())
    assert flaw == (Flaw.EARLY if today < since else Flaw.EXPIRED if today > since + length else None)


def test_trust_is_judged_before_dates_and_dates_before_names() -> None:
    now, trusted = START.timestamp(), AUTHORITY.pem.encode()
    old = identity(issued(-100, -10))
    assert old.flaw("other.example", now, b"") is Flaw.UNTRUSTED
    assert old.flaw("other.example", now, trusted) is Flaw.EXPIRED
    assert identity(issued(-10, 10)).flaw("other.example", now, trusted) is Flaw.NAME
    other = Authority("Example CA", "another", START - days(300))
    assert identity(issued(-10, 10)).flaw(HOST, now, other.pem.encode()) is Flaw.UNTRUSTED, "the name alone is no proof"


def test_a_self_signed_certificate_is_trusted_where_it_is_configured() -> None:
    signed = self_signed(HOST, "s", START - days(1), START + days(1))
    shown = identity(signed)
    assert shown.flaw(HOST, START.timestamp(), AUTHORITY.pem.encode()) is Flaw.SELF_SIGNED
    assert shown.flaw(HOST, START.timestamp(), (AUTHORITY.pem + signed.certificate).encode()) is None


def test_a_certificate_needs_its_own_key() -> None:
    first, second = issued(-1, 1), issued(-1, 1, "other.example")
    for chain, key in ((b"", first.key.encode()), (first.certificate.encode(), b"nonsense")):
        with pytest.raises(BadCertificate):
            identity_of(chain, key)
    with pytest.raises(BadCertificate, match="matching public key"):
        identity_of(first.certificate.encode(), second.key.encode())


# An ingress controller


def secret(signed: Certificate) -> Obj:
    files = {"tls.crt": signed.certificate, "tls.key": signed.key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": "cert", "namespace": "default"},
        "data": {name: b64encode(text.encode()).decode() for name, text in files.items()},
    }


@pytest.fixture(scope="module")
def whole_cluster() -> Iterator[WholeCluster]:
    whole_cluster = WholeCluster()
    whole_cluster.deploy("web", "nginx:1.27")
    whole_cluster.expose("web", 80, 80)
    kind = {"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": "nginx"}}
    whole_cluster.client.create(
        "ingressclasses.networking.k8s.io", {**kind, "spec": {"controller": "k8s.io/ingress-nginx"}}
    )
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    whole_cluster.client.create(
        "ingresses.networking.k8s.io",
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {
                "ingressClassName": "nginx",
                "tls": [{"hosts": [HOST], "secretName": "cert"}],
                "rules": [{"host": host, "http": {"paths": paths}} for host in (HOST, "plain.example")],
            },
        },
    )
    whole_cluster.client.create("secrets", secret(issued(-30, 60)))
    whole_cluster.deploy("ingress", "registry.k8s.io/ingress-nginx/controller:v1.13.0")
    for port in (80, 443):
        spec = {"selector": {"app": "ingress"}, "ports": [{"port": port}], "clusterIP": f"10.96.9.{port % 100}"}
        meta = {"name": f"ingress-{port}", "namespace": "default"}
        whole_cluster.client.create("services", {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec})
    whole_cluster.deploy("client", "curlimages/curl:8.5.0", command=["sleep", "1000000"])
    signed = whole_cluster.container(whole_cluster.pods("default", app="client")[0])
    signed.files.write_bytes("/tmp/ca.crt", AUTHORITY.pem.encode())
    yield whole_cluster


def curl(whole_cluster: WholeCluster, words: str) -> tuple[int, str]:
    resolve = f"--resolve {HOST}:443:10.96.9.43 --resolve {HOST}:80:10.96.9.80 --resolve plain.example:443:10.96.9.43"
    return whole_cluster.sh(whole_cluster.pods("default", app="client")[0], f"curl -sS {resolve} {words}")


def controller_log(whole_cluster: WholeCluster) -> str:
    pod = whole_cluster.pods("default", app="ingress")[0]
    sandbox = whole_cluster.assembly.nodes.sandbox("default", pod["metadata"]["name"])
    assert sandbox is not None
    return "".join(record.log.text() for records in sandbox.records.values() for record in records)


def show(whole_cluster: WholeCluster, signed: Certificate | None) -> None:
    found = whole_cluster.client.get("secrets", "default", "cert")
    if found is not None:
        whole_cluster.client.delete("secrets", found)
    if signed is not None:
        whole_cluster.client.create("secrets", secret(signed))
    whole_cluster.pass_time(5)


def test_a_host_gets_its_own_certificate_and_others_the_default(whole_cluster: WholeCluster) -> None:
    status, page = curl(whole_cluster, f"--cacert /tmp/ca.crt https://{HOST}/")
    assert status == 0 and "Welcome to nginx!" in page
    status, output = curl(whole_cluster, "--cacert /tmp/ca.crt https://plain.example/")
    assert status == 60 and "self-signed certificate" in output
    assert curl(whole_cluster, f"-o /dev/null -w %{{http_code}} http://{HOST}/") == (0, "308")
    assert "SSL certificate" not in controller_log(whole_cluster)


def test_an_expired_certificate_fails_clients_until_it_is_replaced(whole_cluster: WholeCluster) -> None:
    lines = controller_log(whole_cluster).count("GET /late")
    show(whole_cluster, issued(-120, -30))
    status, output = curl(whole_cluster, f"-v --cacert /tmp/ca.crt https://{HOST}/late")
    assert status == 60
    assert "* TLSv1.3 (OUT), TLS alert, certificate expired (557):\n" in output
    assert "curl: (60) SSL certificate problem: certificate has expired\n" in output
    assert "> GET /late" not in output and controller_log(whole_cluster).count("GET /late") == lines, (
        "nothing was asked"
    )
    expected = f'SSL certificate for server "{HOST}" expired ({START - days(30):%Y-%m-%d %H:%M:%S} +0000 UTC)'
    assert expected in controller_log(whole_cluster)
    status, output = curl(whole_cluster, f"-vk https://{HOST}/")
    assert status == 0 and "*  expire date: Oct 15 22:13:20 2023 GMT\n" in output
    show(whole_cluster, issued(-1, 80))
    assert curl(whole_cluster, f"-o /dev/null --cacert /tmp/ca.crt https://{HOST}/")[0] == 0


@pytest.mark.parametrize("signed", [None, issued(-1, 80, "elsewhere.example")], ids=["no secret", "another host"])
def test_a_host_without_certificate_gets_the_default(whole_cluster: WholeCluster, signed: Certificate | None) -> None:
    show(whole_cluster, signed)
    status, output = curl(whole_cluster, f"-vk https://{HOST}/")
    assert status == 0 and "Kubernetes Ingress Controller Fake Certificate" in output
    assert "Using default certificate" in controller_log(whole_cluster)
    assert curl(whole_cluster, f"-o /dev/null -w %{{http_code}} http://{HOST}/") == (0, "308"), (
        "it is sent to HTTPS all the same"
    )
    show(whole_cluster, issued(-1, 80))


def test_on_a_machine_whose_clock_is_ahead_a_good_certificate_has_expired(whole_cluster: WholeCluster) -> None:
    show(whole_cluster, issued(-30, 60))
    client = whole_cluster.pods("default", app="client")[0]
    access = whole_cluster.assembly.nodes.access
    access.set_clock_skew(client["spec"]["nodeName"], 100 * 86400.0)
    status, output = curl(whole_cluster, f"--cacert /tmp/ca.crt https://{HOST}/")
    assert status == 60 and "certificate has expired" in output
    assert whole_cluster.sh(client, "date +%Y-%m")[1] == "2024-02\n"
    access.set_clock_skew(client["spec"]["nodeName"], 0.0)
    assert curl(whole_cluster, f"-o /dev/null --cacert /tmp/ca.crt https://{HOST}/")[0] == 0


def test_a_certificate_expires_while_time_passes(whole_cluster: WholeCluster) -> None:
    until = (whole_cluster.world.clock.now - START.timestamp() + 60) / 86400
    show(whole_cluster, issued(-80, until))
    assert curl(whole_cluster, f"-o /dev/null --cacert /tmp/ca.crt https://{HOST}/")[0] == 0
    assert f'SSL certificate for server "{HOST}" is about to expire' in controller_log(whole_cluster)
    whole_cluster.pass_time(120)
    assert curl(whole_cluster, f"--cacert /tmp/ca.crt https://{HOST}/")[0] == 60
