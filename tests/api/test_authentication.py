"""Who is asking: certificates, tokens, impersonation, and nobody."""

from __future__ import annotations

import base64
import json
import ssl

import httpx
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding

from srearena.cluster.embedded.keys import derived_rsa_key, is_probable_prime
from srearena.cluster.embedded.programs.agnhost.issuer_discovery import NotValid, check_signature
from srearena.cluster.embedded.registry.identity import User
from tests.clusters import RunningApi

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def _me(client: httpx.Client, **headers: str) -> dict[str, object]:
    reply = client.post(WHO_AM_I, json={}, headers=headers)
    assert reply.status_code == 201, reply.text
    return reply.json()["status"]["userInfo"]


def _stranger(api: RunningApi, **headers: str) -> httpx.Client:
    context = ssl.create_default_context(cafile=str(api.ca))
    return httpx.Client(base_url=api.url, verify=context, headers=headers)


def _open_reviews(api: RunningApi) -> None:
    """What bootstrap gives to everybody: to ask who they are."""
    client = api.world.component_client("test")
    rule = {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]}
    subject = {"kind": "Group", "name": "system:authenticated", "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "everybody"}
    version = "rbac.authorization.k8s.io/v1"

    def write() -> None:
        role = {"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": "everybody"}, "rules": [rule]}
        client.create("clusterroles.rbac.authorization.k8s.io", role)
        binding = {
            "apiVersion": version,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "everybody"},
            "roleRef": reference,
            "subjects": [subject],
        }
        client.create("clusterrolebindings.rbac.authorization.k8s.io", binding)

    api.call(write)


def test_nobody_is_turned_away_with_a_status(api: RunningApi) -> None:
    with _stranger(api) as client:
        for path in ("/api", CONFIG_MAPS, "/version", "/nothing"):
            reply = client.get(path)
            assert reply.status_code == 401
            assert reply.json() == {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": "Unauthorized",
                "reason": "Unauthorized",
                "code": 401,
            }


def test_a_wrong_token_is_not_overlooked(api: RunningApi) -> None:
    for token in ("x", "a.b.c", "a" * 5000, "ey.ey.ey"):
        with _stranger(api, authorization=f"Bearer {token}") as client:
            assert client.get("/api").status_code == 401


@pytest.mark.kubectl
def test_a_client_certificate_carries_user_and_groups(api: RunningApi) -> None:
    _open_reviews(api)
    done = api.kubectl("auth", "whoami", "-o", "json", user=User("ada", ("engineers", "on-call")))
    assert '"username": "ada"' in done.stdout
    assert '"engineers"' in done.stdout and '"on-call"' in done.stdout and '"system:authenticated"' in done.stdout


