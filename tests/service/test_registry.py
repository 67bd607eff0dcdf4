"""Which applications there are, and what their metadata may say."""

from __future__ import annotations

import json
import os
import shutil
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest

from srearena.cluster import Cluster
from srearena.paths import METADATA
from srearena.service.apps import Application, all_applications, base, find_application, registry
from srearena.service.errors import ApplicationError, CommandFailed, ToolMissing
from srearena.service.frontend import Frontend, SampleRequest
from srearena.service.helm import Helm

OURS = {"Hotel Reservation", "Social Network", "Blueprint Hotel Reservation", "Online Boutique"}


def write(folder: Path, name: str = "Toy", /, **more: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "metadata.json"
    path.write_text(json.dumps({"Name": name, "Namespace": name.lower(), **more}))
    return path


def test_ours_are_all_there() -> None:
    found = {application.name: application for application in all_applications()}
    assert set(found) >= OURS
    for application in found.values():
        assert application.description and application.manifests and application.images()
        assert application.frontend is not None and application.frontend.requests
        assert "Helm Config" not in application.facts


@pytest.mark.parametrize("name", ["hotel-reservation", "Hotel Reservation", "hotel_reservation", " HOTEL-reservation"])
def test_an_application_goes_by_several_names(name: str) -> None:
    assert find_application(name).name == "Hotel Reservation"


def test_a_typo_gets_the_nearest_names() -> None:
    with pytest.raises(ApplicationError, match="no application 'hotle-reservation': did you mean hotel-reservation"):
        find_application("hotle-reservation")
    with pytest.raises(ApplicationError, match="there is no application 'zzz': there are "):
        find_application("zzz")


def test_a_users_folders_are_found_with_and_without_a_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "many" / "plain", "Plain")
    write(tmp_path / "many" / "classy", "Classy")
    (tmp_path / "many" / "classy" / "app.py").write_text(
        "from srearena.service.apps.base import Application\nclass Classy(Application):\n    special = 1\n"
    )
    (tmp_path / "many" / "no-application").mkdir()
    write(tmp_path / "alone", "Alone")
    monkeypatch.setenv("SREARENA_APPS", os.pathsep.join([str(tmp_path / "many"), str(tmp_path / "alone")]))
    assert {a.name for a in all_applications()} >= {"Plain", "Classy", "Alone", *OURS}
    assert find_application("classy").special == 1  # type: ignore[attr-defined]
    assert find_application(str(tmp_path / "alone")).name == "Alone"


def test_a_users_application_comes_before_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "mine", "Online Boutique", Desc="mine")
    monkeypatch.setenv("SREARENA_APPS", str(tmp_path))
    assert find_application("online-boutique").description == "mine"


def test_a_broken_one_of_a_users_is_warned_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "metadata.json").write_text("{")
    monkeypatch.setenv("SREARENA_APPS", f"{tmp_path}{os.pathsep}{tmp_path / 'gone'}")
    with pytest.warns(UserWarning) as caught:
        all_applications()
    warnings = [str(warning.message) for warning in caught]
    assert len(warnings) == 2
    assert (
        "cannot be loaded" in warnings[0]
        and ":1: this is not JSON" in warnings[0]
        and "which is not a folder" in warnings[1]
    )


class FromPackage(Application):
    def __init__(self) -> None:
        super().__init__("from_package.json")


