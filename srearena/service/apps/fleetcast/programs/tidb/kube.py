"""The operator's dealings with the API: find, create, update where the wish changed, and say so in events.

What was applied last is kept in an annotation; an object is written again only when the wish differs from that, so a
hand-made change of an object stays until the wish changes, as with the real operator.
"""

from __future__ import annotations

import json

from srearena.cluster.program_models import Process
from srearena.cluster.program_models.kubernetes import (
    MERGE_PATCH,
    ApiFailure,
    ApiPath,
    ClusterApi,
    Obj,
    annotations_of,
    dig,
    format_time,
    name_of,
    namespace_of,
    uid_of,
)
from srearena.service.apps.fleetcast.programs.tidb.naming import LAST_APPLIED

SOURCE = "tidb-controller-manager"
_PLURALS = {
    "ConfigMap": ("", "v1", "configmaps"),
    "Deployment": ("apps", "v1", "deployments"),
    "Pod": ("", "v1", "pods"),
    "Role": ("rbac.authorization.k8s.io", "v1", "roles"),
    "RoleBinding": ("rbac.authorization.k8s.io", "v1", "rolebindings"),
    "Service": ("", "v1", "services"),
    "ServiceAccount": ("", "v1", "serviceaccounts"),
    "StatefulSet": ("apps", "v1", "statefulsets"),
}
_REPORTED_KINDS = frozenset({"StatefulSet", "Service"})


def path_of(kind: str, namespace: str, name: str = "") -> ApiPath:
    return ApiPath(*_PLURALS[kind], namespace, name)


class Kube:
    def __init__(self, process: Process, api: ClusterApi) -> None:
        self.process = process
        self.api = api
        self._events: dict[tuple[str, ...], tuple[str, int]] = {}
        self._serial = 0

    async def find(self, kind: str, namespace: str, name: str) -> Obj | None:
        return await self.api.find(path_of(kind, namespace, name))

    async def listed(self, kind: str, namespace: str, selector: str) -> dict[str, Obj]:
        path = path_of(kind, namespace)
        path.query = {"labelSelector": selector}
        return {name_of(obj): obj for obj in (await self.api.call("GET", path))["items"]}

    async def apply(self, cluster: Obj, wish: Obj, present: Obj | None) -> Obj:
        """Create an object, or update it where the desired state has changed."""
        content = {key: value for key, value in wish.items() if key not in ("apiVersion", "kind", "metadata")}
        applied = json.dumps(content, sort_keys=True)
        kind, name = wish["kind"], name_of(wish)
        annotations = {**annotations_of(wish), LAST_APPLIED: applied}
        if present is None:
            body = {**wish, "metadata": {**wish["metadata"], "annotations": annotations}}
            return await self._write(cluster, "create", kind, name, "POST", path_of(kind, namespace_of(wish)), body)
        if annotations_of(present).get(LAST_APPLIED) == applied:
            return present
        metadata = {**present["metadata"], "annotations": {**annotations_of(present), **annotations}}
        body = {**present, **_updatable(kind, content, present), "metadata": metadata}
        path = path_of(kind, namespace_of(wish), name)
        return await self._write(cluster, "update", kind, name, "PUT", path, body)

    async def _write(self, cluster: Obj, verb: str, kind: str, name: str, method: str, path: ApiPath, body: Obj) -> Obj:
        where = f"{kind} {name} in TidbCluster {name_of(cluster)}"
        try:
            written = await self.api.call(method, path, body)
        except ApiFailure as failure:
            if kind in _REPORTED_KINDS and not failure.conflict:
                text = f"{verb} {where} failed error: {failure.message}"
                await self.event(cluster, "Warning", f"Failed{verb.capitalize()}", text)
            raise
        if kind in _REPORTED_KINDS:
            await self.event(cluster, "Normal", f"Successful{verb.capitalize()}", f"{verb} {where} successful")
        return written

    async def event(self, about: Obj, kind: str, reason: str, message: str) -> None:
        """Write an event; a repeated one increases its count. Events that cannot be written are dropped."""
        namespace, now = namespace_of(about), format_time(self.process.clock.now)
        key = (uid_of(about), reason, message)
        name, count = self._events.get(key, ("", 0))
        try:
            if name:
                change = {"count": count + 1, "lastTimestamp": now}
                path = ApiPath("", "v1", "events", namespace, name)
                await self.api.call("PATCH", path, change, content_type=MERGE_PATCH)
            else:
                self._serial += 1
                nanoseconds = int(self.process.clock.now * 1e9) + self._serial
                name = f"{name_of(about)}.{nanoseconds:x}"
                body = _event(about, name, kind, reason, message, now)
                await self.api.call("POST", ApiPath("", "v1", "events", namespace), body)
            self._events[key] = (name, count + 1)
        except ApiFailure:
            self._events.pop(key, None)


def _updatable(kind: str, content: Obj, present: Obj) -> Obj:
    """The part of a desired object that can be applied to the present one; other fields are immutable."""
    if kind == "StatefulSet":
        fields = ("template", "replicas", "updateStrategy")
        return {"spec": {**present["spec"], **{field: content["spec"][field] for field in fields}}}
    if kind == "Service":
        return {"spec": {**present["spec"], **content["spec"]}}
    return content


def _event(about: Obj, name: str, kind: str, reason: str, message: str, now: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace_of(about)},
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": name_of(about),
            "namespace": namespace_of(about),
            "uid": uid_of(about),
            "resourceVersion": dig(about, "metadata", "resourceVersion"),
        },
        "type": kind,
        "reason": reason,
        "message": message[:1024],
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": SOURCE},
    }
