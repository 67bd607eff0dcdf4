"""`srearena cluster` from the outside: processes, files, exit codes and output."""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml

from srearena.cluster import Cluster, ClusterError, NodeAccessError, start_embedded

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "SREARENA_STATE_DIR": str(tmp_path / ("long" * 30) / "state")}


@pytest.fixture
def srearena(environment: dict[str, str]) -> Iterator[Run]:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "srearena", *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            env=environment,
            check=False,
        )

    yield run
    run("cluster", "down", "--all")


def answers(kubeconfig: str, path: str = "/readyz") -> str:
    """Send a request with the credentials of a kubeconfig."""
    config = yaml.safe_load(Path(kubeconfig).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    folder = Path(kubeconfig).parent
    for name, text in (
        ("ca", cluster["certificate-authority-data"]),
        ("cert", user["client-certificate-data"]),
        ("key", user["client-key-data"]),
    ):
        (folder / f"{name}.pem").write_bytes(base64.b64decode(text))
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    context.load_cert_chain(str(folder / "cert.pem"), str(folder / "key.pem"))
    with urlopen(cluster["server"] + path, context=context, timeout=10) as response:
        return str(response.read().decode())


def test_up_detached_list_and_down(srearena: Run, tmp_path: Path) -> None:
    up = srearena("cluster", "up", "--detach", "--nodes", "1", "--seed", "5", "--kubeconfig", str(tmp_path / "mine"))
    assert up.returncode == 0, up.stderr
    assert "export KUBECONFIG=" + str(tmp_path / "mine") in up.stdout
    assert answers(str(tmp_path / "mine")) == "ok"
    nodes = json.loads(answers(str(tmp_path / "mine"), "/api/v1/nodes"))["items"]
    assert [node["metadata"]["name"] for node in nodes] == ["control-plane", "worker-1"]
    (entry,) = json.loads(srearena("cluster", "list", "--json").stdout)
    assert (entry["name"], entry["workers"], entry["seed"]) == ("embedded", 1, 5)
    assert "embedded" in srearena("cluster", "list").stdout
    assert srearena("cluster", "advance", "3600").returncode == 0
    down = srearena("cluster", "down")
    assert down.stdout == "Cluster 'embedded' is down.\n"
    assert json.loads(srearena("cluster", "list", "--json").stdout) == []


def test_private_files_are_private(srearena: Run, environment: dict[str, str]) -> None:
    entry = json.loads(srearena("cluster", "up", "--detach", "--json").stdout)
    assert stat.S_IMODE(os.stat(entry["kubeconfig"]).st_mode) == 0o600
    directory = Path(environment["SREARENA_STATE_DIR"]) / "clusters" / "embedded"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_clusters_stand_side_by_side_and_share_nothing(srearena: Run) -> None:
    one = json.loads(srearena("cluster", "up", "--detach", "--json", "--name", "one").stdout)
    two = json.loads(srearena("cluster", "up", "--detach", "--json", "--name", "two", "--nodes", "2").stdout)
    assert one["url"] != two["url"]
    assert len(json.loads(answers(one["kubeconfig"], "/api/v1/nodes"))["items"]) == 4
    assert len(json.loads(answers(two["kubeconfig"], "/api/v1/nodes"))["items"]) == 3
    assert srearena("cluster", "down", "one").returncode == 0
    assert [entry["name"] for entry in json.loads(srearena("cluster", "list", "--json").stdout)] == ["two"]
    assert answers(two["kubeconfig"]) == "ok"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("up", "--nodes", "5001"), "the number of worker nodes must be between 0 and 5000, not 5001"),
        (("up", "--speed", "2000000"), "the speed must be between 0 and 1000000, not 2e+06"),
        (("up", "--name", "Not/Good"), "is not a valid name for a cluster"),
        (("down", "nobody"), "no cluster named 'nobody' is running (running: none)"),
        (("advance", "5", "--name", "nobody"), "no cluster named 'nobody' is running"),
    ],
)
def test_mistakes_get_one_clear_line(srearena: Run, arguments: tuple[str, ...], message: str) -> None:
    result = srearena("cluster", *arguments)
    assert result.returncode == 1
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert "Traceback" not in result.stderr


