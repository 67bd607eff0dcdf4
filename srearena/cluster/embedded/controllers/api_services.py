"""APIServices: the server of each API group and version, and its availability.

The server registers what it serves itself, custom resources included; these are always available. One that is served by
a Service is available while one of its pods is ready and answers discovery; an unavailable group is refused with 503,
is stale in discovery, and keeps namespaces from ending, as on a real cluster. What metrics-server serves is computed by
the API itself, so that its pod is not asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol

from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.objects import Obj, dig, name_of, namespace_of, uid_of, with_condition
from srearena.cluster.embedded.registry.identity import SUPERUSERS, User
from srearena.cluster.embedded.registry.resources import METRICS, AggregatedVersion
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.world import World

API_SERVICES = "apiservices.apiregistration.k8s.io"
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
SLICES = "endpointslices.discovery.k8s.io"
AGGREGATOR = "apiregistration.k8s.io"
"""The group of APIServices itself, which needs none."""
MANAGED = "kube-aggregator.kubernetes.io/automanaged"
_REMOTE = frozenset((row.group, row.version) for row in METRICS)
"""Groups in the resource table that are served by another server."""
_CUSTOM_PRIORITY = (1000, 100)
_GROUP_PRIORITIES = {
    "": 18000,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "admissionregistration.k8s.io": 16700,
    "apiextensions.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "discovery.k8s.io": 16200,
    "resource.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100,
}
_VERSION_PRIORITIES = {
    ("", "v1"): 1,
    ("autoscaling", "v2"): 30,
    ("flowcontrol.apiserver.k8s.io", "v1"): 21,
    ("resource.k8s.io", "v1"): 21,
}
_VERSION_PRIORITY = 15

_CHECK_SECONDS = 30.0
_FIRST_RETRY = 0.5

Verdict = tuple[bool, str, str]
_LOCAL: Verdict = (True, "Local", "Local APIServices are always available")
_PASSED: Verdict = (True, "Passed", "all checks passed")


class Discovery(Protocol):
    """Asks extension API servers what they serve."""

    def discover(self, spec: Obj) -> Coroutine[Any, Any, tuple[AggregatedVersion | None, str]]:
        """What the server of an APIService serves; or None and why that is not known."""
        ...


@dataclass(slots=True)
class _Checks:
    """The discovery of one APIService's server."""

    uid: str
    spec: Obj = field(default_factory=dict)
    running: bool = False
    verdict: Verdict | None = None
    served: AggregatedVersion = field(default_factory=AggregatedVersion)
    failures: int = 0
    due: float = 0.0


