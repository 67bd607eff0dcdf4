"""Faults in the components that act on workloads: admission webhooks, scheduled jobs, controllers, rollouts.

The workload itself is correct; what admits, changes, deletes or replaces it is not.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from srearena.generators.fault.actors import account, deployment, script_container
from srearena.generators.fault.edits import Addition, CompositeFault, Edit, ReplacePods
from srearena.generators.fault.pod_templates import first_container, pod_spec, workload_edit
from srearena.generators.fault.registry import Fault, fault
from srearena.generators.fault.steps import Pause, selector_of
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj


@fault("admission_webhook_outage")
def admission_webhook_outage(bed: Testbed, service: str, webhook: str = "pod-policy") -> Fault:
    """Every new pod must be approved by a Service that does not exist."""
    configuration: Obj = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": webhook},
        "webhooks": [
            {
                "name": f"{webhook}.platform.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "timeoutSeconds": 5,
                "clientConfig": {"service": {"namespace": "policy-system", "name": webhook, "path": "/validate"}},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": bed.namespace}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            }
        ],
    }
    return CompositeFault(_ClusterScopedAddition(bed, configuration), ReplacePods(bed, selector_of(bed, service)))


@fault("admission_webhook_tls_mismatch")
def admission_webhook_tls_mismatch(bed: Testbed, service: str, webhook: str, authority: str) -> Fault:
    """The webhook configuration trusts another authority than the one that signed the webhook's certificate."""

    def change(obj: Obj) -> None:
        for hook in obj["webhooks"]:
            hook["clientConfig"]["caBundle"] = b64encode(authority.encode()).decode()

    edit = Edit(bed, "validatingwebhookconfigurations", webhook, change, namespace="")
    return CompositeFault(edit, ReplacePods(bed, selector_of(bed, service)))


@fault("webhooks_cut_off")
def webhooks_cut_off(bed: Testbed, service: str, policy: str, place: str) -> Fault:
    """A network policy of webhook servers admits the pods of the cluster but not the API server."""

    def change(obj: Obj) -> None:
        for rule in obj["spec"]["ingress"]:
            rule["from"] = [{"namespaceSelector": {}}]

    edit = Edit(bed, "networkpolicies", policy, change, namespace=place)
    return CompositeFault(edit, ReplacePods(bed, selector_of(bed, service)))


@fault("admission_policy_enforced")
def admission_policy_enforced(bed: Testbed, service: str, policy: str = "pinned-images") -> Fault:
    """The binding of a validating admission policy denies what it has only audited."""

    def change(obj: Obj) -> None:
        obj["spec"]["validationActions"] = ["Deny"]

    edit = Edit(bed, "validatingadmissionpolicybindings", policy, change, namespace="")
    return CompositeFault(edit, ReplacePods(bed, selector_of(bed, service)))


REGISTRIES = "blocked-registries"


@fault("admission_policy_parameters")
def admission_policy_parameters(bed: Testbed, service: str) -> Fault:
    """The list of registries that an admission policy refuses gets the one that a workload's image comes from."""
    image = first_container(bed.kubernetes.get("deployments", service, bed.namespace))["image"]
    folder, slash, name = image.rpartition("/")
    prefix = f"{folder}/" if slash else name.partition(":")[0]

    def change(obj: Obj) -> None:
        obj["data"]["prefixes"] += f" {prefix}"

    edit = Edit(bed, "configmaps", REGISTRIES, change)
    return CompositeFault(edit, ReplacePods(bed, selector_of(bed, service)))


@fault("webhook_setting")
def webhook_setting(bed: Testbed, service: str, webhook: str, place: str, variable: str, value: str) -> Fault:
    """A setting of a mutating webhook changes, and a workload's pods are admitted again."""

    def change(obj: Obj) -> None:
        for entry in first_container(obj)["env"]:
            if entry["name"] == variable:
                entry["value"] = value

    edit = Edit(bed, "deployments", webhook, change, namespace=place, replace_pods=True)
    return CompositeFault(edit, Pause(bed, 30), ReplacePods(bed, selector_of(bed, service)))


class _ClusterScopedAddition(Addition):
    """Creates a cluster-scoped object."""

    def __init__(self, bed: Testbed, obj: Obj) -> None:
        super().__init__(bed, obj)
        self._namespace = ""


