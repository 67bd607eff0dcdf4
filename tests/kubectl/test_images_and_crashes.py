"""Containers that cannot get their image, cannot start, or do not stay: what is shown, and what clears it."""

from __future__ import annotations

import re

import pytest

from .operator import Operator

NOT_FOUND = (
    'rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/nginx:1.99": '
    'failed to resolve reference "docker.io/library/nginx:1.99": docker.io/library/nginx:1.99: not found'
)


def test_a_mistyped_tag_backs_off_and_runs_once_corrected(operator: Operator) -> None:
    operator.kubectl("run", "web", "--image=nginx:1.99")
    operator.wait(5)
    assert operator.printed_status("web") == "ErrImagePull"
    assert operator.container("web")["state"]["waiting"] == {"reason": "ErrImagePull", "message": NOT_FOUND}
    operator.wait(30)
    # Each further pull shows ErrImagePull for a few seconds before the pod backs off again.
    for _ in range(30):
        if operator.printed_status("web") == "ImagePullBackOff":
            break
        operator.wait(1)
    row = operator.row("pod", "web")
    assert (row["READY"], row["STATUS"], row["RESTARTS"]) == ("0/1", "ImagePullBackOff", "0")
    pod = operator.get("pod", "web")
    assert pod["status"]["phase"] == "Pending"
    assert pod["status"]["containerStatuses"][0]["state"]["waiting"] == {
        "reason": "ImagePullBackOff",
        "message": f'Back-off pulling image "nginx:1.99": ErrImagePull: {NOT_FOUND}',
    }
    ready = operator.condition("Ready", "pod", "web")
    assert (ready["status"], ready["reason"]) == ("False", "ContainersNotReady")
    assert ready["message"] == "containers with unready status: [web]"
    events = operator.events("web")
    assert ("Normal", "Pulling", 'Pulling image "nginx:1.99"') in events
    assert ("Warning", "Failed", f'Failed to pull image "nginx:1.99": {NOT_FOUND}') in events
    assert ("Warning", "Failed", "Error: ErrImagePull") in events
    assert ("Warning", "Failed", "Error: ImagePullBackOff") in events
    assert ("Normal", "BackOff", 'Back-off pulling image "nginx:1.99"') in events

    operator.kubectl("set", "image", "pod/web", "web=nginx:1.27")
    operator.wait(15)
    row = operator.row("pod", "web")
    assert (row["READY"], row["STATUS"], row["RESTARTS"]) == ("1/1", "Running", "0")
    assert operator.reasons("web")[-2:] == ["Created", "Started"]


def test_a_deployment_with_a_private_image_waits_while_the_old_pods_serve(operator: Operator) -> None:
    operator.kubectl("create", "deployment", "shop", "--image=nginx:1.27", "--replicas=2")
    operator.wait(20)
    operator.kubectl("set", "image", "deployment/shop", "nginx=acme/private-shop:2.0")
    operator.wait(60)
    assert operator.row("deployment", "shop") | {"AGE": ""} == {
        "NAME": "shop",
        "READY": "2/2",
        "UP-TO-DATE": "1",
        "AVAILABLE": "2",
        "AGE": "",
    }
    statuses = [pod["status"] for pod in operator.pods("app=shop") if pod["status"]["phase"] == "Pending"]
    [waiting] = [status["containerStatuses"][0]["state"]["waiting"] for status in statuses]
    assert waiting["reason"] in ("ImagePullBackOff", "ErrImagePull")
    assert (
        "pull access denied, repository does not exist or may require authorization: "
        "server message: insufficient_scope: authorization failed"
    ) in waiting["message"]
    operator.kubectl("rollout", "undo", "deployment/shop")
    operator.wait(40)
    assert operator.kubectl("rollout", "status", "deployment/shop") == ('deployment "shop" successfully rolled out\n')
    assert {pod["status"]["phase"] for pod in operator.pods("app=shop")} == {"Running"}


def test_a_name_that_is_no_image_name_is_not_even_pulled(operator: Operator) -> None:
    operator.kubectl(
        "run", "web", "--image=nginx", "--overrides", '{"spec":{"containers":[{"name":"web","image":"Nginx"}]}}'
    )
    operator.wait(5)
    assert operator.printed_status("web") == "InvalidImageName"
    assert operator.reasons("web") == ["Scheduled", "InspectFailed", "Failed"]
    operator.kubectl("set", "image", "pod/web", "web=nginx")
    operator.wait(30)
    assert operator.printed_status("web") == "Running"


