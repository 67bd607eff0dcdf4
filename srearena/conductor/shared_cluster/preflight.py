"""Checks before anything is changed on a real cluster: connection, rights and capacity.

All complaints are reported at once, one line each, with what to do about it. A cluster whose name looks like production
is refused without a request. An existing namespace belongs to others: a run uses only namespaces that it creates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from srearena.cluster.base import ClusterError
from srearena.cluster.kubernetes.contexts import Context
from srearena.cluster.kubernetes.quantities import parse_quantity
from srearena.service.errors import ApiRefused, UnknownResource, Unreachable
from srearena.service.kubernetes import Kubernetes, Obj
from srearena.service.manifests import Manifest, pod_template

OLDEST = (1, 28)
"""The oldest minor version whose API has all that the applications and the client use."""
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_RIGHTS: tuple[tuple[str, str, str, str], ...] = (
    ("create", "", "namespaces", ""),
    ("delete", "", "namespaces", ""),
    ("patch", "", "nodes", ""),
    ("create", "apps", "deployments", "*"),
    ("create", "", "secrets", "*"),
    ("create", "", "pods/exec", "*"),
    ("get", "", "services/proxy", "*"),
    ("create", "", "serviceaccounts/token", "*"),
    ("update", "", "configmaps", "kube-system"),
    ("create", "rbac.authorization.k8s.io", "clusterroles", ""),
    ("escalate", "rbac.authorization.k8s.io", "clusterroles", ""),
    ("bind", "rbac.authorization.k8s.io", "clusterroles", ""),
    ("create", "rbac.authorization.k8s.io", "clusterrolebindings", ""),
    ("delete", "admissionregistration.k8s.io", "validatingwebhookconfigurations", ""),
    ("delete", "apiextensions.k8s.io", "customresourcedefinitions", ""),
)
"""Verb, group, resource, namespace (`*`: all) that deploying, injecting faults and restoring need."""


class PreflightFailed(ClusterError):
    """The cluster cannot be used; `complaints` has a line for each reason."""

    def __init__(self, context: Context, complaints: list[str]) -> None:
        self.complaints = complaints
        lines = "".join(f"\n  {line}" for line in complaints)
        super().__init__(f"the cluster of context {context.name!r} ({context.server}) cannot be used:{lines}")


@dataclass(frozen=True, slots=True)
class Needs:
    """What a run will create in the cluster."""

    namespaces: tuple[str, ...]
    manifests: tuple[Manifest, ...] = ()


def check_access(context: Context, api: Kubernetes, *, trusted: bool = False) -> None:
    """PreflightFailed where the cluster is off limits, unreachable, too old, or the rights are missing."""
    if context.production_name and not trusted:
        complaint = f"{context.production_name!r} looks like production; if it is not, say --yes-this-cluster"
        raise PreflightFailed(context, [complaint])
    if problem := _unreachable(api):
        raise PreflightFailed(context, [problem])
    if complaints := [*_version(api), *_rights(api)]:
        raise PreflightFailed(context, complaints)


def check_capacity(context: Context, api: Kubernetes, needs: Needs) -> None:
    """PreflightFailed where the cluster cannot hold what the run creates."""
    if complaints := [
        *_namespaces(api, needs),
        *_foreign_objects(api, needs),
        *_storage(api, needs),
        *_resources(api, needs),
    ]:
        raise PreflightFailed(context, complaints)


def _unreachable(api: Kubernetes) -> str:
    try:
        api.raw("/version")
        api.raw("/api/v1/namespaces?limit=1")
    except Unreachable as problem:
        return f"it does not answer: {problem}; is it up, and does `kubectl get nodes` work?"
    except ApiRefused as problem:
        if problem.code == 401:
            return "it does not accept the credentials of the kubeconfig: log in again, or name another --context"
        if problem.code != 403:
            return f"it does not answer as a Kubernetes API: {problem}"
    return ""


def _rights(api: Kubernetes) -> Iterator[str]:
    for verb, group, resource, namespace in _RIGHTS:
        name, _, subresource = resource.partition("/")
        attributes: Obj = {"verb": verb, "group": group, "resource": name, "subresource": subresource}
        if namespace and namespace != "*":
            attributes["namespace"] = namespace
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = api.raw("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", method="POST", body=review)
        if not (answer.get("status") or {}).get("allowed"):
            where = f" in {namespace}" if namespace not in ("", "*") else " in all namespaces" if namespace else ""
            full = f"{resource}.{group}" if group else resource
            yield f"no right to {verb} {full}{where}: use a context of a cluster administrator"


def _version(api: Kubernetes) -> Iterator[str]:
    version = api.raw("/version")
    numbers = [
        int(digits.group()) if (digits := re.match(r"\d+", str(version.get(k, "")))) else 0 for k in ("major", "minor")
    ]
    if tuple(numbers) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        yield f"its version {version.get('gitVersion', '?')} is too old: {oldest} or newer is needed"


def _namespaces(api: Kubernetes, needs: Needs) -> Iterator[str]:
    for name in needs.namespaces:
        if api.find("namespaces", name) is not None:
            yield (
                f"the namespace {name} exists and belongs to others, so it is not used: remove it, "
                "or run `srearena cleanup` if an earlier run left it"
            )


def _foreign_objects(api: Kubernetes, needs: Needs) -> Iterator[str]:
    """Report cluster-scoped objects that would be overwritten."""
    for manifest in needs.manifests:
        try:
            resource = api.resource_of(manifest.obj)
        except UnknownResource:
            continue  # the application brings the definition of its kind
        if not resource.namespaced and manifest.kind != "Namespace" and api.find(resource.name, manifest.name):
            yield f"the {manifest.kind} {manifest.name} exists and belongs to others, so it stays: remove it first"


def _storage(api: Kubernetes, needs: Needs) -> Iterator[str]:
    without_class = [m for m in needs.manifests if any(not _names_a_source(claim) for claim in _claims(m.obj))]
    if not without_class:
        return
    for storage_class in api.list("storageclasses.storage.k8s.io"):
        if ((storage_class["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS)) == "true":
            return
    yield (
        f"it has no default storage class, which {without_class[0].kind} {without_class[0].name} needs: "
        f"kubectl annotate storageclass NAME {_DEFAULT_CLASS}=true"
    )


def _claims(obj: Obj) -> list[Obj]:
    if obj.get("kind") == "PersistentVolumeClaim":
        return [obj.get("spec") or {}]
    if obj.get("kind") == "StatefulSet":
        return [claim.get("spec") or {} for claim in (obj.get("spec") or {}).get("volumeClaimTemplates") or ()]
    return []


def _names_a_source(claim: Obj) -> bool:
    """Whether a claim names its storage class or volume."""
    return claim.get("storageClassName") is not None or bool(claim.get("volumeName"))


def _resources(api: Kubernetes, needs: Needs) -> Iterator[str]:
    nodes = [node for node in api.list("nodes") if _accepts_pods(node)]
    if not nodes:
        yield "no node accepts ordinary pods: uncordon one, or remove its taints (`kubectl describe nodes`)"
        return
    names = {node["metadata"]["name"] for node in nodes}
    used = [
        pod["spec"]
        for pod in api.list("pods")
        if pod["spec"].get("nodeName") in names and (pod.get("status") or {}).get("phase") in ("Pending", "Running")
    ]
    planned = list(_specs(needs.manifests, len(nodes)))
    for resource, unit, size in (("cpu", "cores", 1.0), ("memory", "GiB", 2.0**30)):
        allocatable = sum(parse_quantity(node["status"]["allocatable"].get(resource)) for node in nodes)
        free = allocatable - sum(_requested(spec, resource) for spec in used)
        needed = sum(_requested(spec, resource) for spec in planned)
        if needed > free:
            yield (
                f"not enough allocatable {resource}: {needed / size:.1f} {unit} are needed, "
                f"{max(free, 0) / size:.1f} of {allocatable / size:.1f} are free: add a node, or remove workloads"
            )
    free_pods = sum(parse_quantity(node["status"]["allocatable"].get("pods")) for node in nodes) - len(used)
    if len(planned) > free_pods:
        yield f"not enough room for pods: {len(planned)} are needed, {free_pods:.0f} fit: add a node"


def _accepts_pods(node: Obj) -> bool:
    spec = node.get("spec") or {}
    tainted = any(taint.get("effect") in ("NoSchedule", "NoExecute") for taint in spec.get("taints") or ())
    return not spec.get("unschedulable") and not tainted


def _specs(manifests: Iterable[Manifest], nodes: int) -> Iterator[Obj]:
    """Yield one pod spec per pod that will run."""
    for manifest in manifests:
        spec = pod_template(manifest.obj)
        if spec is None or manifest.kind == "CronJob":
            continue
        count = nodes if manifest.kind == "DaemonSet" else (manifest.obj.get("spec") or {}).get("replicas", 1)
        for _ in range(int(count)):
            yield spec


def _requested(spec: Obj, resource: str) -> float:
    def of(container: Obj) -> float:
        resources = container.get("resources") or {}
        return parse_quantity(
            (resources.get("requests") or {}).get(resource) or (resources.get("limits") or {}).get(resource)
        )

    running = sum(of(container) for container in spec.get("containers") or ())
    return max([running, *(of(container) for container in spec.get("initContainers") or ())])
