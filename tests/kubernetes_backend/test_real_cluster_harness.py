"""What the single-machine cluster is made of: images, sources and fingerprints of incidents; nothing is compiled."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from srearena.conductor.problems.admission import AdmissionWebhookTlsMismatch
from srearena.conductor.shared_cluster.telemetry import stack
from srearena.generators.fault.actors import KUBECTL
from srearena.generators.fault.inject_node import FORTIO
from srearena.generators.workload.wrk import IMAGE as WRK_IMAGE
from srearena.service.apps import find_application
from srearena.service.manifests import images_of
from tests.real_cluster.addons import AGNHOST
from tests.real_cluster.applications import (
    APPLICATIONS,
    actors,
    bundles,
    hotel_reservation,
    parse_source,
    telemetry,
)
from tests.real_cluster.compiling import SourceFolder
from tests.real_cluster.fingerprints import agreement, differences, state_of, workload_of
from tests.real_cluster.images import Image, tar_layer, write_archive
from tests.real_cluster.machines import RealClusterError
from tests.real_cluster.signals import words
from tests.real_cluster.transfer import row


def full_name(image: str) -> str:
    """An image's name as containerd completes it."""
    name, _, tag = image.partition(":")
    first = name.partition("/")[0]
    if "/" not in name:
        name = f"docker.io/library/{name}"
    elif "." not in first:
        name = f"docker.io/{name}"
    return f"{name}:{tag or 'latest'}"


def test_an_archive_holds_each_layer_once_under_its_digest(tmp_path: Path) -> None:
    base, top = (
        tar_layer(folders=("bin",)),
        tar_layer(files={"bin/program": b"content"}, links={"bin/alias": "program"}),
    )
    images = {
        "docker.io/library/one:1": Image({"Cmd": ["one"]}, (lambda: top,)),
        "docker.io/library/two:1": Image({"Cmd": ["two"]}, (lambda: top,)),
        "docker.io/library/bare:1": Image({}),
    }
    write_archive(tmp_path / "images.tar", images, base=lambda: base)
    with tarfile.open(tmp_path / "images.tar") as archive:
        names = archive.getnames()
        contents = {name: archive.extractfile(name).read() for name in names}  # type: ignore[union-attr]
    manifest = json.loads(contents["manifest.json"])
    assert [entry["RepoTags"] for entry in manifest] == [[name] for name in images]
    assert len([name for name in names if name.endswith(".tar")]) == 2 and len(names) == len(set(names))
    for entry in manifest:
        config = json.loads(contents[entry["Config"]])
        digests = [f"sha256:{hashlib.sha256(contents[layer]).hexdigest()}" for layer in entry["Layers"]]
        assert config["rootfs"]["diff_ids"] == digests
        assert any(line.startswith("PATH=") for line in config["config"]["Env"])
    with tarfile.open(fileobj=io.BytesIO(top)) as layer:
        assert layer.getmember("bin/program").mode & 0o111
        assert layer.getmember("bin/alias").linkname == "program"


def test_every_image_of_hotel_reservation_can_be_made(tmp_path: Path) -> None:
    made = set(hotel_reservation(SourceFolder("hotel_reservation", tmp_path)).images)
    app = find_application("hotel_reservation")
    assert made == {full_name(image) for image in [*app.images(), WRK_IMAGE]}


def test_faults_that_act_in_the_cluster_have_the_images_they_name() -> None:
    assert set(actors().images) == {full_name(KUBECTL), full_name(FORTIO)}
    assert AdmissionWebhookTlsMismatch.server["image"] == AGNHOST.image, "every real cluster has it"


def test_images_of_the_telemetry_have_the_names_of_its_manifests() -> None:
    used = {full_name(image) for manifest in stack() for image in images_of(manifest.obj)}
    assert set(telemetry().images) <= used


@pytest.mark.parametrize("text", ["hotel_reservation", "social_network=/tmp", "hotel_reservation=/no/such/folder"])
def test_a_source_that_cannot_be_used_is_refused(text: str) -> None:
    with pytest.raises(RealClusterError, match="--source"):
        parse_source(text)


