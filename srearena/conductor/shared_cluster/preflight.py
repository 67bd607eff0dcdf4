"""Before anything is changed on a real cluster: can we, may we, and is there room?

Everything that is missing is said at once, one line each, with what to do about it. A cluster whose name looks like
production is not even asked. A namespace that exists is somebody's: we only ever use ones that we made.
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
"""Verb, group, resource, namespace (`*`: in all of them): what deploying, breaking and leaving need."""


class PreflightFailed(ClusterError):
    """The cluster cannot be used; `complaints` has a line for each reason."""

    def __init__(self, context: Context, complaints: list[str]) -> None:
        self.complaints = complaints
        lines = "".join(f"\n  {line}" for line in complaints)
        super().__init__(f"the cluster of context {context.name!r} ({context.server}) cannot be used:{lines}")


@dataclass(frozen=True, slots=True)
class Needs:
    """What is going to be put into the cluster."""

    namespaces: tuple[str, ...]
    """The namespaces that will be made."""
    manifests: tuple[Manifest, ...] = ()


def preflight(context: Context, api: Kubernetes, needs: Needs, *, trusted: bool = False) -> None:
    """PreflightFailed where the cluster cannot be used; nothing is changed."""
    may_enter(context, api, trusted=trusted)
    has_room(context, api, needs)


def may_enter(context: Context, api: Kubernetes, *, trusted: bool = False) -> None:
    """Whether this is a cluster to work on at all."""
    if context.production_name and not trusted:
        said = f"{context.production_name!r} looks like production; if it is not, say --yes-this-cluster"
        raise PreflightFailed(context, [said])
    if problem := _unreachable(api):
        raise PreflightFailed(context, [problem])
    if found := [*_version(api), *_rights(api)]:
        raise PreflightFailed(context, found)


def has_room(context: Context, api: Kubernetes, needs: Needs) -> None:
    """Whether what is needed can be put there."""
    if found := [*_namespaces(api, needs), *_strangers(api, needs), *_storage(api, needs), *_room(api, needs)]:
        raise PreflightFailed(context, found)


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
        asked: Obj = {"verb": verb, "group": group, "resource": name, "subresource": subresource}
        if namespace and namespace != "*":
            asked["namespace"] = namespace
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        answer = api.raw("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", method="POST", body=review)
        if not (answer.get("status") or {}).get("allowed"):
            where = f" in {namespace}" if namespace not in ("", "*") else " in all namespaces" if namespace else ""
            full = f"{resource}.{group}" if group else resource
            yield f"no right to {verb} {full}{where}: use a context of a cluster administrator"


def _version(api: Kubernetes) -> Iterator[str]:
    told = api.raw("/version")
    numbers = [
        int(found.group()) if (found := re.match(r"\d+", str(told.get(k, "")))) else 0 for k in ("major", "minor")
    ]
    if tuple(numbers) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        yield f"its version {told.get('gitVersion', '?')} is too old: {oldest} or newer is needed"


def _namespaces(api: Kubernetes, needs: Needs) -> Iterator[str]:
    for name in needs.namespaces:
        if api.find("namespaces", name) is not None:
            yield (
                f"the namespace {name} exists and is not ours, so it will not be touched: remove it, "
                "or run `srearena cleanup` if an earlier run left it"
            )


def _strangers(api: Kubernetes, needs: Needs) -> Iterator[str]:
    """Objects beyond namespaces that would be overwritten."""
    for manifest in needs.manifests:
        try:
            resource = api.resource_of(manifest.obj)
        except UnknownResource:
            continue  # its kind comes with the application
        if not resource.namespaced and manifest.kind != "Namespace" and api.find(resource.name, manifest.name):
            yield f"the {manifest.kind} {manifest.name} exists and is not ours, so it is not overwritten: remove it"


def _storage(api: Kubernetes, needs: Needs) -> Iterator[str]:
    nameless = [m for m in needs.manifests if any(not _class_of(claim) for claim in _claims(m.obj))]
    if not nameless:
        return
    for found in api.list("storageclasses.storage.k8s.io"):
        if ((found["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS)) == "true":
            return
    yield (
        f"it has no default storage class, which {nameless[0].kind} {nameless[0].name} needs: "
        f"kubectl annotate storageclass NAME {_DEFAULT_CLASS}=true"
    )


def _claims(obj: Obj) -> list[Obj]:
    if obj.get("kind") == "PersistentVolumeClaim":
        return [obj.get("spec") or {}]
    if obj.get("kind") == "StatefulSet":
        return [claim.get("spec") or {} for claim in (obj.get("spec") or {}).get("volumeClaimTemplates") or ()]
    return []


def _class_of(claim: Obj) -> bool:
    """Whether a claim says where its volume comes from."""
    return claim.get("storageClassName") is not None or bool(claim.get("volumeName"))


def _room(api: Kubernetes, needs: Needs) -> Iterator[str]:
    nodes = [node for node in api.list("nodes") if _takes_pods(node)]
    if not nodes:
        yield "no node takes ordinary pods: uncordon one, or remove its taints (`kubectl describe nodes`)"
        return
    names = {node["metadata"]["name"] for node in nodes}
    used = [
        pod["spec"]
        for pod in api.list("pods")
        if pod["spec"].get("nodeName") in names and (pod.get("status") or {}).get("phase") in ("Pending", "Running")
    ]
    wanted = list(_specs(needs.manifests, len(nodes)))
    for resource, unit, size in (("cpu", "cores", 1.0), ("memory", "GiB", 2.0**30)):
        there = sum(parse_quantity(node["status"]["allocatable"].get(resource)) for node in nodes)
        free = there - sum(_requested(spec, resource) for spec in used)
        needed = sum(_requested(spec, resource) for spec in wanted)
        if needed > free:
            yield (
                f"not enough allocatable {resource}: {needed / size:.1f} {unit} are needed, "
                f"{max(free, 0) / size:.1f} of {there / size:.1f} are free: add a node, or remove workloads"
            )
    places = sum(parse_quantity(node["status"]["allocatable"].get("pods")) for node in nodes) - len(used)
    if len(wanted) > places:
        yield f"not enough room for pods: {len(wanted)} are needed, {places:.0f} fit: add a node"


def _takes_pods(node: Obj) -> bool:
    spec = node.get("spec") or {}
    shut = any(taint.get("effect") in ("NoSchedule", "NoExecute") for taint in spec.get("taints") or ())
    return not spec.get("unschedulable") and not shut


def _specs(manifests: Iterable[Manifest], nodes: int) -> Iterator[Obj]:
    """One pod spec per pod that will run."""
    for manifest in manifests:
        spec = pod_template(manifest.obj)
        if spec is None or manifest.kind == "CronJob":
            continue
        count = nodes if manifest.kind == "DaemonSet" else (manifest.obj.get("spec") or {}).get("replicas", 1)
        for _ in range(int(count)):
            yield spec


def _requested(spec: Obj, resource: str) -> float:
    def of(container: Obj) -> float:
        told = container.get("resources") or {}
        return parse_quantity((told.get("requests") or {}).get(resource) or (told.get("limits") or {}).get(resource))

    running = sum(of(container) for container in spec.get("containers") or ())
    return max([running, *(of(container) for container in spec.get("initContainers") or ())])
