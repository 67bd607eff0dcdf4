"""On a cluster that is not ours the agent's access ends too: rights, credentials, and sessions through the proxy."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
import yaml

from srearena.cluster import Cluster
from srearena.conductor.episode.agent_access import ACCOUNT, NAMESPACE, OnCallAccess, freeze, grant
from srearena.conductor.shared_cluster import SharedCluster
from srearena.conductor.validity.rights import Account, Rights
from srearena.service.errors import ApiRefused, Unreachable
from srearena.service.kubeconfig import read_kubeconfig
from srearena.service.kubernetes import Kubernetes
from tests.kubernetes_backend.test_leaving import hook, named, shared_cluster

SHOP = OnCallAccess(("shop",))


@pytest.fixture
def shared(theirs: Cluster) -> Iterator[SharedCluster]:
    cluster = shared_cluster(theirs, "shop", NAMESPACE)
    try:
        yield cluster
    finally:
        cluster.close()


def check_rights(api: Kubernetes, kubeconfig: Path) -> None:
    """The agent cannot widen its rights, and is refused what would do it."""
    assert Rights(api).excess(Account(NAMESPACE, ACCOUNT)) == []
    pod = named("Pod", "v1", "agents", spec={"containers": [{"name": "c", "image": "busybox:1.36"}]})
    with Kubernetes(kubeconfig) as client:
        client.create(pod, "shop")
        for obj, namespace in ((pod, "kube-system"), (pod, "default"), (hook("agents"), None)):
            with pytest.raises(ApiRefused, match="forbidden"):
                client.create(obj, namespace)
        client.delete("pods", "agents", "shop", grace=0)


def check_freeze(shared: SharedCluster, ours: Kubernetes, kubeconfig: Path, folder: Path) -> None:
    """Open connections are cut, new ones refused, and the token is worth nothing at the API server itself."""
    direct = folder / "direct"
    document = yaml.safe_load(kubeconfig.read_text())
    administrator = yaml.safe_load(shared.kubeconfig.read_text())
    document["clusters"][0]["cluster"] = administrator["clusters"][0]["cluster"]
    direct.write_text(yaml.safe_dump(document))
    access = read_kubeconfig(kubeconfig)
    began, ended = threading.Event(), threading.Event()

    def watch() -> None:
        url = f"{access.server}/api/v1/namespaces/shop/serviceaccounts?watch=1"
        with (
            suppress(httpx.HTTPError),
            httpx.stream(
                "GET", url, headers=access.headers, verify=access.tls or True, timeout=120, trust_env=False
            ) as response,
        ):
            for _ in response.iter_lines():
                began.set()
        ended.set()

    threading.Thread(target=watch, daemon=True).start()
    assert began.wait(30)
    assert not ended.is_set()
    with Kubernetes(kubeconfig) as client, Kubernetes(direct) as around:
        client.list("pods", "shop")
        around.list("pods", "shop")
        freeze(shared, ours, SHOP, None)
        assert ended.wait(30), "a watch has outlived the access"
        with pytest.raises(Unreachable):
            client.list("pods", "shop")
        with pytest.raises(ApiRefused):
            around.list("pods", "shop")


def test_the_rights_and_the_end_of_the_access(shared: SharedCluster, tmp_path: Path) -> None:
    with Kubernetes.of(shared) as ours:
        ours.create(named("Namespace", "v1", "shop"))
        path = grant(shared, ours, SHOP, tmp_path)
        ours.wait_for(lambda: ours.find("serviceaccounts", "default", "shop"), 30)
        check_rights(ours, path)
        check_freeze(shared, ours, path, tmp_path)