def test_a_folder_without_a_module_is_refused(tmp_path: Path) -> None:
    source = parse_source(f"hotel_reservation={tmp_path}")
    with pytest.raises(RealClusterError, match=r"no go\.mod"):
        bundles([source])
    assert set(APPLICATIONS) == {"hotel_reservation"}


def test_what_was_built_belongs_to_the_content_of_its_source(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name / "cmd").mkdir(parents=True)
        (tmp_path / name / "go.mod").write_text("module m\n")
        (tmp_path / name / "cmd" / "main.go").write_text("package main\n")
    one, other = (SourceFolder("app", tmp_path / name) for name in ("one", "other"))
    assert one.path == other.path
    (tmp_path / "other" / "cmd" / "main.go").write_text("package main // changed\n")
    assert one.path != other.path


def pod(name: str, owner: str, kind: str = "ReplicaSet", **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "ownerReferences": [{"kind": kind, "name": owner}]}, "status": status}


def test_pods_are_known_by_their_workload() -> None:
    assert workload_of(pod("geo-5d9f-x7x", "geo-5d9f")) == "geo"
    assert workload_of(pod("db-0", "db", "StatefulSet")) == "db"
    assert workload_of({"metadata": {"name": "lonely"}}) == "lonely"


def test_a_crashing_container_looks_the_same_at_every_moment() -> None:
    ended = {"terminated": {"exitCode": 1}}
    moments: list[dict[str, Any]] = [
        {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended},
        {"state": ended, "lastState": {}},
    ]
    seen = {state_of(pod("a-1-1", "a-1", phase="Running", containerStatuses=[one])) for one in moments}
    assert seen == {"Running not ready CrashLoopBackOff"}
    running = {"state": {"running": {}}, "lastState": ended, "ready": True}
    conditions = [{"type": "Ready", "status": "True"}]
    healthy = pod("a-1-1", "a-1", phase="Running", containerStatuses=[running], conditions=conditions)
    assert state_of(healthy) == "Running ready"


def test_agreement_is_the_share_of_symptoms_that_both_show() -> None:
    one = {"pods": ["a: Running ready", "b: Pending not ready", "c: Failed not ready"], "warnings": [], "restarts": []}
    other = {
        "pods": ["a: Running ready", "b: Running ready", "c: Failed not ready"],
        "warnings": ["Pod b: Failed"],
        "restarts": [],
        "alerts": ["PodFailed c"],
    }
    shares = agreement(one, other)
    assert shares["pods"] == pytest.approx(1 / 3), "b differs, c agrees, and a is healthy on both"
    assert shares["warnings"] == 0 and shares["restarts"] is None
    assert "alerts" not in shares, "one of them was recorded without"
    assert differences(one, other) == {
        "pods": (["b: Pending not ready"], ["b: Running ready"]),
        "warnings": ([], ["Pod b: Failed"]),
    }


def test_golden_signals_in_words() -> None:
    steady = {"traffic": [10.0, 8.0], "latency": [5.0, 9.0], "errors": [0.0, 0.05]}
    slow = {"traffic": [10.0, 2.0], "latency": [5.0, 400.0], "errors": [0.0, 0.5]}
    rare = {"traffic": [0.1, 0.0], "latency": [5.0, 0.0], "errors": [0.0, 0.0]}
    silent = {"traffic": [10.0, 0.0], "latency": [5.0, 0.0], "errors": [0.0, 0.0]}
    found = words({"steady": steady, "slow": slow, "rare": rare, "silent": silent})
    assert found == ["silent: no traffic", "slow: errors", "slow: less traffic", "slow: slower, 100 times"]


@pytest.mark.parametrize(("real", "cell"), [(None, "not recorded"), (20.0, "5 / 20")])
def test_an_older_recording_has_no_times(real: float | None, cell: str) -> None:
    empty: dict[str, Any] = {"fingerprint": {}, "steps": {}, "notes": []}
    recorded = empty if real is None else {**empty, "first": {"warning": real}, "recovery": real}
    line = row("x", recorded, {**empty, "first": {"alert": 9.0, "warning": 5.0}, "recovery": 5.0})
    assert line.endswith(f"| equal | {cell} | {cell} |")