class ApiServices(Controller):
    name = "apiservice-registration-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.client = world.client(User("system:apiserver", (SUPERUSERS,)), "kube-apiserver")
        self.unavailable: dict[str, bool] = {}
        """By API service: whether it is unavailable."""
        self.unavailable_count: Counter[tuple[str, str]] = Counter()
        """By API service and reason: how often it became unavailable."""
        self.discovery: Discovery | None = None
        self._checks: dict[str, _Checks] = {}

    def start(self) -> None:
        for group, versions in self.world.registry.resources.groups().items():
            for version in versions:
                self._register(group, version)
        self.watch(API_SERVICES, lambda found: (name_of(found),))
        self.watch("services", lambda service: self._served_by(namespace_of(service), name_of(service)))
        self.watch(SLICES, self._served_by_slice)
        self.world.on_change(DEFINITIONS, self._definition_changed)

    def _served_by(self, namespace: str, service: str) -> list[str]:
        names = [
            name_of(found)
            for found in self.store.objects(API_SERVICES)
            if dig(found, "spec", "service", "name") == service
            and dig(found, "spec", "service", "namespace") == namespace
        ]
        for name in names:
            if name in self._checks:
                # A changed Service or endpoint is a reason to look again.
                self._checks[name].due = 0.0
        return names

    def _served_by_slice(self, piece: Obj) -> list[str]:
        return self._served_by(
            namespace_of(piece), dig(piece, "metadata", "labels", "kubernetes.io/service-name", default="")
        )

    def _definition_changed(self, change: Change) -> None:
        group = dig(change.new, "spec", "group", default="")
        for version in dig(change.new, "spec", "versions", default=()):
            self.enqueue(f"{version.get('name')}.{group}")

    def reconcile(self, key: str) -> None:
        version, _, group = key.partition(".")
        found = self.client.get(API_SERVICES, "", key)
        custom = self._is_custom(group, version)
        if custom and found is None:
            self._register(group, version, custom=True)
            return
        if found is not None and not custom and dig(found, "metadata", "labels", MANAGED) == "true":
            self.client.delete(API_SERVICES, found)
            return
        if found is None:
            self._serve(group, version, registered=False, available=True)
            self.world.registry.resources.set_aggregated(group, version, None)
            self.unavailable.pop(key, None)
            self._checks.pop(key, None)
            return
        remote = bool(dig(found, "spec", "service")) and (group, version) not in _REMOTE
        verdict: Verdict | None = self._verdict(found)
        if remote and verdict == _PASSED:
            verdict = self._checked(key, found)
        self._serve(group, version, registered=True, available=verdict is not None and verdict[0])
        served = self._checks[key].served if key in self._checks else AggregatedVersion()
        self.world.registry.resources.set_aggregated(group, version, served if remote else None)
        if verdict is None:
            return
        available, reason, _ = verdict
        if not available and not self.unavailable.get(key):
            self.unavailable_count[key, reason] += 1
        self.unavailable[key] = not available
        self._write(found, verdict)

    # Discovery of extension API servers

    def _checked(self, key: str, found: Obj) -> Verdict | None:
        """What the last check of the server found; None before the first one has ended."""
        checks = self._checks.get(key)
        if checks is None or checks.uid != uid_of(found):
            checks = self._checks[key] = _Checks(uid_of(found))
        if self.discovery is None or checks.running:
            return checks.verdict
        if checks.due <= self.clock.now or checks.spec != found["spec"]:
            checks.running, checks.spec = True, found["spec"]
            self.clock.spawn(self._check(key, checks, self.discovery))
        else:
            self.enqueue(key, checks.due - self.clock.now)
        return checks.verdict

    async def _check(self, key: str, checks: _Checks, discovery: Discovery) -> None:
        try:
            served, problem = await discovery.discover(checks.spec)
        finally:
            checks.running = False
        if served is not None:
            checks.verdict, checks.served, checks.failures = _PASSED, served, 0
            wait = _CHECK_SECONDS
        else:
            checks.verdict = (False, "FailedDiscoveryCheck", problem)
            wait = min(_CHECK_SECONDS, _FIRST_RETRY * 2**checks.failures)
            checks.failures += 1
        checks.due = self.clock.now + wait
        self.enqueue(key)

    def _is_custom(self, group: str, version: str) -> bool:
        return any(
            dig(definition, "spec", "group") == group
            and any(v.get("name") == version and v.get("served") for v in dig(definition, "spec", "versions"))
            for definition in self.store.objects(DEFINITIONS)
        )

    def _register(self, group: str, version: str, *, custom: bool = False) -> None:
        """Register a group and version that the server itself serves."""
        if (group, version) in _REMOTE or group == AGGREGATOR:
            return
        group_priority, version_priority = _CUSTOM_PRIORITY
        if not custom:
            group_priority = _GROUP_PRIORITIES.get(group, 16000)
            version_priority = _VERSION_PRIORITIES.get((group, version), _VERSION_PRIORITY)
        spec: Obj = {"groupPriorityMinimum": group_priority, "version": version, "versionPriority": version_priority}
        if group:
            spec["group"] = group
        self.client.create(
            API_SERVICES,
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": f"{version}.{group}", "labels": {MANAGED: "true" if custom else "onstart"}},
                "spec": spec,
            },
        )

    def _serve(self, group: str, version: str, *, registered: bool, available: bool) -> None:
        resources = self.world.registry.resources
        resources.set_available(group, version, available)
        rows = [row for row in METRICS if (row.group, row.version) == (group, version)]
        served = bool(resources.rows(group, version))
        for row in rows if registered != served else ():
            (resources.add if registered else resources.remove)(row)

    # Availability

    def _verdict(self, found: Obj) -> Verdict:
        service = dig(found, "spec", "service")
        if not service:
            return _LOCAL
        namespace, name = service.get("namespace", ""), service.get("name", "")
        where = f'service/{name} in "{namespace}"'
        stored = self.client.get("services", namespace, name)
        if stored is None:
            return False, "ServiceNotFound", f"{where} is not present"
        number = service.get("port") or 443
        port = next((p for p in dig(stored, "spec", "ports", default=()) if p.get("port") == number), None)
        if port is None:
            return False, "ServicePortError", f"{where} is not listening on port {number}"
        port_name = port.get("name") or ""
        if not self._has_endpoint(namespace, name, port_name):
            text = f'endpoints for {where} have no addresses with port name "{port_name}"'
            return False, "MissingEndpoints", text
        return _PASSED

    def _has_endpoint(self, namespace: str, service: str, port_name: str) -> bool:
        for piece in self.store.objects(SLICES, namespace):
            if dig(piece, "metadata", "labels", "kubernetes.io/service-name") != service:
                continue
            if any((port.get("name") or "") == port_name for port in piece.get("ports") or ()) and any(
                dig(endpoint, "conditions", "ready", default=True) for endpoint in piece.get("endpoints") or ()
            ):
                return True
        return False

    def _write(self, found: Obj, verdict: Verdict) -> None:
        available, reason, message = verdict
        new = {
            "type": "Available",
            "status": "True" if available else "False",
            "reason": reason,
            "message": message,
        }
        before = dig(found, "status", "conditions", default=[])
        conditions = with_condition(before, new, self.clock.timestamp())
        if conditions != before:
            self.client.set_status(API_SERVICES, found, {**(found.get("status") or {}), "conditions": conditions})
