"""The Python clients people use, unmodified: kubernetes, kr8s and lightkube."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kr8s
import lightkube
import pytest
from kr8s.objects import ConfigMap as Kr8sConfigMap
from kr8s.objects import Deployment as Kr8sDeployment
from kr8s.objects import Pod as Kr8sPod
from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.stream import portforward, stream
from lightkube.core.exceptions import ApiError
from lightkube.models.autoscaling_v1 import ScaleSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Pod
from lightkube.types import PatchType

from tests.clusters import RunningApi

# These clients leave sockets to the garbage collector, which says so.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def _swept() -> Iterator[None]:
    """Collect what a client left behind before the next test could be blamed for it."""
    yield
    gc.collect()


WEB: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "a", "image": "nginx:1.27"}]},
        },
    },
}


def _official(api: RunningApi) -> client.ApiClient:
    return config.new_client_from_config(str(api.kubeconfig))


def test_the_official_client_creates_lists_patches_and_deletes(api: RunningApi) -> None:
    with _official(api) as connection:
        core, apps = client.CoreV1Api(connection), client.AppsV1Api(connection)
        assert {namespace.metadata.name for namespace in core.list_namespace().items} >= {"default", "kube-system"}
        config_map = core.create_namespaced_config_map(
            "default", client.V1ConfigMap(metadata=client.V1ObjectMeta(name="c"), data={"a": "1"})
        )
        assert config_map.metadata.uid and config_map.data == {"a": "1"}
        core.patch_namespaced_config_map("c", "default", {"data": {"b": "2"}})
        config_map = core.read_namespaced_config_map("c", "default")
        assert config_map.data == {"a": "1", "b": "2"}
        config_map.data = {"c": "3"}
        assert core.replace_namespaced_config_map("c", "default", config_map).data == {"c": "3"}
        with pytest.raises(ApiException) as conflict:
            core.create_namespaced_config_map("default", client.V1ConfigMap(metadata=client.V1ObjectMeta(name="c")))
        assert conflict.value.status == 409
        apps.create_namespaced_deployment("default", WEB)
        apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 5}})
        assert apps.read_namespaced_deployment_scale("web", "default").spec.replicas == 5
        core.delete_namespaced_config_map("c", "default")
        with pytest.raises(ApiException) as missing:
            core.read_namespaced_config_map("c", "default")
        assert missing.value.status == 404


def test_the_official_client_watches_and_pages(api: RunningApi) -> None:
    with _official(api) as connection:
        core = client.CoreV1Api(connection)
        for name in ("a", "b", "c"):
            core.create_namespaced_config_map("default", client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name)))
        page = core.list_namespaced_config_map("default", limit=2)
        rest = core.list_namespaced_config_map("default", limit=2, _continue=page.metadata._continue)
        assert [c.metadata.name for c in (*page.items, *rest.items)] == ["a", "b", "c"]
        watcher = watch.Watch()
        seen = []
        for event in watcher.stream(core.list_namespaced_config_map, "default", timeout_seconds=20):
            seen.append((event["type"], event["object"].metadata.name))
            if len(seen) == 3:
                threading.Thread(target=core.delete_namespaced_config_map, args=("b", "default")).start()
            if event["type"] == "DELETED":
                watcher.stop()
        assert seen == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c"), ("DELETED", "b")]


def test_the_official_client_streams_into_pods(pods: RunningApi) -> None:
    with _official(pods) as connection:
        core = client.CoreV1Api(connection)
        arguments = {"container": "main", "stderr": True, "stdin": False, "stdout": True, "tty": False}
        output = stream(core.connect_get_namespaced_pod_exec, "talker", "default", command=["echo", "hi"], **arguments)
        assert output == "hi\n"
    with _official(pods) as connection:
        core = client.CoreV1Api(connection)
        session = stream(
            core.connect_get_namespaced_pod_exec,
            "talker",
            "default",
            command=["sh", "-c", "exit 3"],
            _preload_content=False,
            **arguments,
        )
        session.run_forever(timeout=20)
        assert session.returncode == 3
        session.close()
    with _official(pods) as connection:
        core = client.CoreV1Api(connection)
        assert core.read_namespaced_pod_log("talker", "default", container="main", tail_lines=1).startswith("line ")
        forward = portforward(core.connect_get_namespaced_pod_portforward, "talker", "default", ports="80")
        socket = forward.socket(80)
        socket.settimeout(20)
        socket.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert socket.recv(1024).startswith(b"HTTP/1.1 200")
        socket.close()


def test_kr8s(pods: RunningApi) -> None:
    connection = kr8s.api(kubeconfig=str(pods.kubeconfig))
    assert connection.version()["gitVersion"] == "v1.34.0"
    config_map = Kr8sConfigMap({"metadata": {"name": "k", "namespace": "default"}, "data": {"a": "1"}}, api=connection)
    config_map.create()
    config_map.patch({"data": {"b": "2"}})
    assert Kr8sConfigMap.get("k", namespace="default", api=connection).raw["data"] == {"a": "1", "b": "2"}
    deployment = Kr8sDeployment(WEB, api=connection)
    deployment.create()
    deployment.scale(3)
    deployment.refresh()
    assert deployment.replicas == 3
    assert [item.name for item in connection.get("configmaps", namespace="default", label_selector={})] == ["k"]
    config_map.delete()
    assert not config_map.exists()
    pod = Kr8sPod.get("talker", namespace="default", api=connection)
    assert next(iter(pod.logs(container="main", tail_lines=1))).startswith("line ")
    assert pod.exec(["echo", "hello"], container="main").stdout == b"hello\n"


def _lightkube(path: Path) -> lightkube.Client:
    return lightkube.Client(config=lightkube.KubeConfig.from_file(str(path)), field_manager="tester")


def test_lightkube(pods: RunningApi) -> None:
    connection = _lightkube(pods.kubeconfig)
    config_map = connection.create(ConfigMap(metadata=ObjectMeta(name="l", namespace="default"), data={"a": "1"}))
    assert config_map.metadata and config_map.metadata.uid
    changed = connection.patch(ConfigMap, "l", {"data": {"b": "2"}}, namespace="default", patch_type=PatchType.MERGE)
    assert changed.data == {"a": "1", "b": "2"}
    applied = ConfigMap(
        apiVersion="v1", kind="ConfigMap", metadata=ObjectMeta(name="s", namespace="default"), data={"x": "y"}
    )
    assert connection.apply(applied).data == {"x": "y"}
    connection.create(Deployment.from_dict(WEB))
    connection.patch(Deployment.Scale, "web", {"spec": {"replicas": 4}}, namespace="default")
    scale = connection.get(Deployment.Scale, "web", namespace="default")
    assert isinstance(scale.spec, ScaleSpec) and scale.spec.replicas == 4
    listed = connection.list(ConfigMap, namespace="default", chunk_size=1)
    assert [item.metadata.name for item in listed if item.metadata] == ["l", "s"]
    for kind, obj in connection.watch(ConfigMap, namespace="default", server_timeout=20):
        assert (kind, obj.metadata and obj.metadata.name) == ("ADDED", "l")
        break
    assert next(iter(connection.log("talker", namespace="default", container="main"))).startswith("line 0")
    assert connection.get(Pod, "talker", namespace="default").status.phase == "Running"  # type: ignore[union-attr]
    connection.delete(ConfigMap, "l", namespace="default")
    with pytest.raises(ApiError) as missing:
        connection.get(ConfigMap, "l", namespace="default")
    assert missing.value.status.code == 404
