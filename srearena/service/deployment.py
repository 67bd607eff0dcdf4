"""Applying the manifests of an application, all or nothing, and deleting them.

Every manifest is first applied as a dry run, so that an invalid one leaves nothing behind. Deletion runs in the reverse
order and returns when everything is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from srearena.cluster import Cluster
from srearena.service.errors import ApiRefused, ManifestError, TimedOut, UnknownResource
from srearena.service.kubernetes import Kubernetes
from srearena.service.manifests import Manifest
from srearena.service.waiting import wait_until

_SYSTEM_NAMESPACES = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
_CRD = "CustomResourceDefinition"
_CRD_TIMEOUT = 60.0


def apply_all(cluster: Cluster, api: Kubernetes, namespace: str, manifests: Sequence[Manifest]) -> None:
    """Apply manifests in order; ManifestError where the server rejects one, and then none is applied."""
    created = _create_namespaces(api, [namespace, *(m.namespace for m in manifests if m.namespace)], manifests)
    definitions = [m for m in manifests if m.kind == _CRD]
    try:
        for manifest in manifests:
            if manifest.kind not in ("Namespace", _CRD) and not _is_defined_by(definitions, manifest):
                _apply(api, namespace, manifest, dry_run=True)
    except ManifestError:
        for name in created:
            api.delete("namespaces", name)
        raise
    for manifest in definitions:
        _apply(api, namespace, manifest)
    for manifest in definitions:
        _wait_for_definition(cluster, api, manifest)
    for manifest in manifests:
        if manifest.kind != _CRD:
            _apply(api, namespace, manifest)


def _create_namespaces(api: Kubernetes, names: Iterable[str], manifests: Sequence[Manifest]) -> list[str]:
    """Create the namespaces that do not exist and return their names."""
    declared = {m.name: m.obj for m in manifests if m.kind == "Namespace"}
    created = []
    for name in dict.fromkeys((*declared, *names)):
        if api.find("namespaces", name) is None:
            api.apply(declared.get(name) or {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            created.append(name)
    return created


def _is_defined_by(definitions: Iterable[Manifest], manifest: Manifest) -> bool:
    """Whether an object's kind is defined by the same application: the server cannot validate it beforehand."""
    group = str(manifest.obj["apiVersion"]).partition("/")[0]
    return any(group == (d.obj.get("spec") or {}).get("group") for d in definitions)


def _apply(api: Kubernetes, namespace: str, manifest: Manifest, *, dry_run: bool = False) -> None:
    try:
        api.apply(manifest.obj, manifest.namespace or namespace, dry_run=dry_run)
    except (ApiRefused, UnknownResource) as problem:
        raise ManifestError(f"{manifest} was rejected: {problem}") from problem


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
    """Delete all objects and wait until they are gone, volumes included."""
    deleted = [name for name in namespaces if name not in _SYSTEM_NAMESPACES]
    definitions = [m for m in manifests if m.kind == _CRD]
    custom = [m for m in manifests if _is_defined_by(definitions, m)]
    # Custom objects are deleted first, while their controller still runs and can process finalizers.
    for manifest in [*custom, *reversed(manifests)]:
        if manifest in custom or manifest.kind not in ("Namespace", _CRD):
            _delete(api, manifest, namespace, covered=frozenset() if manifest in custom else frozenset(deleted))
    for name in deleted:
        api.delete("namespaces", name)
    for manifest in definitions:
        _delete(api, manifest, namespace)
    _wait_until_gone(cluster, api, deleted, timeout)


def _delete(api: Kubernetes, manifest: Manifest, namespace: str, covered: frozenset[str] = frozenset()) -> None:
    """Delete an object, unless it is in one of the `covered` namespaces, which are deleted as a whole."""
    try:
        resource = api.resource_of(manifest.obj)
    except UnknownResource:
        return
    scope = manifest.namespace or namespace
    if not (resource.namespaced and scope in covered):
        api.delete(resource.name, manifest.name, scope)


def _wait_until_gone(cluster: Cluster, api: Kubernetes, namespaces: Sequence[str], timeout: float) -> None:
    def remaining() -> list[str]:
        names = [f"namespace {name}" for name in namespaces if api.find("namespaces", name) is not None]
        for volume in api.list("persistentvolumes"):
            claim = volume["spec"].get("claimRef") or {}
            if claim.get("namespace") in namespaces and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
                names.append(f"volume {volume['metadata']['name']}")
        return names

    try:
        wait_until(lambda: not remaining(), cluster.wait, timeout)
    except TimedOut as problem:
        raise TimedOut(f"after {timeout:g} s there is still {', '.join(remaining())}") from problem
