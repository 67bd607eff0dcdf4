"""How quick and how small an embedded cluster is, and how its cost grows.

    python benchmarks/cluster.py                        every case, as a table
    python benchmarks/cluster.py --only start --only idle
    python benchmarks/cluster.py --only idle --size 20  one size instead of the usual ones
    python benchmarks/cluster.py --json                 for machines

Each row is measured on clusters in fresh processes of their own, reached as users reach them: through
`start_embedded`, the kubeconfig and HTTPS. Times are given twice: on the wall, which other work on the machine
stretches, and as the processor time of the cluster's process, which it hardly does. Nothing here passes or fails:
the aims are printed beside what was reached. Needs Linux (it reads /proc), and kubectl for the case about kubectl.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import os
import platform
import shutil
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from srearena.cluster import Cluster, start_embedded

PODS_PER_NODE = 100
"""Replicas that are counted on per worker node; a node takes 110 pods, and the system has some of its own."""
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Figure:
    case: str
    size: int
    what: str
    value: float
    unit: str
    aim: str = ""


# What is measured with


class Api:
    """One connection to a cluster's API, as its administrator."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cadata=_decoded(cluster["certificate-authority-data"]))
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as pair:
            pair.write(_decoded(user["client-certificate-data"]) + _decoded(user["client-key-data"]))
            pair.flush()
            context.load_cert_chain(pair.name)
        address = urlsplit(cluster["server"])
        self._connection = http.client.HTTPSConnection(address.hostname or "", address.port, context=context)

    def get(self, path: str, accept: str = "application/json") -> bytes:
        return self._ask("GET", path, {"accept": accept})

    def json(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.get(path))
        return found

    def create(self, path: str, obj: dict[str, Any]) -> None:
        self._ask("POST", path, {"content-type": "application/json"}, json.dumps(obj).encode())

    def _ask(self, method: str, path: str, headers: dict[str, str], body: bytes | None = None) -> bytes:
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        data = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path} answered {answer.status}: {data.decode(errors='replace')[:500]}")
        return data


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode()


@dataclass(slots=True)
class Cost:
    wall: float = 0.0
    cpu: float = 0.0


def cpu_seconds(pid: int) -> float:
    """Processor time a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def resident_megabytes(pid: int, field: str = "VmRSS") -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    return 0.0


@contextmanager
def measured(cluster: Cluster) -> Iterator[Cost]:
    """What a block costs, in wall time and in processor time of the cluster's process."""
    cost, pid = Cost(), _pid(cluster)
    cpu, wall = cpu_seconds(pid), time.perf_counter()
    yield cost
    cost.wall, cost.cpu = time.perf_counter() - wall, cpu_seconds(pid) - cpu


def _pid(cluster: Cluster) -> int:
    pid: int = cluster.pid  # type: ignore[attr-defined]
    return pid


def workers_for(pods: int) -> int:
    return max(3, -(-pods // PODS_PER_NODE))


def web_server(name: str, replicas: int) -> dict[str, Any]:
    """A Deployment of nginx with the probes that people give theirs."""
    check = {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 10}
    container = {
        "name": "web",
        "image": "nginx:1.27",
        "ports": [{"containerPort": 80}],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
        "readinessProbe": check,
        "livenessProbe": check,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
        },
    }


def deploy(cluster: Cluster, api: Api, name: str, replicas: int) -> None:
    """Create a Deployment and let time pass until every replica is ready."""
    api.create("/apis/apps/v1/namespaces/default/deployments", web_server(name, replicas))
    for _ in range(600):
        cluster.wait(1)
        status = api.json(f"/apis/apps/v1/namespaces/default/deployments/{name}")["status"]
        if status.get("readyReplicas", 0) >= replicas:
            return
    raise SystemExit(f"deployment {name} is not ready after ten virtual minutes: {status}")


def populate(cluster: Cluster, api: Api, pods: int) -> None:
    """Deployments of five web servers each, with a Service in front of every one."""
    for number in range(0, pods, 5):
        name = f"shop-{number // 5}"
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"app": name}, "ports": [{"port": 80}]},
        }
        api.create("/api/v1/namespaces/default/services", service)
        replicas = min(5, pods - number)
        api.create("/apis/apps/v1/namespaces/default/deployments", web_server(name, replicas))
    cluster.wait(120)
    found = api.json("/apis/apps/v1/namespaces/default/deployments")["items"]
    ready = sum(item["status"].get("readyReplicas", 0) for item in found)
    if ready != pods:
        raise SystemExit(f"only {ready} of {pods} pods are ready after two virtual minutes")


# The cases


