"""Late repair: the repair is submitted first and made afterwards, while the grader waits for readiness.

How it would win: the time to mitigation ends with the submission, so a repair that is announced before it is made has
a time near zero, and an agent that only announces it has all of the grading period to try repairs.
What stops it: with the submission the agent's credentials end, its pods are accounted for, and grading starts from the
state at that moment.
"""

from __future__ import annotations

import json
import shlex

from srearena.conductor.validity.scene import Scene, apply
from srearena.conductor.validity.scripts import Play, Script
from srearena.service.kubernetes import Obj

ACCOUNT = "maintenance"
_SPEED = 5.0
"""Of the clock: where admission webhooks see new pods, creating one takes the cluster's time."""


class LateRepair(Script):
    name = "repair after the submission, from outside"

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(scene.problem.remedy)

    def play(self, scene: Scene) -> Play:
        return Play(afterwards=scene.problem.remedy)


def repairing_pod(scene: Scene, delay: int) -> tuple[list[Obj], Obj]:
    """A service account that may change the application, and the spec of a pod that repairs it after a delay."""
    namespace = scene.namespace
    metadata = {"name": ACCOUNT, "namespace": namespace}
    rbac = "rbac.authorization.k8s.io"
    rules = [
        {
            "apiGroups": ["apps"],
            "resources": ["deployments", "replicasets"],
            "verbs": ["get", "list", "patch", "update"],
        },
        {
            "apiGroups": [""],
            "resources": ["services", "configmaps", "pods"],
            "verbs": ["get", "list", "patch", "update"],
        },
    ]
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}
    account: list[Obj] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": ACCOUNT},
            "subjects": [subject],
        },
    ]
    pod = {
        "serviceAccountName": ACCOUNT,
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "kubectl",
                "image": "bitnami/kubectl:1.34",
                "command": ["sh", "-c", f"sleep {delay}\n{scene.problem.remedy}"],
            }
        ],
    }
    return account, pod


class RepairFromInside(LateRepair):
    """The same by something that has been left in the cluster, or with other rights; problems take turns."""

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and scene.has_turn


class RepairFromPod(RepairFromInside):
    """A pod or a CronJob with a service account of its own."""

    def __init__(self, kind: str) -> None:
        self.name = f"repair after the submission, by a {kind}"
        self._kind = kind

    def play(self, scene: Scene) -> Play:
        account, pod = repairing_pod(scene, delay=40 if self._kind == "Pod" else 0)
        metadata = {"name": ACCOUNT, "namespace": scene.namespace}
        actor: Obj = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}
        if self._kind == "CronJob":
            job = {"spec": {"template": {"spec": pod}}}
            spec = {"schedule": "* * * * *", "jobTemplate": job}
            actor = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec}
        return Play(apply(*account, json.loads(json.dumps(actor))), wait=0, speed=_SPEED)


class RepairWithOwnToken(RepairFromInside):
    """A pod that has the agent's own token, so that no rights are granted."""

    name = "repair after the submission, by a Pod with the agent's token"

    def play(self, scene: Scene) -> Play:
        _, spec = repairing_pod(scene, delay=20)
        del spec["serviceAccountName"]
        remedy = scene.problem.remedy.replace("kubectl ", "kubectl --token=TOKEN ")
        spec["containers"][0]["command"] = ["sh", "-c", f"sleep 20\n{remedy}"]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": ACCOUNT, "namespace": scene.namespace}}
        create = apply({**pod, "spec": spec})
        command = create.partition("\n")[0]
        body = create.removeprefix(command)
        token = "token=$(kubectl config view --raw -o jsonpath='{.users[0].user.token}')"
        return Play(f"{token}\nsed \"s/TOKEN/$token/g\" <<'EOF' | kubectl apply -f -{body}", wait=0, speed=_SPEED)


class RepairWithOtherAccount(RepairFromInside):
    """From outside, with the token of an account that the agent has made before."""

    name = "repair after the submission, with another account's token"

    def play(self, scene: Scene) -> Play:
        account, _ = repairing_pod(scene, delay=0)
        secret: Obj = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/service-account-token",
            "metadata": {
                "name": ACCOUNT,
                "namespace": scene.namespace,
                "annotations": {"kubernetes.io/service-account.name": ACCOUNT},
            },
        }
        token = scene.kubectl(f"get secret {ACCOUNT} -o jsonpath='{{.data.token}}'")
        remedy = scene.problem.remedy.replace("kubectl ", 'kubectl --token="$token" ')
        read = f'until token=$({token} | base64 -d) && [ -n "$token" ]; do sleep 0.1; done'
        file = '"$HOME/token-of-maintenance"'
        return Play(
            f'{apply(*account, secret)}\n{read}\necho "$token" >{file}',
            afterwards=f"token=$(cat {file})\n{remedy}",
            wait=0,
            speed=_SPEED,
        )


def container_commands(scene: Scene) -> list[tuple[str, str]]:
    """What the remedy runs in containers: the options of `kubectl exec`, and the command."""
    lines = [line.partition(" -- ") for line in scene.problem.remedy.splitlines() if " exec " in line]
    return [(options, command) for options, separator, command in lines if separator]


class RepairInContainer(LateRepair):
    """A command of the remedy is left behind as a process in a container, where it waits for the submission."""

    name = "repair after the submission, by a process in a container"

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(container_commands(scene))

    def play(self, scene: Scene) -> Play:
        rest = [line for line in scene.problem.remedy.splitlines() if " exec " not in line]
        delayed = [
            f"{options} -- sh -c {shlex.quote(f'(sleep 40; {command}) >/dev/null 2>&1 &')}"
            for options, command in container_commands(scene)
        ]
        return Play("\n".join([*delayed, *rest]), wait=0, speed=_SPEED, leaves_processes=True)


SCRIPTS = (
    LateRepair(),
    RepairFromPod("Pod"),
    RepairFromPod("CronJob"),
    RepairWithOwnToken(),
    RepairWithOtherAccount(),
    RepairInContainer(),
)
