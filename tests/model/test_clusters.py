"""Models belong to the cluster that was given them, also where several clusters share a process."""

from __future__ import annotations

from pathlib import Path

import yaml

from srearena.cluster import Cluster, start_embedded
from srearena.service.kubernetes import Kubernetes


def speaking(folder: Path, words: str, tag: str = "latest") -> Path:
    """A model whose program, the image `acme/speaker`, says something and ends."""
    program = {
        "name": "speaker",
        "runtime": "go",
        "images": ["acme/speaker"],
        "tags": [tag],
        "settings": {"word": {"env": "WORD"}},
        "start": [{"need": "word", "else": {"log": words, "exit": 3}}],
    }
    folder.mkdir()
    (folder / "model.yaml").write_text(yaml.safe_dump({"application": folder.name, "programs": [program]}))
    return folder


def cluster_with(*models: Path) -> Cluster:
    return start_embedded(nodes=1, speed=0, in_process=True, models=models)


def outcome(cluster: Cluster, name: str, tag: str = "latest") -> str:
    """What a new pod of the image says, or else what it waits for."""
    spec = {"containers": [{"name": "main", "image": f"acme/speaker:{tag}"}], "restartPolicy": "Never"}
    with Kubernetes.of(cluster) as api:
        api.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}
        )
        cluster.wait(30)
        (status,) = api.get("pods", name, "default")["status"]["containerStatuses"]
        waiting = status["state"].get("waiting")
        return str(waiting["reason"]) if waiting else api.logs(name, "default")


def test_clusters_of_one_process_do_not_see_each_others_models(tmp_path: Path) -> None:
    one, other = speaking(tmp_path / "one", "I am the first"), speaking(tmp_path / "other", "I am the second")
    with cluster_with(one) as first, cluster_with(other) as second, cluster_with() as third:
        assert "I am the first" in outcome(first, "a")
        assert "I am the second" in outcome(second, "a")
        assert outcome(third, "a") in ("ErrImagePull", "ImagePullBackOff")
        assert "I am the first" in outcome(first, "b")


def test_models_of_one_cluster_may_share_a_repository(tmp_path: Path) -> None:
    old, new = speaking(tmp_path / "old", "I am old", "1.0"), speaking(tmp_path / "new", "I am new", "2.0")
    with cluster_with(old, new) as cluster:
        assert "I am old" in outcome(cluster, "a", "1.0")
        assert "I am new" in outcome(cluster, "b", "2.0")
