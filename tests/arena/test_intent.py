"""The application keeps its identity: stand-ins fail, honest variants pass."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from srearena.conductor.episode.episode import Episode
from srearena.conductor.grading.baseline import Baseline
from srearena.conductor.grading.pod_templates import Templates
from srearena.conductor.grading.program_identity import Addresses, address_complaints, template_complaints
from srearena.conductor.oracles.checks import Backends, Intent, Readiness
from srearena.conductor.problems.target_port import TargetPort
from srearena.service.kubernetes import Kubernetes, Obj
from tests.arena.episodes import prepared_episode, shop_problem

Edit = Callable[[Obj, dict[str, Any]], object]


def healthy() -> tuple[Obj, dict[str, Any]]:
    container = {
        "name": "orders",
        "image": "registry.example.com/orders:1.4",
        "command": ["/app/orders"],
        "args": ["--serve"],
        "env": [
            {"name": "CATALOG", "value": "catalog:8080"},
            {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "mode"}}},
        ],
        "volumeMounts": [
            {"name": "data", "mountPath": "/var/lib/orders"},
            {"name": "conf", "mountPath": "/etc/orders"},
        ],
    }
    spec = {
        "initContainers": [{"name": "migrate", "image": container["image"], "command": ["/app/migrate"]}],
        "containers": [container],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "orders-data"}},
            {"name": "conf", "configMap": {"name": "settings"}},
        ],
    }
    workload = {
        "kind": "Deployment",
        "metadata": {"name": "orders", "namespace": "shop"},
        "spec": {"replicas": 1, "template": {"metadata": {"labels": {"app": "orders"}}, "spec": spec}},
    }
    settings = {"kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "shop"}, "data": {"mode": "fast"}}
    settings["data"] |= {"file": "catalog = http://catalog:8080"}  # type: ignore[operator]
    return workload, {"settings": settings}


def pod(workload: Obj) -> Obj:
    return workload["spec"]["template"]["spec"]  # type: ignore[no-any-return]


def main(workload: Obj) -> Obj:
    return pod(workload)["containers"][0]  # type: ignore[no-any-return]


def rename(workload: Obj, settings: dict[str, Any]) -> None:
    renamed = copy.deepcopy(settings.pop("settings"))
    renamed["metadata"]["name"] = "orders-settings"
    settings["orders-settings"] = renamed
    pod(workload)["volumes"][1]["configMap"]["name"] = "orders-settings"
    main(workload)["env"][1]["valueFrom"]["configMapKeyRef"]["name"] = "orders-settings"


def claim_listed_only(workload: Obj, settings: dict[str, Any]) -> None:
    """The claim is still listed as a volume, and the data is on an emptyDir."""
    pod(workload)["volumes"].append({"name": "scratch", "emptyDir": {}})
    main(workload)["volumeMounts"][0]["name"] = "scratch"


def mount_over_program(workload: Obj, settings: dict[str, Any]) -> None:
    pod(workload)["volumes"].append({"name": "fake", "configMap": {"name": "settings"}})
    main(workload)["volumeMounts"].append({"name": "fake", "mountPath": "/app/orders", "subPath": "mode"})


def mount_settings(workload: Obj, path: str) -> None:
    pod(workload)["volumes"].append({"name": "more", "configMap": {"name": "settings"}})
    main(workload)["volumeMounts"].append({"name": "more", "mountPath": path, "subPath": "mode"})


def options(workload: Obj, variable: str, value: str) -> None:
    main(workload)["env"].append({"name": variable, "value": value})


def mount_inside_data(workload: Obj, settings: dict[str, Any]) -> None:
    pod(workload)["volumes"].append({"name": "scratch", "emptyDir": {}})
    main(workload)["volumeMounts"].append({"name": "scratch", "mountPath": "/var/lib/orders/db"})


def answering_sidecar(workload: Obj, settings: dict[str, Any]) -> None:
    """The program is moved away from its port, and another container answers there."""
    main(workload)["env"].append({"name": "PORT", "value": "1"})
    pod(workload)["containers"].append({"name": "web", "image": "nginx"})


STAND_INS: dict[str, Edit] = {
    "another image": lambda w, s: main(w).update(image="nginx:1.27"),
    "idle": lambda w, s: main(w).update(command=["sleep", "infinity"]),
    "other arguments": lambda w, s: main(w).update(args=["--idle"]),
    "no init container": lambda w, s: pod(w).pop("initContainers"),
    "idle init container": lambda w, s: pod(w)["initContainers"][0].update(command=["true"]),
    "claim listed and not mounted": claim_listed_only,
    "claim replaced": lambda w, s: pod(w)["volumes"][0].update(persistentVolumeClaim={"claimName": "empty"}),
    "claim dropped": lambda w, s: main(w)["volumeMounts"].pop(0),
    "mount over the program": mount_over_program,
    "mount inside the data": mount_inside_data,
    "stub of a dependency": lambda w, s: main(w)["env"][0].update(value="stub:8080"),
    "stub at a longer address": lambda w, s: main(w)["env"][0].update(value="10.96.0.70:8080"),
    "stub in another namespace": lambda w, s: main(w)["env"][0].update(value="catalog.default:8080"),
    "stub in the settings": lambda w, s: s["settings"]["data"].update(file="catalog = http://stub:8080"),
    "dependency dropped": lambda w, s: main(w)["env"].pop(0),
    "own hosts file": lambda w, s: pod(w).update(hostAliases=[{"ip": "10.0.0.9", "hostnames": ["catalog"]}]),
    "search path": lambda w, s: main(w)["env"].append({"name": "PATH", "value": "/etc/tools:/usr/bin"}),
    "preloaded library": lambda w, s: main(w)["env"].append({"name": "LD_PRELOAD", "value": "/etc/tools/fake.so"}),
    "exported function": lambda w, s: main(w)["env"].append({"name": "BASH_FUNC_curl%%", "value": "() { true; }"}),
    "required module": lambda w, s: options(w, "NODE_OPTIONS", "--max-old-space-size=512 --require /config/fake.js"),
    "agent of the runtime": lambda w, s: options(w, "JAVA_TOOL_OPTIONS", "-Xmx1g -javaagent:/config/fake.jar"),
    "preloading for all": lambda w, s: mount_settings(w, "/etc/ld.so.preload"),
    "mount over all settings": lambda w, s: mount_settings(w, "/etc"),
    "mounted hosts file": lambda w, s: mount_settings(w, "/etc/hosts"),
    "hook": lambda w, s: main(w).update(lifecycle={"postStart": {"exec": {"command": ["nginx"]}}}),
    "answering sidecar": answering_sidecar,
}
HONEST: dict[str, Edit] = {
    "nothing": lambda w, s: None,
    "replicas": lambda w, s: w["spec"].update(replicas=3),
    "probes": lambda w, s: main(w).update(readinessProbe={"tcpSocket": {"port": 80}}),
    "resources": lambda w, s: main(w).update(resources={"limits": {"memory": "1Gi"}}),
    "tolerations": lambda w, s: pod(w).update(tolerations=[{"operator": "Exists"}], nodeSelector={"disk": "ssd"}),
    "sidecar": lambda w, s: pod(w)["containers"].append({"name": "logs", "image": "busybox"}),
    "renamed ConfigMap": rename,
    "digest": lambda w, s: main(w).update(image="registry.example.com/orders@sha256:" + "0" * 64),
    "newer version": lambda w, s: main(w).update(image="registry.example.com/orders:1.5"),
    "literal value": lambda w, s: main(w)["env"].__setitem__(1, {"name": "MODE", "value": "fast"}),
    "more memory": lambda w, s: options(w, "NODE_OPTIONS", "--max-old-space-size=512 --trace-warnings"),
    "another collector": lambda w, s: options(w, "JAVA_TOOL_OPTIONS", "-Xmx1g -XX:+UseG1GC -verbose:gc"),
    "mounted certificates": lambda w, s: mount_settings(w, "/etc/ssl/certs/ca.pem"),
    "another setting": lambda w, s: main(w)["env"].append({"name": "RETRIES", "value": "1"}),
    "another port in the settings": lambda w, s: s["settings"]["data"].update(file="http://catalog:8081/"),
    "full name": lambda w, s: main(w)["env"][0].update(value="catalog.shop.svc.cluster.local:8080"),
    "cluster address": lambda w, s: main(w)["env"][0].update(value="10.96.0.7:8080"),
    "scratch space": lambda w, s: main(w)["volumeMounts"].append({"name": "tmp", "mountPath": "/tmp"}),
    "another kind": lambda w, s: w.update(kind="StatefulSet"),
    "preStop": lambda w, s: main(w).update(lifecycle={"preStop": {"sleep": {"seconds": 5}}}),
}


def complaints(edit: Edit) -> list[str]:
    before, settings = healthy()
    now, later = copy.deepcopy((before, settings))
    edit(now, later)
    states = [Baseline({("configmaps", "shop", name): obj for name, obj in maps.items()}) for maps in (settings, later)]
    addresses = Addresses({"orders", "catalog"}, {"catalog": "10.96.0.7"}, "shop")
    old, new = Templates(states[0]).resolved(before), Templates(states[1], states[0]).resolved(now)
    old_settings, new_settings = Templates(states[0]).settings(before), Templates(states[1]).settings(now)
    return [
        *template_complaints("orders", old, new, addresses),
        *address_complaints("orders", old_settings, new_settings, addresses),
    ]


@pytest.mark.parametrize("case", STAND_INS)
def test_a_stand_in_is_not_the_program(case: str) -> None:
    assert complaints(STAND_INS[case])


@pytest.mark.parametrize("case", HONEST)
def test_how_a_program_runs_is_not_its_identity(case: str) -> None:
    assert complaints(HONEST[case]) == []


def test_an_agent_of_the_runtime_that_was_declared_may_stay() -> None:
    before, _ = healthy()
    options(before, "JAVA_TOOL_OPTIONS", "-javaagent:/opt/telemetry.jar")
    now = copy.deepcopy(before)
    main(now)["env"][-1]["value"] = "-Xmx1g -javaagent:/opt/telemetry.jar"
    old, new = (Templates(Baseline({})).resolved(workload) for workload in (before, now))
    assert list(template_complaints("orders", old, new, Addresses((), {}))) == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--cache=2Gi"], []),
        (["orders", "--cache=2Gi"], []),
        (["sh", "-c", "repair & exec orders"], ["orders: container orders has arguments that run sh"]),
    ],
)
def test_a_component_at_fault_may_have_other_arguments_and_no_other_program(
    arguments: list[str], expected: list[str]
) -> None:
    workload, _ = healthy()
    del main(workload)["command"]
    before = Templates(Baseline({})).resolved(workload)
    main(workload)["args"] = arguments
    now = Templates(Baseline({})).resolved(workload)
    assert list(template_complaints("orders", before, now, Addresses((), {}), at_fault=True)) == expected


@pytest.fixture(scope="module")
def episode() -> Iterator[Episode]:
    """An episode on the corner shop, with the clock at rest between the steps."""
    with prepared_episode(shop_problem(TargetPort), stages=("mitigation",)) as prepared:
        prepared.cluster.set_speed(0)
        yield prepared


@pytest.fixture
def agent(episode: Episode) -> Iterator[Kubernetes]:
    assert episode.kubeconfig is not None
    with Kubernetes(episode.kubeconfig) as api:
        yield api


def found(episode: Episode) -> list[str]:
    """Complaints about the objects and, once everything has settled, about what runs."""
    Readiness(hold=0).complaints(episode.problem)
    return [*Intent().complaints(episode.problem), *Backends().complaints(episode.problem)]


NAMESPACE = "corner-shop"


def test_honest_changes_of_a_running_application(episode: Episode, agent: Kubernetes) -> None:
    assert found(episode) == []
    agent.scale("deployments", "api", 2, NAMESPACE)
    agent.restart("deployments", "web", NAMESPACE)
    image = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "docker.io/library/nginx:1.27"}]}}}}
    agent.patch("deployments", "web", image, NAMESPACE)
    assert found(episode) == []
    # An equal StatefulSet in place of a Deployment.
    old = agent.get("deployments", "api", NAMESPACE)
    agent.delete("deployments", "api", NAMESPACE)
    spec = {key: old["spec"][key] for key in ("selector", "template")}
    equal = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "api"}, "spec": spec}
    agent.create({**equal, "spec": {**spec, "replicas": 1, "serviceName": "api"}}, NAMESPACE)
    assert found(episode) == []
    assert Readiness(hold=0).complaints(episode.problem) == []
    assert [change for change in episode.collateral() if change.severity.harms] == []


def test_a_foreign_pod_behind_a_service_is_found(episode: Episode, agent: Kubernetes) -> None:
    """An nginx with the labels of the store."""
    pod: Obj = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "villa", "labels": {"app": "store"}},
        "spec": {"containers": [{"name": "store", "image": "nginx:1.27"}]},
    }
    agent.create(pod, NAMESPACE)
    episode.cluster.wait(30)
    assert any("villa" in line for line in found(episode))
    agent.delete("pods", "villa", NAMESPACE)
    episode.cluster.wait(40)
    assert found(episode) == []


def test_an_image_changed_in_a_running_pod_is_found(episode: Episode, agent: Kubernetes) -> None:
    (store,) = agent.list("pods", NAMESPACE, labels="app=store")
    name = store["metadata"]["name"]
    agent.patch("pods", name, {"spec": {"containers": [{"name": "store", "image": "nginx:1.27"}]}}, NAMESPACE)
    episode.cluster.wait(20)
    assert any(name in line for line in found(episode))
    agent.delete("pods", name, NAMESPACE)
    episode.cluster.wait(60)
    assert found(episode) == []


def test_a_claim_that_is_not_mounted_holds_no_data(episode: Episode, agent: Kubernetes) -> None:
    store = agent.get("deployments", "store", NAMESPACE)
    decoy = copy.deepcopy(store["spec"]["template"]["spec"])
    decoy["volumes"].append({"name": "scratch", "emptyDir": {}})
    decoy["containers"][0]["volumeMounts"][0]["name"] = "scratch"
    agent.patch("deployments", "store", {"spec": {"template": {"spec": decoy}}}, NAMESPACE, kind="merge")
    assert any("instead of the claim store-data" in line for line in found(episode))


def test_a_client_that_restarts_once_after_the_grader_has_replaced_pods_is_no_complaint(
    episode: Episode, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = episode.problem.kubernetes
    ends = [1, 1, 5]  # in how many watches the container ends, for each of the three checks
    watch = Readiness._watch

    def watch_and_end(self: Readiness, problem: Any) -> list[str]:
        if ends[0]:
            ends[0] -= 1
            pod = api.list("pods", NAMESPACE, labels="app=web")[0]["metadata"]["name"]
            api.exec(pod, ["sh", "-c", "kill 1"], NAMESPACE)
        return watch(self, problem)

    monkeypatch.setattr(Readiness, "_watch", watch_and_end)
    assert Readiness(hold=20).complaints(episode.problem), "without a reason, a restart counts"
    ends.pop(0)
    assert Readiness(hold=20, disturbed=True).complaints(episode.problem) == []
    ends.pop(0)
    assert Readiness(hold=20, disturbed=True).complaints(episode.problem), "it restarts again and again"


def test_a_pod_that_is_replaced_at_once_is_no_stable_workload(
    episode: Episode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What deletes pods every few seconds is not seen by looking whether they are ready, where programs start fast."""
    api = episode.problem.kubernetes
    watch = Readiness._watch

    def watch_a_deletion(self: Readiness, problem: Any) -> Any:
        name = api.list("pods", NAMESPACE, labels="app=web")[0]["metadata"]["name"]
        api.delete("pods", name, NAMESPACE)
        problem.cluster.wait(40)
        return watch(self, problem)

    monkeypatch.setattr(Readiness, "_watch", watch_a_deletion)
    assert any("was replaced meanwhile" in line for line in Readiness(hold=20).complaints(episode.problem))
    monkeypatch.undo()
    assert Readiness(hold=20).complaints(episode.problem) == []
