"""From bound to ready, and from deleted to gone."""

from __future__ import annotations

from srearena.cluster.embedded.machine.files.cgroup import cgroup_files
from srearena.cluster.embedded.machine.files.inodes import Generated
from tests.kubelet.harness import Lab


def test_a_bound_pod_is_created_runs_and_becomes_ready(lab: Lab) -> None:
    lab.run(ports=[{"containerPort": 80}])
    lab.pass_time(0.1)
    assert lab.status()["phase"] == "Pending"
    assert lab.waiting() == ("ContainerCreating", "")
    lab.pass_time(6)
    assert lab.status()["phase"] == "Running"
    assert lab.is_ready()
    assert "running" in lab.container()["state"]
    assert lab.status()["podIP"].startswith("10.244.0.")
    assert [event["reason"] for event in lab.events()] == ["Pulling", "Pulled", "Created", "Started"]
    assert lab.messages(reason="Created") == ["Created container: main"]


def test_the_image_is_on_the_machine_after_the_first_pull(lab: Lab) -> None:
    lab.run("first")
    lab.pass_time(6)
    lab.run("second")
    lab.pass_time(3)
    assert lab.is_ready("second")
    assert lab.messages("second", "Pulled") == ['Container image "acme/server:1.0" already present on machine']


def test_a_deleted_pod_stops_politely_and_disappears(lab: Lab) -> None:
    lab.run()
    lab.pass_time(6)
    lab.delete()
    lab.pass_time(3)
    assert not lab.exists()
    assert lab.messages(reason="Killing") == ["Stopping container main"]
    assert not lab.kubelet.workers


def test_a_pod_writes_its_status_as_often_as_the_real_one(lab: Lab) -> None:
    lab.run()
    writes: list[str] = []
    lab.world.on_change("pods", lambda change: writes.append(change.new["status"]["phase"]))
    lab.pass_time(120)
    assert writes == ["Pending", "Running"]


def test_resources_change_in_place_or_by_a_restart(lab: Lab) -> None:
    """`pods/resize`: the cgroup follows, and a container whose policy says so starts again."""
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "100m", "memory": "64Mi"}}
    # The first process of a container does not end by SIGTERM unless it wants to: the grace period passes.
    command = ["sleep", "100000"]
    lab.run("web", "busybox:1.36", command=command, resources=resources, resizePolicy=policy)
    lab.pass_time(10)

    def resize(name: str, amount: str) -> None:
        pod = lab.pod()
        container = dict(pod["spec"]["containers"][0])
        container["resources"] = {kind: {**container["resources"][kind], name: amount} for kind in resources}
        lab.client.update("pods", {**pod, "spec": {**pod["spec"], "containers": [container]}}, subresource="resize")

    resize("cpu", "1m")
    lab.pass_time(40)
    assert lab.container()["restartCount"] == 0
    sandbox = lab.nodes.sandbox("default", "web")
    assert sandbox is not None
    record = sandbox.latest("main")
    assert record is not None and record.container is not None
    files = cgroup_files(record.container)
    shown = {name: node.produce().decode() for name, node in files.items() if isinstance(node, Generated)}
    assert (shown["cpu.max"], shown["cpu.weight"]) == ("1000 100000\n", "1\n")
    resize("memory", "128Mi")
    lab.pass_time(5)
    assert lab.container()["resources"]["limits"]["memory"] == "64Mi"
    lab.pass_time(40)
    assert lab.container()["resources"]["limits"]["memory"] == "128Mi"
    assert lab.container()["restartCount"] == 1
    assert lab.is_ready()


def test_a_runtime_class_needs_a_handler_of_the_runtime(lab: Lab) -> None:
    for name, handler in (("usual", "runc"), ("sandboxed", "gvisor")):
        kind = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass"}
        lab.client.create("runtimeclasses.node.k8s.io", {**kind, "metadata": {"name": name}, "handler": handler})
        lab.run(name, spec={"runtimeClassName": name})
    lab.pass_time(10)
    assert (lab.status("usual")["phase"], lab.status("sandboxed")["phase"]) == ("Running", "Pending")
    (message, *_) = lab.messages("sandboxed", "FailedCreatePodSandBox")
    assert message.endswith('failed to get sandbox runtime: no runtime for "gvisor" is configured')
