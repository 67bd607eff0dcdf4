"""Putting objects into a cluster and taking them out again, all or nothing.

Before anything is applied, the server is asked whether it would take it (a dry run): a manifest with a mistake starts
nothing. What was applied is taken away in the reverse order, and is gone only when nothing of it is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from srearena.cluster import Cluster
from srearena.service.errors import ApiRefused, ManifestError, TimedOut, UnknownResource
from srearena.service.kubernetes import Kubernetes
from srearena.service.manifests import Manifest
from srearena.service.waiting import wait_until

_KEPT_NAMESPACES = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
_CRD = "CustomResourceDefinition"
_CRD_TIMEOUT = 60.0


def apply_all(cluster: Cluster, api: Kubernetes, namespace: str, manifests: Sequence[Manifest]) -> None:
    """Apply manifests in their order; ManifestError where the server refuses one, and then none is there."""
    new = _make_namespaces(api, [namespace, *(m.namespace for m in manifests if m.namespace)], manifests)
    definitions = [m for m in manifests if m.kind == _CRD]
    try:
        for manifest in manifests:
            if manifest.kind not in ("Namespace", _CRD) and not _is_defined_by(definitions, manifest):
                _apply(api, namespace, manifest, rehearsal=True)
    except ManifestError:
        for name in new:
            api.delete("namespaces", name)
        raise
    for manifest in definitions:
        _apply(api, namespace, manifest)
    for manifest in definitions:
        _wait_for_definition(cluster, api, manifest)
    for manifest in manifests:
        if manifest.kind != _CRD:
            _apply(api, namespace, manifest)


def _make_namespaces(api: Kubernetes, names: Iterable[str], manifests: Sequence[Manifest]) -> list[str]:
    """Make the namespaces that are not there; the ones that were made."""
    described = {m.name: m.obj for m in manifests if m.kind == "Namespace"}
    made = []
    for name in dict.fromkeys((*described, *names)):
        if api.find("namespaces", name) is None:
            api.apply(described.get(name) or {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            made.append(name)
    return made


def _is_defined_by(definitions: Iterable[Manifest], manifest: Manifest) -> bool:
    """Whether an object's kind comes with the same application: the server cannot judge it beforehand."""
    group = str(manifest.obj["apiVersion"]).partition("/")[0]
    return any(group == (d.obj.get("spec") or {}).get("group") for d in definitions)


def _apply(api: Kubernetes, namespace: str, manifest: Manifest, *, rehearsal: bool = False) -> None:
    try:
        api.apply(manifest.obj, manifest.namespace or namespace, rehearsal=rehearsal)
    except (ApiRefused, UnknownResource) as problem:
        raise ManifestError(f"{manifest} was refused: {problem}") from problem


def _wait_for_definition(cluster: Cluster, api: Kubernetes, manifest: Manifest) -> None:
    def established() -> bool:
        status = api.get("customresourcedefinitions", manifest.name).get("status") or {}
        return any(c["type"] == "Established" and c["status"] == "True" for c in status.get("conditions") or ())

    wait_until(established, cluster.wait, _CRD_TIMEOUT, what=f"{manifest} to be served")


def remove_all(
    cluster: Cluster,
    api: Kubernetes,
    namespace: str,
    namespaces: Iterable[str],
    manifests: Sequence[Manifest],
    timeout: float,
) -> None:
    """Delete everything and wait until it is gone, its volumes included."""
    doomed = [name for name in namespaces if name not in _KEPT_NAMESPACES]
    definitions = [m for m in manifests if m.kind == _CRD]
    custom = [m for m in manifests if _is_defined_by(definitions, m)]
    # Custom objects go first: while their controller still runs, it can tidy up behind them.
    for manifest in [*custom, *reversed(manifests)]:
        if manifest in custom or manifest.kind not in ("Namespace", _CRD):
            _delete(api, manifest, namespace, kept=frozenset() if manifest in custom else frozenset(doomed))
    for name in doomed:
        api.delete("namespaces", name)
    for manifest in definitions:
        _delete(api, manifest, namespace)
    _wait_until_gone(cluster, api, doomed, timeout)


def _delete(api: Kubernetes, manifest: Manifest, namespace: str, kept: frozenset[str] = frozenset()) -> None:
    """Delete an object, unless it goes with a namespace in `kept` anyway."""
    try:
        resource = api.resource_of(manifest.obj)
    except UnknownResource:
        return
    place = manifest.namespace or namespace
    if not (resource.namespaced and place in kept):
        api.delete(resource.name, manifest.name, place)


def _wait_until_gone(cluster: Cluster, api: Kubernetes, namespaces: Sequence[str], timeout: float) -> None:
    def left() -> list[str]:
        found = [f"namespace {name}" for name in namespaces if api.find("namespaces", name) is not None]
        for volume in api.list("persistentvolumes"):
            claim = volume["spec"].get("claimRef") or {}
            if claim.get("namespace") in namespaces and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
                found.append(f"volume {volume['metadata']['name']}")
        return found

    try:
        wait_until(lambda: not left(), cluster.wait, timeout)
    except TimedOut as problem:
        raise TimedOut(f"after {timeout:g} s there is still {', '.join(left())}") from problem
