"""Kubeconfigs: every ordinary way to log in, and a clear word about the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from srearena.cluster import Cluster
from srearena.service.errors import KubeconfigError, Unreachable
from srearena.service.kubeconfig import read_kubeconfig
from srearena.service.kubernetes import Kubernetes

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(user: dict[str, Any], cluster: dict[str, Any] | None = None, **more: Any) -> Path:
        document = {
            "clusters": [{"name": "c", "cluster": cluster or {"server": "http://127.0.0.1:1"}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}],
            "current-context": "x",
            **more,
        }
        path = tmp_path / "config"
        path.write_text(yaml.safe_dump(document))
        return path

    return write


def test_tokens_inline_and_from_a_file_beside_it(write: Write, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    assert read_kubeconfig(write({"token": "t"})).headers == {"authorization": "Bearer t"}
    access = read_kubeconfig(write({"tokenFile": "token"}))
    assert access.headers == {"authorization": "Bearer from-file"} and access.namespace == "shop"


@pytest.mark.parametrize("plugin", ["exec", "auth-provider"])
def test_plugins_are_refused_with_advice(write: Write, plugin: str) -> None:
    with pytest.raises(
        KubeconfigError, match="plug-in, which is not supported here: use a client certificate or a token"
    ):
        read_kubeconfig(write({plugin: {"command": "aws"}}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"current-context": ""}, "has no current-context"),
        ({"current-context": "y"}, "no context named 'y'"),
        ({"clusters": []}, "no cluster named 'c'"),
        ({"users": None}, "no user named 'u'"),
    ],
)
def test_what_is_missing_is_named(write: Write, change: dict[str, Any], message: str) -> None:
    with pytest.raises(KubeconfigError, match=message):
        read_kubeconfig(write({}, **change))


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ({"server": ""}, "has no server address"),
        ({"server": "https://h", "certificate-authority-data": "%%"}, "certificate-authority-data is not base64"),
        ({"server": "https://h", "certificate-authority": "nowhere.pem"}, "nowhere.pem cannot be read"),
        ({"server": "https://h", "certificate-authority-data": "aGVsbG8="}, "certificate or key in it cannot be used"),
    ],
)
def test_broken_clusters_are_explained(write: Write, cluster: dict[str, Any], message: str) -> None:
    with pytest.raises(KubeconfigError, match=message):
        read_kubeconfig(write({}, cluster))


def test_files_that_are_no_kubeconfig(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="cannot be read: No such file"):
        read_kubeconfig(tmp_path / "none")
    (tmp_path / "list").write_text("- 1\n")
    with pytest.raises(KubeconfigError, match="holds no mapping"):
        read_kubeconfig(tmp_path / "list")
    (tmp_path / "broken").write_text("a: [\n")
    with pytest.raises(KubeconfigError, match="is not YAML"):
        read_kubeconfig(tmp_path / "broken")


def test_a_server_that_is_away_is_one_clear_line(write: Write) -> None:
    with Kubernetes(write({})) as api, pytest.raises(Unreachable, match=r"http://127\.0\.0\.1:1 cannot be reached"):
        api.list("pods")


def test_a_service_accounts_token_is_enough(cluster: Cluster, tmp_path: Path) -> None:
    with Kubernetes.of(cluster) as admin:
        token = admin.raw(
            "/api/v1/namespaces/default/serviceaccounts/default/token",
            method="POST",
            body={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
        )["status"]["token"]
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    document["users"] = [{"name": document["users"][0]["name"], "user": {"token": token}}]
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(document))
    with Kubernetes(path) as api:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        assert api.create(review)["status"]["userInfo"]["username"] == "system:serviceaccount:default:default"