def start(workers: int) -> Iterator[Figure]:
    """From the start of a process to the first good answer of /readyz."""
    times, costs = [], []
    for _ in range(5):
        begun = time.perf_counter()
        with start_embedded(nodes=workers) as cluster:
            Api(cluster.kubeconfig).get("/readyz")
            times.append(time.perf_counter() - begun)
            costs.append(cpu_seconds(_pid(cluster)))
    aim = "< 1 s" if workers == 3 else ""
    yield Figure("start", workers, "process start to /readyz, wall", statistics.median(times), "s", aim)
    yield Figure("start", workers, "process start to /readyz, CPU", statistics.median(costs), "s")
    with tempfile.TemporaryDirectory() as state:
        environment = {**os.environ, "SREARENA_STATE_DIR": state}
        command = [sys.executable, "-m", "srearena", "cluster"]
        begun = time.perf_counter()
        subprocess.run(
            [*command, "up", "--detach", "--nodes", str(workers)], env=environment, check=True, capture_output=True
        )
        took = time.perf_counter() - begun
        subprocess.run([*command, "down"], env=environment, check=True, capture_output=True)
    yield Figure("start", workers, "`srearena cluster up --detach`, wall", took, "s")


def memory(pods: int) -> Iterator[Figure]:
    """Resident memory of a cluster full of running pods."""
    with start_embedded(nodes=workers_for(pods), speed=0) as cluster:
        empty = resident_megabytes(_pid(cluster))
        populate(cluster, Api(cluster.kubeconfig), pods)
        full = resident_megabytes(_pid(cluster))
        cluster.wait(3600)
        later = resident_megabytes(_pid(cluster))
    yield Figure("memory", pods, "RSS without pods", empty, "MB")
    yield Figure("memory", pods, "RSS, all pods ready", full, "MB", "< 150 MB" if pods == 100 else "")
    yield Figure("memory", pods, "RSS a virtual hour later", later, "MB")


def rollout(replicas: int) -> Iterator[Figure]:
    """One Deployment, from its creation to the last replica Ready, at full speed."""
    with start_embedded(nodes=workers_for(replicas), speed=0) as cluster:
        api = Api(cluster.kubeconfig)
        with measured(cluster) as cost:
            deploy(cluster, api, "web", replicas)
        peak = resident_megabytes(_pid(cluster), "VmHWM")
    aim = "< 5 s" if replicas == 1000 else ""
    yield Figure("rollout", replicas, "creation to all Ready, wall", cost.wall, "s", aim)
    yield Figure("rollout", replicas, "creation to all Ready, CPU", cost.cpu, "s")
    yield Figure("rollout", replicas, "CPU per replica", 1000 * cost.cpu / replicas, "ms")
    yield Figure("rollout", replicas, "peak RSS", peak, "MB")


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def listing(pods: int) -> Iterator[Figure]:
    """Listing pods: for the first time, again, as a table, and in chunks."""
    with start_embedded(nodes=workers_for(pods), speed=0) as cluster:
        api = Api(cluster.kubeconfig)
        deploy(cluster, api, "web", pods)
        path = "/api/v1/namespaces/default/pods"
        with measured(cluster) as first:
            size = len(api.get(path))
        with measured(cluster) as again:
            api.get(path)
        with measured(cluster) as table:
            api.get(path, TABLE)
        with measured(cluster) as chunked:
            token = ""
            while True:
                chunk = api.json(f"{path}?limit=500&continue={token}")
                token = chunk["metadata"].get("continue", "")
                if not token:
                    break
        with measured(cluster) as chosen:
            api.get(f"{path}?labelSelector=app%3Dweb&fieldSelector=status.phase%3DRunning")
    aim = "< 0.5 s" if pods == 5000 else ""
    yield Figure("list", pods, "whole, first time, wall", first.wall, "s", aim)
    yield Figure("list", pods, "whole, again, wall", again.wall, "s", aim)
    yield Figure("list", pods, "as a table, wall", table.wall, "s")
    yield Figure("list", pods, "in chunks of 500, wall (client parses)", chunked.wall, "s")
    yield Figure("list", pods, "by label and field selector, wall", chosen.wall, "s")
    yield Figure("list", pods, "size of the answer", size / 2**20, "MB")


def kubectl(pods: int) -> Iterator[Figure]:
    """`kubectl get pods`, and how much of it is kubectl itself."""
    program = shutil.which("kubectl")
    if program is None:
        print("kubectl is not installed: skipped", file=sys.stderr)
        return
    with start_embedded(nodes=workers_for(pods), speed=0) as cluster, tempfile.TemporaryDirectory() as cache:
        deploy(cluster, Api(cluster.kubeconfig), "web", pods)
        get = [program, f"--kubeconfig={cluster.kubeconfig}", f"--cache-dir={cache}", "get", "pods"]
        with measured(cluster) as cold:
            _run(get)
        rounds = 5
        with measured(cluster) as warm:
            own = [_run(get) for _ in range(rounds)]
        bare = [_run([program, "version", "--client"]) for _ in range(rounds)]
    yield Figure("kubectl", pods, "`get pods`, no discovery cache, wall", cold.wall, "s")
    yield Figure("kubectl", pods, "`get pods`, wall", statistics.median(cost.wall for cost in own), "s")
    yield Figure("kubectl", pods, "`get pods`, CPU of kubectl", statistics.median(cost.cpu for cost in own), "s")
    yield Figure("kubectl", pods, "`get pods`, CPU of the cluster", warm.cpu / rounds, "s", "< kubectl's")
    yield Figure("kubectl", pods, "`version --client`, wall", statistics.median(cost.wall for cost in bare), "s")


