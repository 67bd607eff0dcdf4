"""ConfigMaps and Secrets that are missing, lack a key, or come late."""

from __future__ import annotations

import pytest

from .operator import Operator

FROM_KEY = """
apiVersion: v1
kind: Pod
metadata: {{name: app}}
spec:
  containers:
  - name: app
    image: busybox:1.36
    command: [sh, -c, "echo level is $LEVEL; sleep 3600"]
    env:
    - name: LEVEL
      valueFrom: {{{source}KeyRef: {{name: settings, key: level}}}}
"""

MOUNTED = """
apiVersion: v1
kind: Pod
metadata: {{name: app}}
spec:
  containers:
  - name: app
    image: busybox:1.36
    command: [sh, -c, "cat /etc/app/*; echo; sleep 3600"]
    volumeMounts: [{{name: settings, mountPath: /etc/app}}]
  volumes:
  - name: settings
    {source}
"""


@pytest.mark.parametrize(
    ("source", "create", "kind"),
    [
        ("configMap", ("create", "configmap"), "configmap"),
        ("secret", ("create", "secret", "generic"), "secret"),
    ],
)
def test_a_variable_from_an_object_that_is_not_there(
    operator: Operator, source: str, create: tuple[str, ...], kind: str
) -> None:
    operator.apply(FROM_KEY.format(source=source))
    operator.wait(10)
    row = operator.row("pod", "app")
    assert (row["READY"], row["STATUS"], row["RESTARTS"]) == ("0/1", "CreateContainerConfigError", "0")
    assert operator.get("pod", "app")["status"]["phase"] == "Pending"
    assert operator.container("app")["state"]["waiting"] == {
        "reason": "CreateContainerConfigError",
        "message": f'{kind} "settings" not found',
    }
    assert ("Warning", "Failed", f'Error: {kind} "settings" not found') in operator.events("app")
    assert operator.fails("logs", "app") == (
        'Error from server (BadRequest): container "app" in pod "app" is waiting to start: CreateContainerConfigError\n'
    )

    operator.kubectl(*create, "settings", "--from-literal=other=1")
    operator.wait(60)
    titled = "ConfigMap" if kind == "configmap" else "Secret"
    lacking = f"couldn't find key level in {titled} default/settings"
    assert operator.container("app")["state"]["waiting"]["message"] == lacking
    assert ("Warning", "Failed", f"Error: {lacking}") in operator.events("app")

    operator.kubectl("delete", kind, "settings")
    operator.kubectl(*create, "settings", "--from-literal=level=high")
    operator.wait(90)
    assert operator.printed_status("app") == "Running"
    assert operator.container("app")["restartCount"] == 0
    assert operator.kubectl("logs", "app") == "level is high\n"


@pytest.mark.parametrize(("source", "kind"), [("configMapRef", "configmap"), ("secretRef", "secret")])
def test_all_variables_from_an_object_that_is_not_there(operator: Operator, source: str, kind: str) -> None:
    operator.apply(f"""
apiVersion: v1
kind: Pod
metadata: {{name: app}}
spec:
  containers:
  - name: app
    image: busybox:1.36
    command: [sleep, "3600"]
    envFrom: [{{{source}: {{name: settings}}}}]
  - name: content
    image: busybox:1.36
    command: [sleep, "3600"]
    envFrom: [{{{source}: {{name: settings, optional: true}}}}]
""")
    operator.wait(10)
    row = operator.row("pod", "app")
    assert (row["READY"], row["STATUS"]) == ("1/2", "CreateContainerConfigError")
    assert operator.container("app", "app")["state"]["waiting"]["message"] == f'{kind} "settings" not found'
    assert "running" in operator.container("app", "content")["state"]


