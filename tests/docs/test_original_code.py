"""What the documents of the two original projects have their readers write and open, used as they say.

`original_documents.yaml` names these tests as the proof of the lines they are about.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import tomllib
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml

from sre_tools.offline_incident_analysis import Workspace, call_tool
from srearena.conductor.oracles.detection import DetectionOracle
from srearena.conductor.oracles.localization import LocalizationOracle
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.helpers import get_frontend_url
from srearena.config import load_config
from srearena.generators.fault.inject_virtual import VirtualizationFaultInjector
from srearena.generators.fault.testbed import target_cluster
from srearena.llm.providers import find_route
from srearena.paths import results_directory
from srearena.service.apps.base import Application
from srearena.service.apps.hotelres import HotelReservation
from srearena.snapshots.examples import unpack
from srearena.utils.decorators import mark_fault_injected
from tests.arena.episodes import SHOP, prepared_episode

ROOT = Path(__file__).parents[2]


class MyApp(Application):
    def __init__(self) -> None:
        super().__init__(Path(SHOP) / "metadata.json")


class MyProblem(Problem):
    """As the document writes one: the constructor does not call that of the base class."""

    def __init__(self) -> None:
        self.app = MyApp()
        self.faulty_service = "api"
        # === Attach evaluation oracles ===
        self.localization_oracle = LocalizationOracle(problem=self, expected=[self.faulty_service])
        self.mitigation_oracle = MitigationOracle(problem=self)

    @mark_fault_injected
    def inject_fault(self) -> None:
        injector = VirtualizationFaultInjector(testbed=self.namespace)
        injector.inject_fault(microservices=["api"], fault_type="misconfig")

    @mark_fault_injected
    def recover_fault(self) -> None:
        injector = VirtualizationFaultInjector(testbed=self.namespace)
        injector.recover_fault(microservices=["api"], fault_type="misconfig")


def test_a_problem_is_written_as_the_document_says() -> None:
    problem = MyProblem()
    with prepared_episode(problem) as episode:
        assert problem.fault_injected
        assert isinstance(problem.detection_oracle, DetectionOracle)
        assert get_frontend_url(problem.app, episode.cluster).startswith("http://")
        ports = problem.kubernetes.get("services", "api", problem.namespace)["spec"]["ports"]
        assert ports[0]["targetPort"] == 9999
        assert problem.localization_oracle is not None and problem.mitigation_oracle is not None
        assert problem.localization_oracle.evaluate(["api"]).passed
        assert not problem.localization_oracle.evaluate(["store"]).passed
        with target_cluster(episode.cluster):  # as the conductor calls it
            problem.recover_fault()
        assert not problem.fault_injected


def test_an_application_is_a_class_with_a_file_of_metadata() -> None:
    hotel = HotelReservation()
    assert hotel.namespace == "hotel-reservation" and hotel.manifests
    network = Application(ROOT / "srearena/service/metadata/social-network.json")
    assert network.name == "Social Network" and network.facts["Namespace"] == "social-network"


def test_the_example_configuration_is_copied_and_read(tmp_path: Path) -> None:
    copied = tmp_path / "config.yml"
    shutil.copy(ROOT / "srearena/config.yml.example", copied)
    assert load_config(copied).embedded, "as it is, the example selects nothing"
    text = copied.read_text()
    for host in ("kind", "localhost", "node0.example.org"):
        assert host in text or host.startswith("node0")
        filled = re.sub(r"^#? ?k8s_host:.*$", f"k8s_host: {host}", text, flags=re.MULTILINE)
        copied.write_text(re.sub(r"^#? ?k8s_user:.*$", "k8s_user: me", filled, flags=re.MULTILINE))
        assert not load_config(copied).embedded, host


@pytest.mark.parametrize("machine", ["x86", "arm"])
def test_the_kind_configurations_are_valid_with_and_without_the_mirror(machine: str) -> None:
    text = (ROOT / f"kind/kind-config-{machine}.yaml").read_text()
    plain = yaml.safe_load(text)
    assert (plain["kind"], plain["apiVersion"]) == ("Cluster", "kind.x-k8s.io/v1alpha4")
    assert [node["role"] for node in plain["nodes"]] == ["control-plane", "worker", "worker", "worker"]
    head, comment = text.split("# containerdConfigPatches", 1)
    uncommented = head + re.sub(r"^# ?", "", f"# containerdConfigPatches{comment}", flags=re.MULTILINE)
    patch = tomllib.loads(yaml.safe_load(uncommented)["containerdConfigPatches"][0])
    mirrors = patch["plugins"]["io.containerd.grpc.v1.cri"]["registry"]["mirrors"]
    assert mirrors["docker.io"]["endpoint"]


def test_the_repository_is_cloned_with_submodules(tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text("[safe]\n\tdirectory = *\n")  # the tests may run as another user
    environment = {**os.environ, "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    inside = subprocess.run(["git", "rev-parse", "--git-dir"], cwd=ROOT, env=environment, capture_output=True)
    if inside.returncode:
        pytest.skip("not a clone of the repository")
    words = ["git", "clone", "--quiet", "--recurse-submodules", "--shared", str(ROOT), str(tmp_path / "SREArena")]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "SREArena" / "cli.py").is_file()


def test_the_website_is_served_from_its_folder_with_a_built_demo() -> None:
    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(ROOT / "website"))

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_address[1]}"
            with urlopen(f"{address}/") as response:
                page = response.read().decode()
            linked = re.findall(r'(?:src|href)="((?!https?:|#|data:)[^"]+)"', page)
            assert linked
            for path in linked:
                with urlopen(f"{address}/{path}") as response:
                    assert response.status == 200
            with urlopen(f"{address}/data/index.js") as response:
                assert b"rules" in response.read()
        finally:
            server.shutdown()
            thread.join()


def test_the_architecture_in_the_shared_workspace_is_a_topology(tmp_path: Path) -> None:
    scenario = unpack(tmp_path)[0]
    shared = ROOT / "workspace" / "shared"
    with Workspace(scenario, cache=tmp_path / "cache", architecture=shared) as workspace:
        edges = call_tool(workspace, "build_topology", {"arch_file": "application_architecture.json"})["data"]
    assert any("product-catalog" in edge["target"] for edge in edges)


def test_the_playbooks_are_lists_of_plays() -> None:
    folder = ROOT / "scripts" / "ansible"
    named = set(re.findall(r"[\w.-]+\.yml", (folder / "README.md").read_text()))
    assert named
    for name in named - {"config.yml", "inventory.yml"}:
        assert list(folder.rglob(name)), name
    for path in folder.glob("*.yml"):
        document = yaml.safe_load(path.read_text())
        assert isinstance(document, list) or "inventory" in path.name, path


@pytest.mark.parametrize(
    ("model", "variable"), [("gpt-4o", "OPENAI"), ("qwen/qwen-max", "QWEN"), ("deepseek-chat", "DEEPSEEK")]
)
def test_the_keys_in_the_environment_file_are_used(model: str, variable: str) -> None:
    assert f"{variable}_API_KEY" in (ROOT / ".env.example").read_text()
    assert find_route(model, {f"{variable}_API_KEY": "secret"}).key == "secret"


def test_results_are_stored_where_the_document_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SREARENA_RESULTS", raising=False)
    assert results_directory() == Path("data/results")


def test_the_requirements_are_extras_of_the_project() -> None:
    (line,) = (line for line in (ROOT / "requirements.txt").read_text().splitlines() if not line.startswith("#"))
    match = re.fullmatch(r"-e \.\[([\w,]+)\]", line)
    assert match
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(match[1].split(",")) <= extras.keys()