def test_packages_bring_applications(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By entry point; the metadata lies in the folder of metadata, the class elsewhere."""
    entries = EntryPoints(
        [
            EntryPoint("toy", f"{__name__}:FromPackage", "srearena.applications"),
            EntryPoint("bad", "nowhere.at_all:Thing", "srearena.applications"),
        ]
    )
    shutil.copytree(METADATA, tmp_path, dirs_exist_ok=True)
    (tmp_path / "from_package.json").write_text(json.dumps({"Name": "Packed", "Namespace": "packed"}))
    monkeypatch.setattr(base, "METADATA", tmp_path)
    monkeypatch.setattr(registry, "entry_points", lambda group: entries)
    with pytest.warns(UserWarning, match=r"the application bad \(nowhere.at_all:Thing\) cannot be loaded"):
        assert find_application("packed").metadata_path == tmp_path / "from_package.json"


def test_metadata_without_a_class_is_an_application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bare.json").write_text(json.dumps({"Name": "Bare", "Namespace": "bare"}))
    monkeypatch.setattr(registry, "METADATA", tmp_path)
    assert find_application("bare").name == "Bare"


def test_a_class_finds_its_metadata_beside_it_or_says_where_it_looked() -> None:
    class Lost(Application):
        pass

    with pytest.raises(ApplicationError, match=r"metadata of Lost was not found: tried .*tests/service/metadata\.json"):
        Lost()


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ("[]", "an application's metadata is a JSON object"),
        ('{\n "Name": }', ":2: this is not JSON"),
        ('{"Namespace": "x"}', "the field 'Name' is missing"),
        ('{"Name": "x"}', "the field 'Namespace' is missing"),
    ],
)
def test_metadata_with_a_mistake_is_explained(tmp_path: Path, text: str, warnings: str) -> None:
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(ApplicationError, match=warnings):
        Application(path)


@pytest.mark.parametrize(
    ("field", "value", "warnings"),
    [
        ("Front Door", 3, "Front Door must be an object"),
        ("Front Door", {"service": "x"}, "needs a service .* and a port"),
        ("Front Door", {"service": "x", "port": 1, "prot": 1}, "Front Door has no field 'prot'; allowed are namespace"),
        ("Front Door", {"service": "x", "port": 1, "requests": [{"path": "x"}]}, "request 1 needs a path"),
        ("Front Door", {"service": "x", "port": 1, "requests": [{"pth": "/"}]}, "request 1 has no field 'pth'"),
        ("Objectives", {"success_ratio": 2}, "success_ratio is at most 1"),
        ("Objectives", {"p95_seconds": "x"}, "p95_seconds must be a positive number"),
        ("Objectives", {"p95": 1}, "Objectives has no field 'p95'"),
        ("Helm Config", {"release_name": "x"}, "Helm Config lacks chart_path, namespace"),
        ("Helm Config", 3, "Helm Config must be an object"),
    ],
)
def test_special_fields_are_checked(tmp_path: Path, field: str, value: Any, warnings: str) -> None:
    with pytest.raises(ApplicationError, match=warnings):
        Application(write(tmp_path, **{field: value}))


def test_the_agent_is_told_everything_but_the_chart(tmp_path: Path) -> None:
    config = {"release_name": "r", "chart_path": "chart", "namespace": "toy"}
    application = Application(write(tmp_path, **{"Helm Config": config, "Anything": {"at": "all"}}))
    assert application.facts == {"Name": "Toy", "Namespace": "toy", "Anything": {"at": "all"}}
    assert application.helm_config is not None and application.helm_config.release_name == "r"


def test_objectives_have_sensible_defaults(tmp_path: Path) -> None:
    promises = Application(write(tmp_path)).objectives
    assert (promises.success_ratio, promises.p95_seconds) == (0.99, 1.0)


def test_a_sample_request_fits_its_answer_only() -> None:
    request = SampleRequest("/", status=200, contains="ok")
    assert request.matches(200, "it is ok") and not request.matches(200, "no") and not request.matches(500, "ok")
    assert Frontend.parse({"service": "s", "port": 80}, "x").requests == ()


def test_without_helm_a_chart_cannot_be_deployed(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"release_name": "r", "chart_path": "chart", "namespace": "toy"}
    application = Application(write(tmp_path, **{"Helm Config": config}))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match=r"helm is not installed: .* https://helm.sh"):
        application.deploy(cluster)


CHART = {
    "Chart.yaml": "apiVersion: v2\nname: toy\nversion: 0.1.0\n",
    "values.yaml": "image: nginx:1.27\n",
    "templates/web.yaml": """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-web
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "{{ .Values.image }}"}]
""",
}


@pytest.mark.skipif("not __import__('shutil').which('helm')", reason="helm is not installed")
def test_a_chart_is_deployed_by_the_real_helm(tmp_path: Path, cluster: Cluster) -> None:
    for name, text in CHART.items():
        path = tmp_path / "chart" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    config = {"release_name": "r", "chart_path": "chart", "namespace": "toy", "values": {"image": "nginx:1.28"}}
    application = Application(write(tmp_path, **{"Helm Config": config}))
    application.deploy(cluster)
    application.wait_until_ready(cluster)
    helm = Helm(cluster.kubeconfig)
    every = ("list", "--all-namespaces", "--all", "--output=json")
    assert [release["name"] for release in json.loads(helm.run(*every))] == ["r"]
    application.delete(cluster)
    assert json.loads(helm.run(*every)) == []
    with pytest.raises(CommandFailed, match="not found"):
        helm.run("status", "r")
