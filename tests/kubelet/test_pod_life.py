"""From bound to ready, and from deleted to gone."""

from __future__ import annotations

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