def _run(command: list[str]) -> Cost:
    """Run a program and say what it cost."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with status {process.returncode}")
    return Cost(time.perf_counter() - begun, used.ru_utime + used.ru_stime)


def side_by_side(clusters: int) -> Iterator[Figure]:
    """Many clusters at once, each at the speed of real time."""
    begun = time.perf_counter()
    with ThreadPoolExecutor(clusters) as pool:
        running = list(pool.map(lambda seed: start_embedded(seed=seed), range(clusters)))
    try:
        started = time.perf_counter() - begun
        pids = [_pid(cluster) for cluster in running]
        apis = [Api(cluster.kubeconfig) for cluster in running]
        before, began = sum(map(cpu_seconds, pids)), time.perf_counter()
        delays = []
        while time.perf_counter() < began + 10:
            for api in apis:
                sent_at = time.perf_counter()
                api.get("/api/v1/namespaces/kube-system/pods")
                delays.append(time.perf_counter() - sent_at)
            time.sleep(1)
        share = (sum(map(cpu_seconds, pids)) - before) / (time.perf_counter() - began)
        total = sum(map(resident_megabytes, pids))
        shared = sum(_proportional_megabytes(pid) for pid in pids)
    finally:
        for cluster in running:
            cluster.close()
    yield Figure("many", clusters, "all started, wall", started, "s")
    yield Figure("many", clusters, "start of one, wall", started / clusters, "s")
    yield Figure("many", clusters, "CPU while they run, with a list a second each", share, "cores", "< 2 cores")
    yield Figure("many", clusters, "list of pods, median", 1000 * statistics.median(delays), "ms")
    yield Figure("many", clusters, "list of pods, slowest", 1000 * max(delays), "ms")
    yield Figure("many", clusters, "RSS, sum", total, "MB")
    yield Figure("many", clusters, "PSS, sum (shared pages counted once)", shared, "MB")


def _proportional_megabytes(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def idle(pods: int) -> Iterator[Figure]:
    """A virtual hour in which nothing happens but probes, heartbeats and resyncs."""
    with start_embedded(nodes=workers_for(pods), speed=0) as cluster:
        populate(cluster, Api(cluster.kubeconfig), pods)
        with measured(cluster) as cost:
            cluster.wait(3600)
    yield Figure("idle", pods, "a virtual hour, wall", cost.wall, "s", "< 1 s" if pods == 100 else "")
    yield Figure("idle", pods, "a virtual hour, CPU", cost.cpu, "s")
    if pods:
        probes = pods * 2 * 360
        yield Figure("idle", pods, "CPU per probe, all else included", 1e6 * cost.cpu / probes, "µs")


@dataclass(slots=True, frozen=True)
class Case:
    measure: Callable[[int], Iterator[Figure]]
    counted: str
    sizes: tuple[int, ...]


CASES = {
    "start": Case(start, "workers", (3, 30)),
    "memory": Case(memory, "pods", (100, 1000)),
    "rollout": Case(rollout, "replicas", (1000, 10_000)),
    "list": Case(listing, "pods", (500, 5000)),
    "kubectl": Case(kubectl, "pods", (100, 1000)),
    "many": Case(side_by_side, "clusters", (5, 50)),
    "idle": Case(idle, "pods", (0, 100, 1000)),
}


def show(figures: list[Figure]) -> None:
    print("| case | size | measured | reached | aim |\n| --- | ---: | --- | ---: | --- |")
    for figure in figures:
        digits = 0 if figure.value >= 100 else 1 if figure.value >= 10 else 2 if figure.value >= 1 else 3
        size = f"{figure.size:,} {CASES[figure.case].counted}"
        print(f"| {figure.case} | {size} | {figure.what} | {figure.value:,.{digits}f} {figure.unit} | {figure.aim} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=CASES, metavar="CASE", help=f"one of {', '.join(CASES)}")
    parser.add_argument("--size", action="append", type=int, help="instead of the usual sizes of a case")
    parser.add_argument("--json", action="store_true", help="print a JSON document")
    arguments = parser.parse_args()
    figures: list[Figure] = []
    for name in arguments.only or CASES:
        for size in arguments.size or CASES[name].sizes:
            print(f"measuring {name} with {size:,} {CASES[name].counted} ...", file=sys.stderr)
            figures += CASES[name].measure(size)
    if arguments.json:
        machine = {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()}
        print(json.dumps({"machine": machine, "figures": [asdict(figure) for figure in figures]}, indent=2))
    else:
        show(figures)


if __name__ == "__main__":
    main()
