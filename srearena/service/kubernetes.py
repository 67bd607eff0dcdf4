"""A small synchronous Kubernetes client: objects are plain dicts in wire shape, resources go by any name kubectl knows.

    with Kubernetes(kubeconfig) as api:
        api.apply(manifest)
        api.scale("deploy", "frontend", 3, namespace="shop")
        print(api.exec("web-0", ["cat", "/etc/hostname"], namespace="shop").output)

Why not a library: the official client weighs 160 MB and turns objects into classes that lose what they do not know;
the smaller ones bring their own object types too, and none runs `exec` without kubectl or another transport. What we
need is a page of HTTP. It works on the embedded cluster and on any real one.

Managers and user agent are those of kubectl, per verb: what the harness does looks like an operator's work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from srearena.closing import Closing
from srearena.cluster import Cluster
from srearena.cluster.base import FastForward
from srearena.service.errors import ApiRefused, NotFound
from srearena.service.remote_command import Finished, run_command
from srearena.service.resources import Obj, Resource, ResourceTable, discover
from srearena.service.transport import Query, Reply, Transport, decoded
from srearena.service.waiting import PassTime, doze, wait_until

__all__ = ["ApiRefused", "Finished", "Kubernetes", "NotFound", "Obj", "Reply", "Resource"]

T = TypeVar("T")
FastForwarding = Callable[[float], AbstractContextManager[FastForward]]
PatchKind = Literal["strategic", "merge", "json"]
_Objects = list[Obj]
_Words = list[str]
_PATCHES: dict[PatchKind, str] = {
    "strategic": "application/strategic-merge-patch+json",
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
}
_PAGE = 500
_CREATED = 201


class Kubernetes(Closing):
    """A connection to one cluster; close it, or use it as a context manager."""

    def __init__(
        self,
        kubeconfig: Path | str,
        *,
        context: str | None = None,
        timeout: float = 60.0,
        pass_time: PassTime | None = None,
        fast_forward: FastForwarding | None = None,
        on_create: Callable[[Obj], None] = lambda obj: None,
    ) -> None:
        """`pass_time` and `fast_forward` are those of a cluster whose time need not be real (see `of`).

        `on_create` is called with every object that a request has created.
        """
        self._transport = Transport(Path(kubeconfig), context, timeout)
        self._pass_time = pass_time
        self._fast_forward: FastForwarding = fast_forward or (lambda limit: nullcontext(FastForward(limit)))
        self._on_create = on_create
        self._table: ResourceTable | None = None

    @classmethod
    def of(cls, cluster: Cluster) -> Kubernetes:
        """The administrator's client of a cluster, also while its clock stands still."""
        return cls(
            cluster.kubeconfig,
            pass_time=cluster.wait,
            fast_forward=cluster.fast_forward,
            on_create=cluster.record_created,
        )

    def close(self) -> None:
        self._transport.close()

    @property
    def server(self) -> str:
        return self._transport.access.server

    @property
    def namespace(self) -> str:
        """The namespace of the kubeconfig's context, used where a call names none."""
        return self._transport.access.namespace

    # Resources

    def resources(self) -> tuple[Resource, ...]:
        """Everything the cluster serves."""
        return tuple(self._known().resources)

    def resource(self, name: str) -> Resource:
        """What a name means here: `pods`, `po`, `Deployment`, `deployments.apps`; UnknownResource otherwise."""
        found = self._known().named(name) or self._rediscovered().named(name)
        if found is None:
            raise self._known().unknown(name)
        return found

    def resource_of(self, obj: Obj) -> Resource:
        """The resource an object belongs to, by its apiVersion and kind."""
        version, kind = str(obj.get("apiVersion", "")), str(obj.get("kind", ""))
        found = self._known().of_kind(version, kind) or self._rediscovered().of_kind(version, kind)
        if found is None:
            raise self._known().unknown(f"{kind} in {version}")
        return found

    def serves(self, api_version: str, kind: str) -> bool:
        return self._known().of_kind(api_version, kind) is not None

    def _known(self) -> ResourceTable:
        if self._table is None:
            self._table = self._rediscovered()
        return self._table

    def _rediscovered(self) -> ResourceTable:
        """Asked again where a name is unknown: custom resources come and go."""
        self._table = discover(lambda path, accept: self._transport.json("GET", path, accept=accept))
        return self._table

    def _path(self, resource: str | Resource, name: str, namespace: str | None, subresource: str = "") -> str:
        row = resource if isinstance(resource, Resource) else self.resource(resource)
        return row.path(namespace or self.namespace, name, subresource)

    def _path_of(self, obj: Obj, namespace: str | None, *, named: bool = True) -> str:
        metadata = obj.get("metadata") or {}
        place = namespace or metadata.get("namespace") or self.namespace
        return self.resource_of(obj).path(place, metadata["name"] if named else "")

    # Reading

    def get(self, resource: str, name: str, namespace: str | None = None, *, subresource: str = "") -> Obj:
        return self._transport.json("GET", self._path(resource, name, namespace, subresource))

    def find(self, resource: str, name: str, namespace: str | None = None) -> Obj | None:
        """The object, or None where there is none."""
        try:
            return self.get(resource, name, namespace)
        except NotFound:
            return None

    def list(self, resource: str, namespace: str | None = None, *, labels: str = "", fields: str = "") -> _Objects:
        """All objects that fit, in all namespaces unless one is named; each has its apiVersion and kind."""
        row = self.resource(resource)
        found: _Objects = []
        token = ""
        while True:
            query: dict[str, Any] = {
                "labelSelector": labels,
                "fieldSelector": fields,
                "limit": _PAGE,
                "continue": token,
            }
            page = self._transport.json("GET", row.path(namespace), query=query)
            found += [{"apiVersion": row.api_version, "kind": row.kind, **item} for item in page.get("items") or ()]
            token = (page.get("metadata") or {}).get("continue") or ""
            if not token:
                return found

    def logs(
        self,
        pod: str,
        namespace: str | None = None,
        *,
        container: str = "",
        previous: bool = False,
        tail: int | None = None,
        since: int | None = None,
        timestamps: bool = False,
    ) -> str:
        """What a container has written; `since` is in seconds."""
        query = {
            "container": container,
            "previous": previous,
            "tailLines": tail,
            "sinceSeconds": since,
            "timestamps": timestamps,
        }
        return self._text("GET", self._path("pods", pod, namespace, "log"), query=query)

    def now(self) -> str:
        """The cluster's time, which need not be ours: when an object would have been made that is not."""
        draft = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "now-"}}
        path = self._path("configmaps", "", self.namespace)
        made = self._transport.json("POST", path, query={"dryRun": "All"}, body=draft)
        return str(made["metadata"]["creationTimestamp"])

    def raw(self, path: str, *, method: str = "GET", **options: Any) -> Obj:
        """Any request to the API, by path."""
        return self._transport.json(method, path, **options)

    def _text(self, method: str, path: str, **options: Any) -> str:
        reply = self._transport.send(method, path, headers={"accept": "*/*"}, **options)
        if reply.status >= 400:
            decoded(reply)
        return reply.text

    # Writing

    def create(self, obj: Obj, namespace: str | None = None, *, manager: str = "kubectl-create") -> Obj:
        path = self._path_of(obj, namespace, named=False)
        return self._making("POST", path, query={"fieldManager": manager}, body=obj)

    def apply(
        self,
        obj: Obj,
        namespace: str | None = None,
        *,
        manager: str = "kubectl",
        force: bool = True,
        rehearsal: bool = False,
    ) -> Obj:
        """Server-side apply; a rehearsal (a dry run) is judged by the server and changes nothing."""
        return self._making(
            "PATCH",
            self._path_of(obj, namespace),
            query={"fieldManager": manager, "force": force, "dryRun": "All" if rehearsal else None},
            body=obj,
            content_type="application/apply-patch+yaml",
        )

    def _making(self, method: str, path: str, *, query: Query, **options: Any) -> Obj:
        """A request that may bring something into being."""
        reply = self._transport.ask(method, path, query=query, **options)
        obj = decoded(reply)
        if reply.status == _CREATED and not query.get("dryRun"):
            self._on_create(obj)
        return obj

    def replace(self, obj: Obj, namespace: str | None = None, *, manager: str = "kubectl-replace") -> Obj:
        return self._transport.json("PUT", self._path_of(obj, namespace), query={"fieldManager": manager}, body=obj)

    def patch(
        self,
        resource: str,
        name: str,
        patch: Any,
        namespace: str | None = None,
        *,
        kind: PatchKind | None = None,
        subresource: str = "",
        manager: str = "kubectl-patch",
    ) -> Obj:
        """A list is a JSON patch; a mapping is merged strategically, or plainly where the kind has no strategy."""
        row = self.resource(resource)
        built_in = row.group == "" or "." not in row.group or row.group.endswith(".k8s.io")
        chosen = kind or ("json" if isinstance(patch, list) else "strategic" if built_in else "merge")
        return self._transport.json(
            "PATCH",
            self._path(row, name, namespace, subresource),
            query={"fieldManager": manager},
            body=patch,
            content_type=_PATCHES[chosen],
        )

    def delete(
        self,
        resource: str,
        name: str,
        namespace: str | None = None,
        *,
        propagation: Literal["Background", "Foreground", "Orphan"] = "Background",
        grace: int | None = None,
        missing_ok: bool = True,
    ) -> None:
        body: Obj = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        try:
            self._transport.json("DELETE", self._path(resource, name, namespace), body=body)
        except NotFound:
            if not missing_ok:
                raise

    def scale(self, resource: str, name: str, replicas: int, namespace: str | None = None) -> None:
        path = self._path(resource, name, namespace, "scale")
        self._transport.json("PATCH", path, body={"spec": {"replicas": replicas}}, content_type=_PATCHES["merge"])

    def restart(self, resource: str, name: str, namespace: str | None = None) -> None:
        """Replace the pods of a workload, as `kubectl rollout restart` does."""
        stamp = {"kubectl.kubernetes.io/restartedAt": self.now()}
        template = {"spec": {"template": {"metadata": {"annotations": stamp}}}}
        self.patch(resource, name, template, namespace, manager="kubectl-rollout")

    def wait_for(self, check: Callable[[], T | None], timeout: float = 60.0, *, what: str = "it") -> T:
        """Look until `check` finds something, on the cluster's time; TimedOut where it never does."""
        return wait_until(check, self._pass_time or doze, timeout, what=what)

    # Into the pods

    def exec(
        self,
        pod: str,
        command: _Words,
        namespace: str | None = None,
        *,
        container: str = "",
        stdin: str | bytes | None = None,
        timeout: float = 120.0,
    ) -> Finished:
        """Run a command in a container; its exit status is part of the result."""
        path = self._path("pods", pod, namespace, "exec")
        data = stdin.encode() if isinstance(stdin, str) else stdin
        with self._fast_forward(timeout) as skip:
            return run_command(
                self._transport.access, path, command, container=container, stdin=data, timeout=skip.client_timeout
            )

    def request_service(
        self,
        service: str,
        port: int | str,
        path: str = "/",
        namespace: str | None = None,
        *,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Reply:
        """An HTTP request to a Service through the API server; 503 with a Status where nothing answers."""
        place = self._path("services", f"{service}:{port}", namespace, "proxy")
        return self._proxied(place, path, method, body, headers, timeout)

    def request_pod(
        self,
        pod: str,
        port: int | str,
        path: str = "/",
        namespace: str | None = None,
        *,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Reply:
        """An HTTP request to a pod through the API server."""
        place = self._path("pods", f"{pod}:{port}", namespace, "proxy")
        return self._proxied(place, path, method, body, headers, timeout)

    def _proxied(
        self,
        place: str,
        path: str,
        method: str,
        body: bytes | None,
        headers: Mapping[str, str] | None,
        timeout: float | None,
    ) -> Reply:
        url = f"{place}/{path.lstrip('/')}"
        wanted = {"accept": "*/*", **(headers or {})}
        with self._fast_forward(self._transport.timeout if timeout is None else timeout) as skip:
            reply = self._transport.send(method, url, content=body, headers=wanted, timeout=skip.client_timeout)
        return replace(reply, seconds=skip.waited_seconds)
