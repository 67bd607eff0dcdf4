"""Certificates: what clients find wrong with them, and which one an ingress controller shows for which host."""

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
from tests.network.town import Town

START = datetime.fromtimestamp(1_700_000_000, UTC)
HOST = "shop.example"
AUTHORITY = Authority("Example CA", "s", START - timedelta(days=300))


def days(number: float) -> timedelta:
    return timedelta(days=number)


def issued(since: float, until: float, host: str = HOST) -> Certificate:
    return AUTHORITY.issue(host, START + days(since), START + days(until))


def identity(held: Certificate) -> TlsIdentity:
    return identity_of(held.certificate.encode(), held.key.encode())


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


def test_who_vouches_for_himself_is_believed_by_those_who_know_him() -> None:
    held = self_signed(HOST, "s", START - days(1), START + days(1))
    shown = identity(held)
    assert shown.flaw(HOST, START.timestamp(), AUTHORITY.pem.encode()) is Flaw.SELF_SIGNED
    assert shown.flaw(HOST, START.timestamp(), (AUTHORITY.pem + held.certificate).encode()) is None


def test_a_certificate_needs_its_own_key() -> None:
    first, second = issued(-1, 1), issued(-1, 1, "other.example")
    for chain, key in ((b"", first.key.encode()), (first.certificate.encode(), b"nonsense")):
        with pytest.raises(BadCertificate):
            identity_of(chain, key)
    with pytest.raises(BadCertificate, match="matching public key"):
        identity_of(first.certificate.encode(), second.key.encode())


# An ingress controller


def secret(held: Certificate) -> Obj:
    files = {"tls.crt": held.certificate, "tls.key": held.key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": "cert", "namespace": "default"},
        "data": {name: b64encode(text.encode()).decode() for name, text in files.items()},
    }


@pytest.fixture(scope="module")
def town() -> Iterator[Town]:
    town = Town()
    town.deploy("web", "nginx:1.27")
    town.expose("web", 80, 80)
    kind = {"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": "nginx"}}
    town.client.create("ingressclasses.networking.k8s.io", {**kind, "spec": {"controller": "k8s.io/ingress-nginx"}})
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    town.client.create(
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
    town.client.create("secrets", secret(issued(-30, 60)))
    town.deploy("ingress", "registry.k8s.io/ingress-nginx/controller:v1.13.0")
    for port in (80, 443):
        spec = {"selector": {"app": "ingress"}, "ports": [{"port": port}], "clusterIP": f"10.96.9.{port % 100}"}
        meta = {"name": f"ingress-{port}", "namespace": "default"}
        town.client.create("services", {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec})
    town.deploy("client", "curlimages/curl:8.5.0", command=["sleep", "1000000"])
    held = town.container(town.pods("default", app="client")[0])
    held.files.write_bytes("/tmp/ca.crt", AUTHORITY.pem.encode())
    yield town


def curl(town: Town, words: str) -> tuple[int, str]:
    resolve = f"--resolve {HOST}:443:10.96.9.43 --resolve {HOST}:80:10.96.9.80 --resolve plain.example:443:10.96.9.43"
    return town.sh(town.pods("default", app="client")[0], f"curl -sS {resolve} {words}")


def controller_log(town: Town) -> str:
    pod = town.pods("default", app="ingress")[0]
    sandbox = town.assembly.nodes.sandbox("default", pod["metadata"]["name"])
    assert sandbox is not None
    return "".join(record.log.text() for records in sandbox.records.values() for record in records)


def show(town: Town, held: Certificate | None) -> None:
    found = town.client.get("secrets", "default", "cert")
    if found is not None:
        town.client.delete("secrets", found)
    if held is not None:
        town.client.create("secrets", secret(held))
    town.pass_time(5)


def test_a_host_is_shown_its_own_certificate_and_others_the_controllers(town: Town) -> None:
    status, page = curl(town, f"--cacert /tmp/ca.crt https://{HOST}/")
    assert status == 0 and "Welcome to nginx!" in page
    status, said = curl(town, "--cacert /tmp/ca.crt https://plain.example/")
    assert status == 60 and "self-signed certificate" in said
    assert curl(town, f"-o /dev/null -w %{{http_code}} http://{HOST}/") == (0, "308")
    assert "SSL certificate" not in controller_log(town)


def test_an_expired_certificate_turns_visitors_away_until_another_is_there(town: Town) -> None:
    lines = controller_log(town).count("GET /late")
    show(town, issued(-120, -30))
    status, said = curl(town, f"-v --cacert /tmp/ca.crt https://{HOST}/late")
    assert status == 60
    assert "* TLSv1.3 (OUT), TLS alert, certificate expired (557):\n" in said
    assert "curl: (60) SSL certificate problem: certificate has expired\n" in said
    assert "> GET /late" not in said and controller_log(town).count("GET /late") == lines, "nothing was asked"
    expected = f'SSL certificate for server "{HOST}" expired ({START - days(30):%Y-%m-%d %H:%M:%S} +0000 UTC)'
    assert expected in controller_log(town)
    status, said = curl(town, f"-vk https://{HOST}/")
    assert status == 0 and "*  expire date: Oct 15 22:13:20 2023 GMT\n" in said
    show(town, issued(-1, 80))
    assert curl(town, f"-o /dev/null --cacert /tmp/ca.crt https://{HOST}/")[0] == 0


@pytest.mark.parametrize("held", [None, issued(-1, 80, "elsewhere.example")], ids=["no secret", "another host"])
def test_without_a_certificate_of_its_own_a_host_is_left_with_the_controllers(
    town: Town, held: Certificate | None
) -> None:
    show(town, held)
    status, said = curl(town, f"-vk https://{HOST}/")
    assert status == 0 and "Kubernetes Ingress Controller Fake Certificate" in said
    assert "Using default certificate" in controller_log(town)
    assert curl(town, f"-o /dev/null -w %{{http_code}} http://{HOST}/") == (0, "308"), (
        "it is sent to HTTPS all the same"
    )
    show(town, issued(-1, 80))


def test_on_a_machine_whose_clock_is_ahead_a_good_certificate_has_expired(town: Town) -> None:
    show(town, issued(-30, 60))
    client = town.pods("default", app="client")[0]
    access = town.assembly.nodes.access
    access.set_clock_skew(client["spec"]["nodeName"], 100 * 86400.0)
    status, said = curl(town, f"--cacert /tmp/ca.crt https://{HOST}/")
    assert status == 60 and "certificate has expired" in said
    assert town.sh(client, "date +%Y-%m")[1] == "2024-02\n"
    access.set_clock_skew(client["spec"]["nodeName"], 0.0)
    assert curl(town, f"-o /dev/null --cacert /tmp/ca.crt https://{HOST}/")[0] == 0


def test_a_certificate_expires_while_time_passes(town: Town) -> None:
    until = (town.world.clock.now - START.timestamp() + 60) / 86400
    show(town, issued(-80, until))
    assert curl(town, f"-o /dev/null --cacert /tmp/ca.crt https://{HOST}/")[0] == 0
    assert f'SSL certificate for server "{HOST}" is about to expire' in controller_log(town)
    town.pass_time(120)
    assert curl(town, f"--cacert /tmp/ca.crt https://{HOST}/")[0] == 60