@fault("recurring_memory_limit")
def recurring_memory_limit(bed: Testbed, service: str, actor: str = "vpa-updater", memory: str = "4Mi") -> Fault:
    """A CronJob sets a workload's memory limit below what it needs, every minute."""
    container = first_container(bed.kubernetes.get("deployments", service, bed.namespace))["name"]
    script = f"kubectl -n {bed.namespace} set resources deployment {service} -c {container} --limits=memory={memory}"
    rules: list[dict[str, Any]] = [
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "watch", "patch", "update"]}
    ]
    pod = {
        "serviceAccountName": actor,
        "restartPolicy": "Never",
        "containers": [script_container("updater", script)],
    }
    job: Obj = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": actor, "namespace": "kube-system"},
        "spec": {
            "schedule": "* * * * *",
            "concurrencyPolicy": "Forbid",
            "successfulJobsHistoryLimit": 1,
            "jobTemplate": {"spec": {"backoffLimit": 0, "template": {"spec": pod}}},
        },
    }
    objects = [*account(actor, "kube-system", rules, acts_in=bed.namespace), job]
    return CompositeFault(*(Addition(bed, obj) for obj in objects), Pause(bed, 75))


@fault("sidecar_blocks_completion")
def sidecar_blocks_completion(bed: Testbed, cron_job: str) -> Fault:
    """A job's sidecar becomes an ordinary container, so that the job never completes."""

    def change(obj: Obj) -> None:
        pod = obj["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        for sidecar in pod.pop("initContainers", []):
            sidecar.pop("restartPolicy", None)
            pod["containers"].append(sidecar)

    return CompositeFault(Edit(bed, "cronjobs", cron_job, change), Pause(bed, 150))


@fault("lost_right")
def lost_right(bed: Testbed, controller: str, verb: str, resource: str, waiting: str) -> Fault:
    """A controller loses a permission, and an object waits for it for ever."""

    def change(obj: Obj) -> None:
        for rule in obj["rules"]:
            if resource in rule["resources"]:
                rule["verbs"] = [other for other in rule["verbs"] if other != verb]

    return CompositeFault(Edit(bed, "roles", controller, change), _DeleteConfigMap(bed, waiting))


class _DeleteConfigMap(Fault):
    """Deletes a config map; it stays while a finalizer holds it."""

    def __init__(self, bed: Testbed, name: str) -> None:
        self._bed = bed
        self._name = name

    def inject(self) -> None:
        self._bed.kubernetes.delete("configmaps", self._name, self._bed.namespace)

    def recover(self) -> None:
        pass

    def in_place(self) -> bool:
        found = self._bed.kubernetes.find("configmaps", self._name, self._bed.namespace)
        return found is not None and "deletionTimestamp" in found["metadata"]


@fault("liveness_probe_too_aggressive")
def liveness_probe_too_aggressive(bed: Testbed, service: str) -> Fault:
    """A liveness probe gives a program that starts slowly no time to start."""

    def change(obj: Obj) -> None:
        probe = first_container(obj)["livenessProbe"]
        probe.update(initialDelaySeconds=0, periodSeconds=1, failureThreshold=1)
        pod_spec(obj)["terminationGracePeriodSeconds"] = 0

    return workload_edit(bed, service, change)


@fault("rolling_update_misconfigured")
def rolling_update_misconfigured(bed: Testbed, service: str) -> Fault:
    """A rollout may remove all pods before the new ones are ready, which never happens."""

    def change(obj: Obj) -> None:
        obj["spec"]["strategy"] = {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": "100%", "maxSurge": 0},
        }
        wait = {"name": "warm-up", "image": "busybox:1.36", "command": ["sh", "-c", "sleep infinity"]}
        pod_spec(obj).setdefault("initContainers", []).append(wait)

    return Edit(bed, "deployments", service, change)


@fault("global_default_priority")
def global_default_priority(bed: Testbed, priority_class: str, tenant: str, cpu: str, replicas: int) -> Fault:
    """A priority class becomes the default, and the pods of a new, large workload preempt older ones."""
    default_class: Obj = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": priority_class},
        "value": 1000,
        "globalDefault": True,
        "description": "Services of the platform",
    }
    container = {
        "name": "ingester",
        "image": "busybox:1.36",
        "command": ["sh", "-c", "while true; do sleep 60; done"],
        "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}},
    }
    pod: Obj = {"terminationGracePeriodSeconds": 5, "containers": [container]}
    return CompositeFault(
        _ClusterScopedAddition(bed, default_class),
        Addition(bed, deployment(tenant, "default", pod, replicas=replicas)),
        Pause(bed, 60),
    )
