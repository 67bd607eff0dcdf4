"""Families about pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from srearena.cluster.embedded.objects import Obj, controller_of, dig, uid_of
from srearena.cluster.embedded.telemetry.collectors.kube_state import containers
from srearena.cluster.embedded.telemetry.collectors.kube_state.families import (
    Family,
    Kind,
    Reading,
    amount,
    condition_of,
    condition_since,
    created,
    deleted,
    info,
    moment,
    named,
    one_of,
    owners,
    seconds,
    text,
    truth,
)

_REASONS = ("Evicted", "NodeAffinity", "NodeLost", "Shutdown", "UnexpectedAdmissionError")
_in_namespace = named("pod")


def _labels(pod: Obj) -> Mapping[str, str]:
    return {**_in_namespace(pod), "uid": uid_of(pod)}


def _completion(pod: Obj) -> Iterable[Reading]:
    ends = [
        ended
        for row in dig(pod, "status", "containerStatuses", default=())
        if (ended := seconds(dig(row, "state", "terminated", "finishedAt"))) is not None
    ]
    return (({}, max(ends)),) if ends else ()


def _info(pod: Obj) -> Iterable[Reading]:
    spec, status = pod["spec"], pod.get("status") or {}
    owner = controller_of(pod) or {}
    labels = {
        "host_ip": status.get("hostIP") or "",
        "pod_ip": status.get("podIP") or "",
        "node": spec.get("nodeName") or "",
        "created_by_kind": owner.get("kind") or "",
        "created_by_name": owner.get("name") or "",
        "priority_class": spec.get("priorityClassName") or "",
        "host_network": text(bool(spec.get("hostNetwork"))),
    }
    return ((labels, 1.0),)


def _addresses(pod: Obj) -> Iterable[Reading]:
    for row in dig(pod, "status", "podIPs", default=()):
        yield {"ip": row["ip"], "ip_family": "6" if ":" in row["ip"] else "4"}, 1.0


def _reason(pod: Obj) -> Iterable[Reading]:
    current = dig(pod, "status", "reason")
    return [({"reason": reason}, truth(reason == current)) for reason in _REASONS]


def _unschedulable(pod: Obj) -> Iterable[Reading]:
    for row in dig(pod, "status", "conditions", default=()):
        if row["type"] == "PodScheduled" and row["status"] == "False":
            yield {}, 1.0


def _tolerations(pod: Obj) -> Iterable[Reading]:
    seen: set[tuple[str, ...]] = set()
    for row in pod["spec"].get("tolerations") or ():
        values = tuple(text(row.get(key)) for key in ("key", "operator", "value", "effect", "tolerationSeconds"))
        if values not in seen:
            seen.add(values)
            yield dict(zip(("key", "operator", "value", "effect", "toleration_seconds"), values, strict=True)), 1.0


def _claims(pod: Obj) -> Iterable[tuple[Mapping[str, str], Obj]]:
    for volume in pod["spec"].get("volumes") or ():
        claim = volume.get("persistentVolumeClaim")
        if claim:
            yield {"volume": volume["name"], "persistentvolumeclaim": claim["claimName"]}, claim


def _runtime_class(pod: Obj) -> Iterable[Reading]:
    name = pod["spec"].get("runtimeClassName")
    return (({"runtimeclass_name": name}, 1.0),) if name else ()


def _overheads() -> tuple[Family, ...]:
    def family(name: str, resource: str) -> Family:
        def read(pod: Obj) -> Iterable[Reading]:
            found = dig(pod, "spec", "overhead", resource)
            return () if found is None else (({}, amount(found)),)

        return Family(name, "What running the pod costs besides its containers.", read)

    return family("kube_pod_overhead_cpu_cores", "cpu"), family("kube_pod_overhead_memory_bytes", "memory")


PODS = Kind(
    "pods",
    _labels,
    (
        Family("kube_pod_info", "Node, addresses and creator of a pod.", _info),
        Family("kube_pod_ips", "Addresses of a pod.", _addresses),
        one_of(
            "kube_pod_status_phase",
            "The pod's phase.",
            "phase",
            ("Pending", "Succeeded", "Failed", "Unknown", "Running"),
            "status",
            "phase",
        ),
        condition_of("kube_pod_status_ready", "Whether the pod is ready to serve.", "Ready"),
        condition_of("kube_pod_status_scheduled", "Whether the pod has a node.", "PodScheduled"),
        Family("kube_pod_status_unschedulable", "1 while no node can be found for the pod.", _unschedulable),
        Family("kube_pod_status_reason", "Why the pod is as it is.", _reason),
        one_of(
            "kube_pod_status_qos_class",
            "The pod's class of service.",
            "qos_class",
            ("BestEffort", "Burstable", "Guaranteed"),
            "status",
            "qosClass",
        ),
        condition_since("kube_pod_status_ready_time", "Since when the pod is ready.", "Ready"),
        condition_since("kube_pod_status_initialized_time", "When its init containers were done.", "Initialized"),
        condition_since(
            "kube_pod_status_container_ready_time", "Since when its containers are ready.", "ContainersReady"
        ),
        condition_since("kube_pod_status_scheduled_time", "When the pod got its node.", "PodScheduled"),
        Family("kube_pod_completion_time", "When the last container ended.", _completion),
        created("kube_pod"),
        deleted("kube_pod"),
        moment("kube_pod_start_time", "When the kubelet took the pod on.", "status", "startTime"),
        owners("kube_pod_owner"),
        info("kube_pod_restart_policy", "What is done when a container ends.", type=("spec", "restartPolicy")),
        info("kube_pod_service_account", "Whom the pod acts as.", service_account=("spec", "serviceAccountName")),
        info("kube_pod_scheduler", "Scheduler of the pod.", name=("spec", "schedulerName")),
        Family("kube_pod_runtimeclass_name_info", "The pod's runtime class.", _runtime_class),
        *_overheads(),
        Family(
            "kube_pod_spec_volumes_persistentvolumeclaims_info",
            "Claims that the pod uses.",
            lambda pod: [(labels, 1.0) for labels, _ in _claims(pod)],
        ),
        Family(
            "kube_pod_spec_volumes_persistentvolumeclaims_readonly",
            "Whether a claim is used for reading only.",
            lambda pod: [(labels, truth(claim.get("readOnly"))) for labels, claim in _claims(pod)],
        ),
        Family("kube_pod_tolerations", "Taints the pod puts up with.", _tolerations),
        *containers.FAMILIES,
    ),
)
