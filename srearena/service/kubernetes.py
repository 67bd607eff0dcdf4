"""A small synchronous Kubernetes client: objects are plain dicts, resources have every name that kubectl accepts.

    with Kubernetes(kubeconfig) as api:
        api.apply(manifest)
        api.scale("deploy", "frontend", 3, namespace="shop")
        print(api.exec("web-0", ["cat", "/etc/hostname"], namespace="shop").output)

Why not a library: the official client takes 160 MB and converts objects into classes that drop unknown fields; the
smaller ones have their own object types too, and none runs `exec` without kubectl or another transport. This client
works on the embedded cluster and on real ones.

Field managers and user agent are those of kubectl for each verb, so that the harness looks like an operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from srearena.closeable import Closeable
from srearena.cluster import Cluster
from srearena.cluster.base import DirectApi, FastForward
from srearena.service.errors import ApiRefused, NotFound
from srearena.service.remote_command import CommandResult, run_command
from srearena.service.resources import Obj, Resource, ResourceTable, discover
from srearena.service.transport import Query, Reply, Transport, decode
from srearena.service.waiting import PassTime, sleep, wait_until

__all__ = ["ApiRefused", "CommandResult", "Kubernetes", "NotFound", "Obj", "Reply", "Resource"]

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


class Kubernetes(Closeable):
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
        on_write: Callable[[str, Obj | None], None] = lambda path, obj: None,
        direct: DirectApi | None = None,
    ) -> None:
        """`pass_time` and `fast_forward` control a virtual clock, `direct` is a shorter way to the server (see `of`).

        `on_create` is called with every object that a request has created, `on_write` with the path of every object
        that a request has created, changed or deleted, and its new content where the response contains it.
        """
        self._transport = Transport(Path(kubeconfig), context, timeout, direct)
        self._pass_time = pass_time
        self._fast_forward: FastForwarding = fast_forward or (lambda limit: nullcontext(FastForward(limit)))
        self._on_create = on_create
        self._on_write = on_write
        self._table: ResourceTable | None = None

    @classmethod
    def of(cls, cluster: Cluster) -> Kubernetes:
        """Create the administrator's client of a cluster; works while the cluster's clock is stopped."""
        return cls(
            cluster.kubeconfig,
            pass_time=cluster.wait,
            fast_forward=cluster.fast_forward,
            on_create=cluster.record_created,
            on_write=cluster.record_written,
            direct=cluster.direct_api,
        )

    def close(self) -> None:
        self._transport.close()

    @property
    def server(self) -> str:
        return self._transport.access.server

    @property
    def namespace(self) -> str:
        """The namespace of the kubeconfig's context: the default of all calls."""
        return self._transport.access.namespace

    # Resources

    def resources(self) -> tuple[Resource, ...]:
        """All resources that the cluster serves."""
        return tuple(self._resource_table().resources)

    def resource(self, name: str) -> Resource:
        """Find a resource by name: `pods`, `po`, `Deployment`, `deployments.apps`; UnknownResource otherwise."""
        resource = self._resource_table().named(name) or self._discover().named(name)
        if resource is None:
            raise self._resource_table().unknown(name)
        return resource

    def resource_of(self, obj: Obj) -> Resource:
        """The resource an object belongs to, by its apiVersion and kind."""
        version, kind = str(obj.get("apiVersion", "")), str(obj.get("kind", ""))
        resource = self._resource_table().of_kind(version, kind) or self._discover().of_kind(version, kind)
        if resource is None:
            raise self._resource_table().unknown(f"{kind} in {version}")
        return resource

    def serves(self, api_version: str, kind: str) -> bool:
        return self._resource_table().of_kind(api_version, kind) is not None

    def knows(self, name: str) -> bool:
        """Whether the cluster served a resource of this name when its resources were last read."""
        return self._resource_table().named(name) is not None

    def _resource_table(self) -> ResourceTable:
        if self._table is None:
            self._table = self._discover()
        return self._table

    def _discover(self) -> ResourceTable:
        """Read the resources from the server; repeated for an unknown name, since custom resources change."""
        self._table = discover(lambda path, accept: self._transport.json("GET", path, accept=accept))
        return self._table

    def _path(self, resource: str | Resource, name: str, namespace: str | None, subresource: str = "") -> str:
        row = resource if isinstance(resource, Resource) else self.resource(resource)
        return row.path(namespace or self.namespace, name, subresource)

    def _path_of(self, obj: Obj, namespace: str | None, *, named: bool = True) -> str:
        metadata = obj.get("metadata") or {}
        scope = namespace or metadata.get("namespace") or self.namespace
        return self.resource_of(obj).path(scope, metadata["name"] if named else "")

    # Reading

    def get(self, resource: str, name: str, namespace: str | None = None, *, subresource: str = "") -> Obj:
        return self._transport.json("GET", self._path(resource, name, namespace, subresource))

    def find(self, resource: str, name: str, namespace: str | None = None) -> Obj | None:
        """Get an object, or None where it does not exist."""
        try:
            return self.get(resource, name, namespace)
        except NotFound:
            return None

    def list(self, resource: str, namespace: str | None = None, *, labels: str = "", fields: str = "") -> _Objects:
        """List all matching objects, of all namespaces unless one is named; each has its apiVersion and kind."""
        row = self.resource(resource)
        objects: _Objects = []
        token = ""
        while True:
            query: dict[str, Any] = {
                "labelSelector": labels,
                "fieldSelector": fields,
                "limit": _PAGE,
                "continue": token,
            }
            page = self._transport.json("GET", row.path(namespace), query=query)
            objects += [{"apiVersion": row.api_version, "kind": row.kind, **item} for item in page.get("items") or ()]
            token = (page.get("metadata") or {}).get("continue") or ""
            if not token:
                return objects

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
        """Read the log of a container; `since` is in seconds."""
        query = {
            "container": container,
            "previous": previous,
            "tailLines": tail,
            "sinceSeconds": since,
            "timestamps": timestamps,
        }
        return self._text("GET", self._path("pods", pod, namespace, "log"), query=query)

    def now(self) -> str:
        """The cluster's current time: the creation timestamp of a dry-run object."""
        draft = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "now-"}}
        path = self._path("configmaps", "", self.namespace)
        created = self._transport.json("POST", path, query={"dryRun": "All"}, body=draft)
        return str(created["metadata"]["creationTimestamp"])

    def raw(self, path: str, *, method: str = "GET", **options: Any) -> Obj:
        """Send any request to the API, by path."""
        return self._transport.json(method, path, **options)

    def _text(self, method: str, path: str, **options: Any) -> str:
        reply = self._transport.send(method, path, headers={"accept": "*/*"}, **options)
        if reply.status >= 400:
            decode(reply)
        return reply.text

    # Writing

    def create(self, obj: Obj, namespace: str | None = None, *, manager: str = "kubectl-create") -> Obj:
        path = self._path_of(obj, namespace, named=False)
        return self._create("POST", path, query={"fieldManager": manager}, body=obj)

    def apply(
        self,
        obj: Obj,
        namespace: str | None = None,
        *,
        manager: str = "kubectl",
        force: bool = True,
        dry_run: bool = False,
    ) -> Obj:
        """Server-side apply; a dry run is validated by the server and changes nothing."""
        return self._create(
            "PATCH",
            self._path_of(obj, namespace),
            query={"fieldManager": manager, "force": force, "dryRun": "All" if dry_run else None},
            body=obj,
            content_type="application/apply-patch+yaml",
        )

    def _create(self, method: str, path: str, *, query: Query, **options: Any) -> Obj:
        """Send a request that may create an object."""
        reply = self._transport.send_json(method, path, query=query, **options)
        obj = decode(reply)
        if not query.get("dryRun"):
            if reply.status == _CREATED:
                self._on_create(obj)
            name = str((obj.get("metadata") or {}).get("name", ""))
            self._on_write(f"{path}/{name}" if method == "POST" else path, obj)
        return obj

    def replace(self, obj: Obj, namespace: str | None = None, *, manager: str = "kubectl-replace") -> Obj:
        path = self._path_of(obj, namespace)
        replaced = self._transport.json("PUT", path, query={"fieldManager": manager}, body=obj)
        self._on_write(path, replaced)
        return replaced

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
        """Patch an object: a list is a JSON patch; a mapping is a strategic merge, or a merge for custom resources."""
        row = self.resource(resource)
        built_in = row.group == "" or "." not in row.group or row.group.endswith(".k8s.io")
        patch_kind = kind or ("json" if isinstance(patch, list) else "strategic" if built_in else "merge")
        patched = self._transport.json(
            "PATCH",
            self._path(row, name, namespace, subresource),
            query={"fieldManager": manager},
            body=patch,
            content_type=_PATCHES[patch_kind],
        )
        self._on_write(self._path(row, name, namespace), None if subresource else patched)
        return patched

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
        path = self._path(resource, name, namespace)
        try:
            self._transport.json("DELETE", path, body=body)
            self._on_write(path, None)
        except NotFound:
            if not missing_ok:
                raise

    def scale(self, resource: str, name: str, replicas: int, namespace: str | None = None) -> None:
        path = self._path(resource, name, namespace, "scale")
        self._transport.json("PATCH", path, body={"spec": {"replicas": replicas}}, content_type=_PATCHES["merge"])
        self._on_write(self._path(resource, name, namespace), None)

    def restart(self, resource: str, name: str, namespace: str | None = None) -> None:
        """Replace the pods of a workload, as `kubectl rollout restart` does."""
        stamp = {"kubectl.kubernetes.io/restartedAt": self.now()}
        template = {"spec": {"template": {"metadata": {"annotations": stamp}}}}
        self.patch(resource, name, template, namespace, manager="kubectl-rollout")

    def wait_for(self, check: Callable[[], T | None], timeout: float = 60.0, *, what: str = "it") -> T:
        """Poll `check` in the cluster's time until it returns a true value; TimedOut otherwise."""
        return wait_until(check, self._pass_time or sleep, timeout, what=what)

    # Pods

    def exec(
        self,
        pod: str,
        command: _Words,
        namespace: str | None = None,
        *,
        container: str = "",
        stdin: str | bytes | None = None,
        timeout: float = 120.0,
    ) -> CommandResult:
        """Run a command in a container; a non-zero exit status is no exception."""
        path = self._path("pods", pod, namespace, "exec")
        data = stdin.encode() if isinstance(stdin, str) else stdin
        with self._fast_forward(timeout) as skip:
            return run_command(
                self._transport.access,
                path,
                command,
                container=container,
                stdin=data,
                timeout=skip.client_timeout,
                direct=self._transport.direct,
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
        """Send an HTTP request to a Service through the API server; 503 with a Status where nothing responds."""
        proxy = self._path("services", f"{service}:{port}", namespace, "proxy")
        return self._proxied(proxy, path, method, body, headers, timeout)

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
        """Send an HTTP request to a pod through the API server."""
        proxy = self._path("pods", f"{pod}:{port}", namespace, "proxy")
        return self._proxied(proxy, path, method, body, headers, timeout)

    def _proxied(
        self,
        proxy: str,
        path: str,
        method: str,
        body: bytes | None,
        headers: Mapping[str, str] | None,
        timeout: float | None,
    ) -> Reply:
        url = f"{proxy}/{path.lstrip('/')}"
        sent_headers = {"accept": "*/*", **(headers or {})}
        with self._fast_forward(self._transport.timeout if timeout is None else timeout) as skip:
            timeout = skip.client_timeout
            reply = self._transport.send(method, url, content=body, headers=sent_headers, timeout=timeout, proxied=True)
        return replace(reply, seconds=skip.waited_seconds)