def test_a_certificate_of_another_authority_does_not_get_in(api: RunningApi) -> None:
    from srearena.cluster.embedded.api.certificates import CertificateAuthority

    foreign = CertificateAuthority(b"somebody else", api.call(lambda: api.world.clock.now))
    pair = foreign.client_certificate(User("mallory", ("system:masters",)))
    folder = api.ca.parent
    (folder / "foreign.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(cafile=str(api.ca))
    context.load_cert_chain(folder / "foreign.pem")
    with httpx.Client(base_url=api.url, verify=context) as client:
        try:
            assert client.get("/api").status_code == 401
        except httpx.TransportError:
            return  # the handshake already failed


def test_a_bearer_token_authenticates_its_user(api: RunningApi) -> None:
    _open_reviews(api)
    with api.http(User("grace", ("navy",))) as client:
        assert _me(client) == {"username": "grace", "groups": ["navy", "system:authenticated"]}


def _account_token(api: RunningApi, http: httpx.Client, name: str = "robot", **spec: object) -> str:
    http.post("/api/v1/namespaces/default/serviceaccounts", json={"metadata": {"name": name}})
    reply = http.post(f"/api/v1/namespaces/default/serviceaccounts/{name}/token", json={"spec": spec})
    assert reply.status_code == 201, reply.text
    return str(reply.json()["status"]["token"])


def test_a_service_account_token_speaks_for_the_account_until_it_expires(api: RunningApi, http: httpx.Client) -> None:
    _open_reviews(api)
    token = _account_token(api, http, expirationSeconds=600)
    with _stranger(api, authorization=f"Bearer {token}") as client:
        me = _me(client)
        assert me["username"] == "system:serviceaccount:default:robot"
        assert me["groups"] == [
            "system:serviceaccounts",
            "system:serviceaccounts:default",
            "system:authenticated",
        ]
        api.advance(601)
        assert client.get("/api").status_code == 401


def test_a_token_does_not_outlive_its_account(api: RunningApi, http: httpx.Client) -> None:
    token = _account_token(api, http)
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    with _stranger(api, authorization=f"Bearer {token}") as client:
        assert client.get("/api").status_code == 403
        http.delete(f"{accounts}/robot").raise_for_status()
        assert client.get("/api").status_code == 401
        http.post(accounts, json={"metadata": {"name": "robot"}}).raise_for_status()
        assert client.get("/api").status_code == 401


def test_a_token_bound_to_a_secret_dies_with_it(api: RunningApi, http: httpx.Client) -> None:
    secrets = "/api/v1/namespaces/default/secrets"
    http.post(secrets, json={"metadata": {"name": "key"}}).raise_for_status()
    bound = {"kind": "Secret", "apiVersion": "v1", "name": "key"}
    token = _account_token(api, http, boundObjectRef=bound)
    with _stranger(api, authorization=f"Bearer {token}") as client:
        assert client.get("/api").status_code == 403
        http.delete(f"{secrets}/key").raise_for_status()
        assert client.get("/api").status_code == 401


def test_a_token_for_another_audience_is_no_good_here(api: RunningApi, http: httpx.Client) -> None:
    token = _account_token(api, http, audiences=["vault"])
    with _stranger(api, authorization=f"Bearer {token}") as client:
        assert client.get("/api").status_code == 401
    review = {"spec": {"token": token, "audiences": ["vault"]}}
    status = http.post("/apis/authentication.k8s.io/v1/tokenreviews", json=review).json()["status"]
    assert status["authenticated"] and status["audiences"] == ["vault"]
    status = http.post("/apis/authentication.k8s.io/v1/tokenreviews", json={"spec": {"token": token}}).json()["status"]
    assert not status.get("authenticated") and "audiences" in status["error"]


def test_a_token_is_signed(api: RunningApi, http: httpx.Client) -> None:
    head, body, signature = _account_token(api, http).split(".")
    forged = "A" * len(signature) if not signature.startswith("A" * 10) else "B" * len(signature)
    for wrong in (f"{head}.{body}.{forged}", f"{head}.{body}.", f"{head}.{body[:-4]}AAAA.{signature}"):
        with _stranger(api, authorization=f"Bearer {wrong}") as client:
            assert client.get("/api").status_code == 401


def test_impersonation_needs_permission_and_then_counts(api: RunningApi, http: httpx.Client) -> None:
    _open_reviews(api)
    assert _me(http, **{"impersonate-user": "ada"})["username"] == "ada"
    account = _me(http, **{"impersonate-user": "system:serviceaccount:default:robot"})
    assert "system:serviceaccounts:default" in account["groups"]  # type: ignore[operator]
    with api.http(User("bob")) as client:
        reply = client.get("/api", headers={"impersonate-user": "ada"})
        assert reply.status_code == 403
        assert reply.json()["message"] == (
            'users "ada" is forbidden: User "bob" cannot impersonate resource "users" in API group "" '
            "at the cluster scope"
        )
    reply = http.get("/api", headers={"impersonate-group": "admins"})
    assert reply.status_code == 400


def test_tokens_can_be_checked_with_the_keys_of_their_issuer(http: httpx.Client) -> None:
    configuration = http.get("/.well-known/openid-configuration").json()
    assert configuration["jwks_uri"] == f"{configuration['issuer']}/openid/v1/jwks"
    keys = http.get("/openid/v1/jwks").json()["keys"]
    http.post("/api/v1/namespaces/default/serviceaccounts", json={"metadata": {"name": "robot"}}).raise_for_status()
    path = "/api/v1/namespaces/default/serviceaccounts/robot/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["x"]}}
    token = http.post(path, json=request).json()["status"]["token"]
    check_signature(token, keys)
    head, payload, signature = token.split(".")
    algorithms = {key["alg"] for key in keys} | {json.loads(base64.urlsafe_b64decode(head + "=="))["alg"]}
    assert algorithms == {"RS256"} == set(configuration["id_token_signing_alg_values_supported"])
    with pytest.raises(NotValid):
        check_signature(f"{head}.{payload[:-2]}AA.{signature}", keys)


def test_a_token_can_come_as_a_websocket_subprotocol(api: RunningApi) -> None:
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    token = api.call(lambda: api.server.credentials.token(User("bob")))
    encoded = base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
    context = ssl.create_default_context(cafile=str(api.ca))
    url = f"{api.url.replace('https', 'wss')}/api/v1/namespaces/default/pods/p/exec?command=ls&stdout=1"
    for protocols, status in (
        (["v5.channel.k8s.io"], 401),
        ([f"base64url.bearer.authorization.k8s.io.{encoded}", "v5.channel.k8s.io"], 403),
    ):
        try:
            with connect(url, ssl=context, subprotocols=protocols):  # type: ignore[arg-type]
                raise AssertionError("it must not be accepted")
        except InvalidStatus as refused:
            assert refused.response.status_code == status


def test_keys_for_tokens_follow_from_the_secret() -> None:
    key, other = derived_rsa_key(b"secret", "signing"), derived_rsa_key(b"secrets", "signing")
    assert key.key_size == other.key_size == 2048
    numbers = key.private_numbers()
    derived_rsa_key.cache_clear()
    assert derived_rsa_key(b"secret", "signing").private_numbers() == numbers
    assert other.private_numbers() != numbers
    signature = key.sign(b"text", padding.PKCS1v15(), hashes.SHA256())
    # With the public numbers alone, which know nothing of the factors, and by the private exponent alone.
    numbers.public_numbers.public_key().verify(signature, b"text", padding.PKCS1v15(), hashes.SHA256())
    n = numbers.public_numbers.n
    assert pow(pow(2, numbers.d, n), numbers.public_numbers.e, n) == 2


def test_primes_differ_from_other_odd_numbers() -> None:
    def by_division(number: int) -> bool:
        return all(number % divisor for divisor in range(3, int(number**0.5) + 1, 2))

    odd = range(9, 20_001, 2)
    assert [is_probable_prime(number) for number in odd] == [by_division(number) for number in odd]
    assert is_probable_prime(2**521 - 1) and not is_probable_prime((2**521 - 1) * (2**127 - 1))