def test_pull_policy_never_needs_the_image_to_be_there(operator: Operator) -> None:
    operator.kubectl("run", "web", "--image=nginx:1.27", "--image-pull-policy=Never")
    operator.wait(5)
    assert operator.container("web")["state"]["waiting"] == {
        "reason": "ErrImageNeverPull",
        "message": 'Container image "nginx:1.27" is not present with pull policy of Never',
    }
    assert ("Warning", "Failed", "Error: ErrImageNeverPull") in operator.events("web")


def test_a_crashing_container_backs_off_longer_each_time_until_it_is_fixed(operator: Operator) -> None:
    operator.kubectl("create", "deployment", "app", "--image=busybox:1.36", "--", "sh", "-c", "echo no db >&2; exit 3")
    operator.wait(8)
    name = operator.only_pod("app=app")
    assert operator.printed_status(name) in ("Error", "CrashLoopBackOff")
    operator.wait(240)
    status = operator.container(name)
    waiting = status["state"]["waiting"]
    uid = operator.get("pod", name)["metadata"]["uid"]
    assert waiting == {
        "reason": "CrashLoopBackOff",
        "message": f"back-off 2m40s restarting failed container=busybox pod={name}_default({uid})",
    }
    last = status["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (3, "Error")
    assert status["restartCount"] == 5
    assert not status["ready"]
    assert not status["started"]
    assert operator.get("pod", name)["status"]["phase"] == "Running"
    back_off = f"Back-off restarting failed container busybox in pod {name}_default({uid})"
    assert ("Warning", "BackOff", back_off) in operator.events(name)
    assert re.fullmatch(r"5 \(\S+ ago\)", operator.row("pod", name)["RESTARTS"])
    assert operator.kubectl("logs", name, "--previous") == "no db\n"
    unavailable = operator.condition("Available", "deployment", "app")
    assert (unavailable["status"], unavailable["reason"]) == ("False", "MinimumReplicasUnavailable")
    assert unavailable["message"] == "Deployment does not have minimum availability."

    change = '[{"op":"replace","path":"/spec/template/spec/containers/0/command","value":["sleep","3600"]}]'
    operator.kubectl("patch", "deployment", "app", "--type=json", "-p", change)
    operator.wait(45)
    [pod] = operator.pods("app=app")
    assert pod["metadata"]["name"] != name
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    assert pod["status"]["phase"] == "Running"
    assert operator.condition("Available", "deployment", "app")["status"] == "True"


def test_a_crash_loop_is_forgiven_after_ten_good_minutes(operator: Operator) -> None:
    script = "test -f /data/good && sleep 900; exit 1"
    operator.apply(f"""
apiVersion: v1
kind: Pod
metadata: {{name: app}}
spec:
  containers:
  - name: c
    image: busybox:1.36
    command: [sh, -c, "{script}"]
    volumeMounts: [{{name: data, mountPath: /data}}]
  - name: hand
    image: busybox:1.36
    command: [sleep, "100000"]
    volumeMounts: [{{name: data, mountPath: /data}}]
  volumes: [{{name: data, emptyDir: {{}}}}]
""")
    operator.wait(200)
    assert operator.container("app", "c")["restartCount"] == 5
    operator.kubectl("exec", "app", "-c", "hand", "--", "touch", "/data/good")
    operator.wait(200)
    assert "running" in operator.container("app", "c")["state"]
    operator.kubectl("exec", "app", "-c", "hand", "--", "rm", "/data/good")
    operator.wait(905)
    assert operator.container("app", "c")["restartCount"] >= 7, "after a long run the back-off starts over"


def test_too_little_memory_kills_and_more_heals(operator: Operator) -> None:
    operator.apply("""
apiVersion: apps/v1
kind: Deployment
metadata: {name: hog}
spec:
  selector: {matchLabels: {app: hog}}
  template:
    metadata: {labels: {app: hog}}
    spec:
      containers:
      - name: hog
        image: polinux/stress
        command: [stress]
        args: [--vm, "1", --vm-bytes, 200M, --vm-hang, "1"]
        resources: {limits: {memory: 100Mi}}
""")
    operator.wait(6)
    name = operator.only_pod("app=hog")
    assert operator.printed_status(name) in ("OOMKilled", "CrashLoopBackOff")
    operator.wait(60)
    status = operator.container(name)
    ended = status["lastState"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
    assert status["restartCount"] >= 3
    operator.kubectl("set", "resources", "deployment/hog", "--limits=memory=400Mi")
    operator.wait(70)
    [pod] = operator.pods("app=hog")
    [status] = pod["status"]["containerStatuses"]
    assert status["restartCount"] == 0
    assert "running" in status["state"]
    _, _, memory = operator.kubectl("top", "pod", "-l", "app=hog", "--no-headers").split()
    assert 200 <= int(memory.removesuffix("Mi")) <= 210


@pytest.mark.parametrize(("code", "status", "phase"), [(0, "Completed", "Succeeded"), (42, "Error", "Failed")])
def test_a_pod_that_is_not_restarted_ends_with_its_exit_code(
    operator: Operator, code: int, status: str, phase: str
) -> None:
    operator.kubectl("run", "task", "--image=busybox:1.36", "--restart=Never", "--", "sh", "-c", f"exit {code}")
    operator.wait(10)
    row = operator.row("pod", "task")
    assert (row["READY"], row["STATUS"], row["RESTARTS"]) == ("0/1", status, "0")
    pod = operator.get("pod", "task")
    assert pod["status"]["phase"] == phase
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == code
    reason = "PodCompleted" if code == 0 else "PodFailed"
    assert operator.condition("Ready", "pod", "task")["reason"] == reason


def test_a_command_that_does_not_exist_never_starts(operator: Operator) -> None:
    operator.kubectl("run", "web", "--image=nginx:1.27", "--command", "--", "ngnix", "-g", "daemon off;")
    operator.wait(5)
    problem = (
        "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
        'unable to start container process: error during container init: exec: "ngnix": '
        "executable file not found in $PATH"
    )
    assert ("Warning", "Failed", f"Error: {problem}") in operator.events("web")
    assert operator.printed_status("web") in ("RunContainerError", "CrashLoopBackOff")
    operator.wait(40)
    ended = operator.container("web")["lastState"]["terminated"]
    assert (ended["reason"], ended["exitCode"], ended["message"]) == ("StartError", 128, problem)
    assert ended["startedAt"] == "1970-01-01T00:00:00Z"
    assert operator.fails("logs", "web", "-c", "nothing").startswith("error: container nothing is not valid")
    operator.kubectl("delete", "pod", "web", "--now")
    operator.kubectl("run", "web", "--image=nginx:1.27")
    operator.wait(15)
    assert operator.printed_status("web") == "Running"


def test_a_mount_over_a_file_that_is_a_folder_cannot_be_created(operator: Operator) -> None:
    operator.kubectl("create", "configmap", "site", "--from-literal=page=hello")
    operator.apply("""
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: web
    image: nginx:1.27
    volumeMounts: [{name: site, mountPath: /etc/nginx/nginx.conf}]
  volumes: [{name: site, configMap: {name: site}}]
""")
    operator.wait(40)
    status = operator.container("web")
    assert status["state"]["waiting"]["reason"] in ("CrashLoopBackOff", "RunContainerError")
    assert "not a directory" in status["lastState"]["terminated"]["message"]


def test_an_image_without_a_command_cannot_be_made_into_a_container(operator: Operator) -> None:
    operator.kubectl("run", "app", "--image=gcr.io/distroless/static")
    operator.wait(20)
    row = operator.row("pod", "app")
    assert (row["READY"], row["STATUS"], row["RESTARTS"]) == ("0/1", "CreateContainerError", "0")
    message = operator.container("app")["state"]["waiting"]["message"]
    assert re.fullmatch(
        r'failed to generate container "[0-9a-f]{64}" spec: failed to apply OCI options: no command specified', message
    )
    assert operator.get("pod", "app")["status"]["phase"] == "Pending"
    failures = [text for _, reason, text in operator.events("app") if reason == "Failed"]
    assert all(text.endswith("no command specified") for text in failures)
    operator.kubectl("set", "image", "pod/app", "app=nginx:1.27")
    operator.wait(30)
    assert operator.printed_status("app") == "Running"


def test_a_failing_hook_after_the_start_takes_the_container_down(operator: Operator) -> None:
    operator.apply("""
apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: busybox:1.36
    command: [sh, -c, "sleep 3600"]
    lifecycle: {postStart: {exec: {command: [sh, -c, "echo cannot register; exit 3"]}}}
""")
    operator.wait(30)
    assert operator.printed_status("app") in ("PostStartHookError", "CrashLoopBackOff")
    events = operator.events("app")
    assert ("Warning", "FailedPostStartHook", "PostStartHook failed") in events
    assert ("Normal", "Killing", "FailedPostStartHook") in events
    assert operator.container("app")["lastState"]["terminated"]["exitCode"] == 137