@pytest.mark.parametrize(
    ("source", "create", "kind"),
    [
        ("configMap: {name: settings}", ("create", "configmap"), "configmap"),
        ("secret: {secretName: settings}", ("create", "secret", "generic"), "secret"),
    ],
)
def test_a_volume_from_an_object_that_is_not_there(
    operator: Operator, source: str, create: tuple[str, ...], kind: str
) -> None:
    operator.apply(MOUNTED.format(source=source))
    operator.wait(90)
    row = operator.row("pod", "app")
    assert (row["READY"], row["STATUS"], row["RESTARTS"]) == ("0/1", "ContainerCreating", "0")
    assert operator.container("app")["state"]["waiting"] == {"reason": "ContainerCreating"}
    failures = [event for event in operator.events("app") if event[1] == "FailedMount"]
    assert failures == [
        ("Warning", "FailedMount", f'MountVolume.SetUp failed for volume "settings" : {kind} "settings" not found')
    ]
    unready = operator.condition("PodReadyToStartContainers", "pod", "app")
    assert unready["status"] == "False"
    operator.kubectl(*create, "settings", "--from-literal=greeting=hello")
    operator.wait(130)
    assert operator.printed_status("app") == "Running"
    assert operator.kubectl("logs", "app") == "hello\n"


def test_a_volume_that_picks_a_key_which_is_not_there(operator: Operator) -> None:
    operator.kubectl("create", "configmap", "settings", "--from-literal=a=1")
    operator.apply(MOUNTED.format(source="configMap: {name: settings, items: [{key: b, path: b}]}"))
    operator.wait(30)
    assert operator.printed_status("app") == "ContainerCreating"
    assert (
        "Warning",
        "FailedMount",
        'MountVolume.SetUp failed for volume "settings" : configmap references non-existent config key: b',
    ) in operator.events("app")
    operator.kubectl("patch", "configmap", "settings", "-p", '{"data":{"b":"2"}}')
    operator.wait(130)
    assert operator.kubectl("logs", "app") == "2\n"


def test_a_mounted_configmap_follows_its_object_and_variables_do_not(operator: Operator) -> None:
    operator.kubectl("create", "configmap", "settings", "--from-literal=level=low")
    operator.apply("""
apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  containers:
  - name: app
    image: busybox:1.36
    command: [sleep, "36000"]
    env:
    - name: LEVEL
      valueFrom: {configMapKeyRef: {name: settings, key: level}}
    volumeMounts: [{name: settings, mountPath: /etc/app}]
  volumes: [{name: settings, configMap: {name: settings}}]
""")
    operator.wait(10)
    operator.kubectl("patch", "configmap", "settings", "-p", '{"data":{"level":"high"}}')
    operator.wait(100)
    assert operator.kubectl("exec", "app", "--", "sh", "-c", "echo $LEVEL; cat /etc/app/level") == "low\nhigh"


def test_a_service_account_that_is_not_there(operator: Operator) -> None:
    operator.apply("""
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      serviceAccountName: robot
      containers: [{name: app, image: "nginx:1.27"}]
""")
    operator.wait(20)
    assert operator.pods("app=app") == []
    [replica_set] = operator.get("rs", "-l", "app=app")["items"]
    name = replica_set["metadata"]["name"]
    refused = 'error looking up service account default/robot: serviceaccount "robot" not found'
    assert ("Warning", "FailedCreate", f'Error creating: pods "{name}-" is forbidden: {refused}') in operator.events(
        name
    )
    failure = operator.condition("ReplicaFailure", "deployment", "app")
    assert (failure["status"], failure["reason"]) == ("True", "FailedCreate")
    operator.kubectl("create", "serviceaccount", "robot")
    operator.wait(120)
    assert operator.row("deployment", "app")["READY"] == "1/1"
    assert operator.condition("ReplicaFailure", "deployment", "app") == {}


def test_a_pod_that_must_not_run_as_root(operator: Operator) -> None:
    operator.apply("""
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  securityContext: {runAsNonRoot: true}
  containers: [{name: web, image: "nginx:1.27"}]
""")
    operator.wait(15)
    uid = operator.get("pod", "web")["metadata"]["uid"]
    assert operator.container("web")["state"]["waiting"] == {
        "reason": "CreateContainerConfigError",
        "message": f'container has runAsNonRoot and image will run as root (pod: "web_default({uid})", container: web)',
    }
