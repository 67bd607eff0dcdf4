"""sample-apiserver: the extension API server of Kubernetes' own tests, with its objects in an etcd of its own.

It answers as a server built on Kubernetes' library does: health, discovery, OpenAPI, and its resources with selectors,
patches, preconditions and watches. A watch ends with the first changes. Server-side apply and managed fields are not
served.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar
from uuid import UUID

import orjson

from srearena.cluster.embedded.machine.networking.certificates import BadCertificate, TlsIdentity, identity_of
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.objects import Obj, labels_of
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.extension_apis import wardle
from srearena.cluster.embedded.programs.extension_apis.delegation import Access, Delegation
from srearena.cluster.embedded.programs.extension_apis.documents import (
    group_document,
    group_list,
    open_api,
    resource_list,
    table_of,
)
from srearena.cluster.embedded.programs.extension_apis.etcd_storage import EtcdStorage
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.serving import Flags, go_bind_error, stop_signal, until_stopped
from srearena.cluster.embedded.programs.timestamps import klog_line
from srearena.cluster.embedded.programs.toolboxes.cluster_api import ApiFailure, ApiPath, ClusterApi, NotInCluster
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    FieldError,
    Forbidden,
    Invalid,
    NotFound,
)
from srearena.cluster.embedded.registry.field_selectors import custom_field_labels, parse_field_selector
from srearena.cluster.embedded.registry.patch.json_patch import apply_json_patch
from srearena.cluster.embedded.registry.patch.merge_patch import apply_merge_patch
from srearena.cluster.embedded.registry.selectors import parse_label_selector

_MEMORY = 40 * 1024 * 1024
_HEALTH = ("/healthz", "/livez", "/readyz")
_PATCHES = {
    "application/json-patch+json": apply_json_patch,
    "application/merge-patch+json": apply_merge_patch,
    # The fields of these resources merge alike in both kinds of patch, except for lists of metadata.
    "application/strategic-merge-patch+json": apply_merge_patch,
}
_ATTEMPTS = 5


class _Resource:
    """The requests for one resource in one version."""

    def __init__(self, server: _Server, version: str, plural: str, kind: str, namespace: str) -> None:
        self._server = server
        self._storage = server.storage
        self._version = version
        self._plural = plural
        self._kind = kind
        self._namespace = namespace
        self._qualified = f"{plural}.{wardle.GROUP}"
        self._folder = f"{wardle.GROUP}/{plural}" + (f"/{namespace}" if namespace else "")

    def _converted(self, obj: Obj) -> Obj:
        return wardle.from_storage(obj, self._version)

    async def get(self, name: str) -> Obj:
        return self._converted(await self._stored(name))

    async def _stored(self, name: str) -> Obj:
        found = await self._storage.get(f"{self._folder}/{name}")
        if found is None:
            raise NotFound(self._qualified, name)
        return found

    async def list(self, request: HttpRequest) -> Obj:
        matches = _matcher(request)
        found, revision = await self._storage.objects(self._folder)
        items = [self._converted(obj) for obj in found if matches(obj)]
        head = {"kind": f"{self._kind}List", "apiVersion": f"{wardle.GROUP}/{self._version}"}
        return {**head, "metadata": {"resourceVersion": revision}, "items": items}

    async def watch(self, request: HttpRequest) -> bytes:
        """The first changes after a revision, or what there is if the request names none."""
        matches = _matcher(request)
        revision = _parameter(request, "resourceVersion")
        events = []
        if revision in ("", "0"):
            found, _ = await self._storage.objects(self._folder)
            events = [("ADDED", self._converted(obj)) for obj in found if matches(obj)]
        while not events:
            if not revision.isdigit():
                _, revision = await self._storage.objects(self._folder)
            changes = await self._storage.changes(self._folder, revision)
            if not changes:
                break
            for path, obj, revision in changes:
                event = self._event(path, obj, revision)
                if event is not None and matches(event[1]):
                    events.append(event)
        return b"".join(orjson.dumps({"type": kind, "object": obj}) + b"\n" for kind, obj in events)

    def _event(self, path: str, obj: Obj | None, revision: str) -> tuple[str, Obj] | None:
        known = self._server.known
        if obj is None:
            before = known.pop(path, None)
            if before is None:
                return None
            return "DELETED", self._converted(
                {**before, "metadata": {**before["metadata"], "resourceVersion": revision}}
            )
        added = path not in known
        known[path] = obj
        return "ADDED" if added else "MODIFIED", self._converted(obj)

    async def create(self, obj: Obj) -> Obj:
        stored = self._checked(obj)
        metadata = stored["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = f"{metadata['generateName']}{self._server.suffix()}"
        name = metadata.get("name", "")
        self._validate(stored, name)
        if self._namespace:
            await self._server.require_namespace(self._namespace)
        if self._kind == "Flunder":
            fischers, _ = await self._storage.objects(f"{wardle.GROUP}/fischers")
            if wardle.bans(fischers, name):
                why = "this name may not be used, please change the resource name"
                raise Forbidden(self._qualified, name, why)
        stored["metadata"] |= {"uid": self._server.uid(), "creationTimestamp": self._server.timestamp()}
        created = await self._storage.put(f"{self._folder}/{name}", stored, "0")
        if created is None:
            raise AlreadyExists(self._qualified, name)
        return self._converted(created)

    async def update(self, name: str, obj: Obj) -> Obj:
        before = await self._stored(name)
        wanted = str((obj.get("metadata") or {}).get("resourceVersion") or before["metadata"]["resourceVersion"])
        if wanted != before["metadata"]["resourceVersion"]:
            raise Conflict(self._qualified, name)
        updated = await self._replaced(name, before, obj)
        if updated is None:
            raise Conflict(self._qualified, name)
        return updated

    async def patch(self, name: str, request: HttpRequest) -> Obj:
        content_type = request.header("Content-Type").partition(";")[0].strip()
        apply = _PATCHES.get(content_type)
        if apply is None:
            accepted = ", ".join(_PATCHES)
            text = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
            raise ApiError(text, code=415, reason="UnsupportedMediaType")
        patch = _json(request.body)
        for _ in range(_ATTEMPTS):
            before = await self._stored(name)
            updated = await self._replaced(name, before, apply(self._converted(before), patch))
            if updated is not None:
                return updated
        raise Conflict(self._qualified, name)

    async def _replaced(self, name: str, before: Obj, obj: Obj) -> Obj | None:
        """Store a changed object; None where it was changed by another in the meantime."""
        stored = self._checked(obj)
        own = {key: before["metadata"][key] for key in ("uid", "creationTimestamp", "name")}
        stored["metadata"] |= {**own, "resourceVersion": before["metadata"]["resourceVersion"]}
        self._validate(stored, name)
        if stored == before:
            return self._converted(before)
        updated = await self._storage.put(f"{self._folder}/{name}", stored, before["metadata"]["resourceVersion"])
        return None if updated is None else self._converted(updated)

    async def delete(self, name: str) -> Obj:
        for _ in range(_ATTEMPTS):
            stored = await self._stored(name)
            if await self._storage.delete(f"{self._folder}/{name}", stored["metadata"]["resourceVersion"]):
                break
        details = {"name": name, "group": wardle.GROUP, "kind": self._plural, "uid": stored["metadata"]["uid"]}
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}

    async def delete_all(self, request: HttpRequest) -> Obj:
        listed = await self.list(request)
        for obj in listed["items"]:
            await self._storage.delete(f"{self._folder}/{obj['metadata']['name']}", obj["metadata"]["resourceVersion"])
        return listed

    def _checked(self, obj: Obj) -> Obj:
        """The stored form of an object that a client sent."""
        api_version = f"{wardle.GROUP}/{self._version}"
        if obj.get("kind") != self._kind or obj.get("apiVersion") != api_version:
            what = f"{obj.get('apiVersion')}, Kind={obj.get('kind')}"
            raise BadRequest(f"the API version in the data ({what}) does not match {api_version}, Kind={self._kind}")
        if not isinstance(obj.get("metadata", {}), dict):
            raise BadRequest("metadata is no object")
        stored = wardle.to_storage(obj, self._version)
        metadata = stored["metadata"]
        if self._namespace and metadata.setdefault("namespace", self._namespace) != self._namespace:
            raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
        return stored

    def _validate(self, stored: Obj, name: str) -> None:
        if not name:
            raise Invalid(f"{self._kind}.{wardle.GROUP}", "", [FieldError.required("metadata.name")])
        path = "metadata.name"
        problems = [FieldError.invalid(path, name, text) for text in names.subdomain_errors(name)]
        problems += wardle.problems_of(stored) if self._kind == "Flunder" else []
        if problems:
            raise Invalid(f"{self._kind}.{wardle.GROUP}", name, problems)


class _Server:
    def __init__(self, process: Process, api: ClusterApi, delegation: Delegation, storage: EtcdStorage) -> None:
        self._process = process
        self._api = api
        self._delegation = delegation
        self.storage = storage
        self.known: dict[str, Obj] = {}
        """Objects by their path, as watches saw them last: a deletion names only the key."""

    def uid(self) -> str:
        return str(UUID(int=self._process.container.random.getrandbits(128), version=4))

    def suffix(self) -> str:
        return "".join(self._process.container.random.choices("bcdfghjklmnpqrstvwxz2456789", k=5))

    def timestamp(self) -> str:
        return self._process.clock.timestamp()

    async def require_namespace(self, namespace: str) -> None:
        try:
            found = await self._api.find(ApiPath("", "v1", "namespaces", name=namespace))
        except ApiFailure as failure:
            raise ApiError(f"Internal error occurred: {failure.message}", reason="InternalError") from None
        if found is None:
            raise NotFound("namespaces", namespace)

    async def answer(self, request: HttpRequest) -> HttpResponse:
        try:
            return await self._answer(request)
        except ApiError as error:
            return _document(error.status(), error.code)

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        if request.path in _HEALTH:
            return await self._health(request.path.lstrip("/"))
        user = await self._delegation.user_of(request)
        access, parts = _access_of(request)
        await self._delegation.check(user, access)
        if access.resource:
            return await self._resource(request, access, parts)
        match parts:
            case ["apis"]:
                return _document(group_list())
            case ["apis", wardle.GROUP]:
                return _document(group_document())
            case ["apis", wardle.GROUP, version] if version in wardle.VERSIONS:
                return _document(resource_list(version))
            case ["openapi", "v3", "apis", wardle.GROUP, version] if version in wardle.VERSIONS:
                return _document(open_api(version))
        return HttpResponse.text("404 page not found\n", 404)

    async def _health(self, probe: str) -> HttpResponse:
        if await self.storage.healthy():
            return HttpResponse.text("ok")
        text = f"[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\n{probe} check failed\n"
        return HttpResponse.text(text, 500)

    async def _resource(self, request: HttpRequest, access: Access, parts: list[str]) -> HttpResponse:
        found = next((row for row in wardle.served(access.version) if row[0] == access.resource), None)
        if found is None or (found[2] != bool(access.namespace) and access.verb not in ("list", "watch")):
            return HttpResponse.text("404 page not found\n", 404)
        if len(parts) > (7 if access.namespace else 5):
            return HttpResponse.text("404 page not found\n", 404)
        plural, kind, _ = found
        resource = _Resource(self, access.version, plural, kind, access.namespace)
        name = access.name
        match access.verb:
            case "get":
                return _presented(request, await resource.get(name))
            case "list":
                return _presented(request, await resource.list(request))
            case "watch":
                return HttpResponse(200, await resource.watch(request), {"Content-Type": "application/json"})
            case "create":
                return _presented(request, await resource.create(_object(request.body)), 201)
            case "update":
                return _presented(request, await resource.update(name, _object(request.body)))
            case "patch":
                return _presented(request, await resource.patch(name, request))
            case "delete":
                return _document(await resource.delete(name))
            case "deletecollection":
                return _document(await resource.delete_all(request))
        return HttpResponse.text("405: Method Not Allowed", 405)


def _access_of(request: HttpRequest) -> tuple[Access, list[str]]:
    """What a request wants, and the parts of its path."""
    parts = request.path.strip("/").split("/")
    verb = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(
        request.method, request.method.lower()
    )
    if len(parts) < 4 or parts[:2] != ["apis", wardle.GROUP]:
        return Access(verb, request.path), parts
    rest = parts[3:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    if not name:
        watching = _parameter(request, "watch") in ("true", "1")
        verb = {"get": "watch" if watching else "list", "delete": "deletecollection"}.get(verb, verb)
    return Access(verb, request.path, wardle.GROUP, parts[2], rest[0], namespace, name), parts


def _parameter(request: HttpRequest, name: str) -> str:
    return request.query.get(name, [""])[0]


def _matcher(request: HttpRequest) -> Callable[[Obj], bool]:
    """Whether an object has the labels and fields that a request selects."""
    labels = parse_label_selector(_parameter(request, "labelSelector"))
    fields = parse_field_selector(_parameter(request, "fieldSelector")).bind(custom_field_labels())

    def matches(obj: Obj) -> bool:
        return labels.matches(labels_of(obj)) and fields(obj)

    return matches


def _json(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as problem:
        raise BadRequest(f"couldn't get version/kind; json parse error: {problem}") from None


def _object(body: bytes) -> Obj:
    parsed = _json(body)
    if not isinstance(parsed, dict):
        raise BadRequest("couldn't get version/kind; json parse error: json: cannot unmarshal into Go value")
    return parsed


def _document(document: Obj, status: int = 200) -> HttpResponse:
    return HttpResponse(status, orjson.dumps(document) + b"\n", {"Content-Type": "application/json"})


def _presented(request: HttpRequest, document: Obj, status: int = 200) -> HttpResponse:
    """An object or list, as a table where the client prefers one."""
    first = request.header("Accept").partition(",")[0]
    if "as=Table" in first.replace(" ", ""):
        document = table_of(document)
    return _document(document, status)


@program("sample-apiserver")
class SampleApiServer(Program):
    entrypoint: ClassVar[tuple[str, ...]] = ("/kube-sample-apiserver",)
    base = "distroless"
    follows_tag = False
    binaries = ("/kube-sample-apiserver",)
    idle_cpu = 0.005
    idle_memory = _MEMORY
    default_version = "1.29.2"

    async def run(self, process: Process) -> int:
        flags = Flags(process.argv[1:])
        stop = stop_signal(process)
        process.set_memory(_MEMORY)
        try:
            certificate = _certificate(process, flags)
            api = ClusterApi(process, "kube-sample-apiserver/v1.29.2 (linux/amd64) kubernetes/$Format")
            delegation = Delegation(api)
            await delegation.load()
        except (OSError, BadCertificate) as problem:
            reason = "no such file or directory" if isinstance(problem, OSError) else f"tls: {problem}"
            return await _failed(process, reason)
        except NotInCluster as problem:
            return await _failed(process, str(problem))
        except ApiFailure as problem:
            reason = f"unable to load configmap based request-header-client-ca-file: {problem.message}"
            return await _failed(process, reason)
        storage = EtcdStorage(process, flags.get("etcd-servers").split(",")[0], "/registry/wardle.example.com")
        server = _Server(process, api, delegation, storage)
        port = flags.port("secure-port", 443)
        try:
            listener = process.container.namespace.listen(process, port, http=server.answer, tls=certificate)
        except OSError as problem:
            return await _failed(
                process, f"failed to create listener: failed to listen on {go_bind_error(port, problem)}"
            )
        await process.error(klog_line(process, "I", "secure_serving.go:213", f"Serving securely on [::]:{port}"))
        await until_stopped(process, stop, [listener])
        return 0


async def _failed(process: Process, reason: str) -> int:
    await process.error(f"Error: {reason}\n")
    return 1


def _certificate(process: Process, flags: Flags) -> TlsIdentity:
    """The certificate in the files that the flags name, or one of its own making."""
    paths = [flags.get(name) for name in ("tls-cert-file", "tls-private-key-file")]
    if not all(paths):
        return TlsIdentity(("localhost", "127.0.0.1"), "localhost-ca", subject="CN=localhost", self_signed=True)
    return identity_of(*(process.files.read_bytes(path) for path in paths))
