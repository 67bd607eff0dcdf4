"""Init containers that fail, hang or recover, and init containers that stay: sidecars."""

from __future__ import annotations

from .operator import Operator

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: app}}
spec:
  restartPolicy: {policy}
  initContainers:
  - name: first
    image: busybox:1.36
    command: [sh, -c, "echo first"]
  - name: second
    image: busybox:1.36
    command: [sh, -c, "{script}"]
    volumeMounts: [{{name: shared, mountPath: /shared}}]
  containers:
  - name: app
    image: busybox:1.36
    command: [sleep, "36000"]
  volumes: [{{name: shared, hostPath: {{path: /var/shared, type: DirectoryOrCreate}}}}]
"""


def test_an_init_container_that_fails_is_retried_with_back_off(operator: Operator) -> None:
    operator.apply(POD.format(policy="Always", script="echo no database; exit 7"))
    operator.wait(6)
    assert operator.printed_status("app") in ("Init:Error", "Init:CrashLoopBackOff")
    operator.wait(60)
    row = operator.row("pod", "app")
    assert (row["READY"], row["STATUS"]) == ("0/1", "Init:CrashLoopBackOff")
    assert int(row["RESTARTS"].split()[0]) == 3
    pod = operator.get("pod", "app")
    assert pod["status"]["phase"] == "Pending"
    first = operator.container("app", "first")
    assert (first["state"]["terminated"]["exitCode"], first["state"]["terminated"]["reason"]) == (0, "Completed")
    second = operator.container("app", "second")
    assert second["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert second["lastState"]["terminated"]["exitCode"] == 7
    assert operator.container("app", "app")["state"] == {"waiting": {"reason": "PodInitializing"}}
    initialized = operator.condition("Initialized", "pod", "app")
    assert (initialized["status"], initialized["reason"], initialized["message"]) == (
        "False",
        "ContainersNotInitialized",
        "containers with incomplete status: [second]",
    )
    assert operator.kubectl("logs", "app", "-c", "second", "--previous") == "no database\n"
    assert operator.fails("logs", "app", "-c", "app") == (
        'Error from server (BadRequest): container "app" in pod "app" is waiting to start: PodInitializing\n'
    )


def test_a_failed_init_container_fails_a_pod_that_is_not_restarted(operator: Operator) -> None:
    operator.apply(POD.format(policy="Never", script="exit 7"))
    operator.wait(10)
    row = operator.row("pod", "app")
    assert (row["READY"], row["STATUS"], row["RESTARTS"]) == ("0/1", "Init:Error", "0")
    assert operator.get("pod", "app")["status"]["phase"] == "Failed"


def test_an_init_container_that_waits_holds_everything_up_until_it_is_satisfied(operator: Operator) -> None:
    operator.apply(POD.format(policy="Always", script="until nslookup db.default.svc.cluster.local; do sleep 2; done"))
    operator.wait(120)
    row = operator.row("pod", "app")
    assert (row["READY"], row["STATUS"], row["RESTARTS"]) == ("0/1", "Init:1/2", "0")
    assert "running" in operator.container("app", "second")["state"]
    assert "NXDOMAIN" in operator.kubectl("logs", "app", "-c", "second")
    operator.kubectl("create", "service", "clusterip", "db", "--tcp=5432")
    operator.wait(45)
    row = operator.row("pod", "app")
    assert (row["READY"], row["STATUS"], row["RESTARTS"]) == ("1/1", "Running", "0")
    assert operator.condition("Initialized", "pod", "app")["status"] == "True"


def test_an_init_container_succeeds_once_its_condition_holds(operator: Operator) -> None:
    operator.apply(POD.format(policy="Always", script="test -f /shared/ready"))
    operator.wait(15)
    assert operator.printed_status("app") in ("Init:Error", "Init:CrashLoopBackOff")
    node = operator.path("{.spec.nodeName}", "pod", "app")
    operator.cluster.nodes.perform("write_file", node, path="/var/shared/ready", data="")
    operator.wait(60)
    assert operator.printed_status("app") == "Running"
    assert operator.container("app", "second")["state"]["terminated"]["reason"] == "Completed"


def test_an_init_container_without_an_image(operator: Operator) -> None:
    operator.apply(POD.format(policy="Always", script="true").replace("busybox:1.36", "busybox:9.99", 1))
    operator.wait(60)
    assert operator.printed_status("app") in ("Init:ImagePullBackOff", "Init:ErrImagePull")
    operator.kubectl("set", "image", "pod/app", "first=busybox:1.36")
    operator.wait(30)
    assert operator.printed_status("app") == "Running"


SIDECAR = """
apiVersion: {api}
kind: {kind}
metadata: {{name: task}}
spec:
{head}
    restartPolicy: Never
    initContainers:
    - name: proxy
      image: busybox:1.36
      restartPolicy: Always
      command: [sh, -c, "{script}"]
      startupProbe: {{exec: {{command: [test, -f, /tmp/up]}}, periodSeconds: 1, failureThreshold: 60}}
    - name: after
      image: busybox:1.36
      command: [sh, -c, "sleep 3"]
    containers:
    - name: main
      image: busybox:1.36
      command: [sh, -c, "sleep 30; echo done"]
"""


def test_a_sidecar_starts_first_counts_as_ready_and_ends_last(operator: Operator) -> None:
    script = "trap 'echo bye; exit 0' TERM; sleep 5; touch /tmp/up; while true; do sleep 1; done"
    manifest = SIDECAR.format(api="batch/v1", kind="Job", head="  template:\n   spec:", script=script)
    operator.apply(manifest)
    operator.wait(4)
    name = operator.only_pod("batch.kubernetes.io/job-name=task")
    row = operator.row("pod", name)
    assert (row["READY"], row["STATUS"]) == ("0/2", "Init:0/2"), "the sidecar has not started up yet"
    operator.wait(14)
    row = operator.row("pod", name)
    assert (row["READY"], row["STATUS"]) == ("2/2", "Running")
    operator.wait(60)
    row = operator.row("pod", name)
    assert (row["READY"], row["STATUS"]) == ("0/2", "Completed"), "the sidecar does not keep the job from ending"
    assert operator.container(name, "proxy")["state"]["terminated"]["exitCode"] == 0
    assert operator.kubectl("logs", name, "-c", "proxy") == "bye\n"
    assert operator.condition("Complete", "job", "task")["status"] == "True"


def test_a_crashing_sidecar_is_restarted_whatever_the_pod_says(operator: Operator) -> None:
    script = "touch /tmp/up; sleep 4; exit 9"
    operator.apply(SIDECAR.format(api="v1", kind="Pod", head="", script=script))
    operator.wait(24)
    status = operator.container("task", "proxy")
    assert status["restartCount"] >= 1
    assert status["lastState"]["terminated"]["exitCode"] == 9
    assert operator.get("pod", "task")["status"]["phase"] == "Running"
    assert "running" in operator.container("task", "main")["state"]