def test_a_name_is_used_once(srearena: Run) -> None:
    assert srearena("cluster", "up", "--detach").returncode == 0
    again = srearena("cluster", "up", "--detach")
    assert again.returncode == 1
    assert "a cluster named 'embedded' is running" in again.stderr


def test_a_taken_port_is_said(srearena: Run) -> None:
    first = json.loads(srearena("cluster", "up", "--detach", "--json", "--name", "first").stdout)
    port = first["url"].rpartition(":")[2]
    second = srearena("cluster", "up", "--detach", "--name", "second", "--port", port)
    assert second.returncode == 1
    assert "did not start" in second.stderr and "Traceback" not in second.stderr
    assert [entry["name"] for entry in json.loads(srearena("cluster", "list", "--json").stdout)] == ["first"]


def test_the_entry_of_a_killed_cluster_is_swept_away(srearena: Run) -> None:
    entry = json.loads(srearena("cluster", "up", "--detach", "--json").stdout)
    os.kill(entry["pid"], signal.SIGKILL)
    gone = json.loads(srearena("cluster", "list", "--json").stdout)
    while gone:
        gone = json.loads(srearena("cluster", "list", "--json").stdout)
    assert srearena("cluster", "up", "--detach").returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_in_the_foreground_it_ends_with_the_user(environment: dict[str, str], srearena: Run, number: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "srearena", "cluster", "up"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert "is up at https://127.0.0.1:" in process.stdout.readline()
    (entry,) = json.loads(srearena("cluster", "list", "--json").stdout)
    process.send_signal(number)
    rest, _ = process.communicate(timeout=20)
    assert "is down" in rest
    assert process.returncode == 0
    with pytest.raises(ProcessLookupError):
        os.kill(entry["pid"], 0)


def test_a_library_cluster_in_its_own_process_ends_with_its_parent() -> None:
    code = (
        "from srearena.cluster import start_embedded; import sys\n"
        "c = start_embedded(nodes=1); print(c.pid, flush=True); sys.stdin.read()"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    descriptor = os.pidfd_open(child) if _alive(child) else None
    if descriptor is not None:
        assert select.select([descriptor], [], [], 10)[0], "the cluster outlived its parent"
        os.close(descriptor)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_library_offers_both_homes() -> None:
    for in_process in (True, False):
        with start_embedded(nodes=1, in_process=in_process, seed=3) as cluster:
            before = json.loads(answers(str(cluster.kubeconfig), "/api/v1/namespaces/kube-system/pods"))
            cluster.wait(600)
            assert len(before["items"]) >= 6
            assert "stop_kubelet" in cluster.nodes.operations()
            cluster.nodes.perform("stop_kubelet", "worker-1")
            with pytest.raises(NodeAccessError, match="no operation 'paint'"):
                cluster.nodes.perform("paint", "worker-1")
            with pytest.raises(NodeAccessError, match="no node 'elsewhere'"):
                cluster.nodes.perform("stop_kubelet", "elsewhere")
        assert not cluster.kubeconfig.exists()


@pytest.mark.parametrize("in_process", [True, False])
def test_a_cluster_that_starts_behind_catches_up_with_the_present(in_process: bool) -> None:
    def moment(cluster: Cluster) -> float:
        """The cluster's time by its newest lease."""
        leases = json.loads(answers(str(cluster.kubeconfig), "/apis/coordination.k8s.io/v1/leases"))["items"]
        return max(datetime.fromisoformat(lease["spec"]["renewTime"]).timestamp() for lease in leases)

    with start_embedded(nodes=1, behind=900, in_process=in_process) as cluster:
        assert -920 < moment(cluster) - time.time() < -880
        cluster.wait(300)
        assert -620 < moment(cluster) - time.time() < -580
        cluster.catch_up()
        assert -20 < moment(cluster) - time.time() < 20


def test_bad_options_are_refused_before_anything_starts() -> None:
    with pytest.raises(ClusterError, match="must be between 0 and 5000"):
        start_embedded(nodes=-3)
