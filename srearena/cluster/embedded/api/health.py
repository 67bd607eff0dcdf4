"""Whether the server is well (`/healthz`, `/livez`, `/readyz`), and which one it is (`/version`)."""

from __future__ import annotations

from typing import Final

from srearena.cluster.embedded.api.requests import Request
from srearena.cluster.embedded.objects import Obj

VERSION: Final[Obj] = {
    "major": "1",
    "minor": "34",
    "emulationMajor": "1",
    "emulationMinor": "34",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "33",
    "gitVersion": "v1.34.0",
    "gitCommit": "f28b4c9efbca5c5c0af716d9f2d5702667ee8a45",
    "gitTreeState": "clean",
    "buildDate": "2025-08-27T10:09:04Z",
    "goVersion": "go1.24.6",
    "compiler": "gc",
    "platform": "linux/amd64",
}
_COMMON: Final = (
    "ping",
    "log",
    "etcd",
)
_HOOKS: Final = (
    "start-apiserver-admission-initializer",
    "generic-apiserver-start-informers",
    "priority-and-fairness-config-consumer",
    "priority-and-fairness-filter",
    "storage-object-count-tracker-hook",
    "start-apiextensions-informers",
    "start-apiextensions-controllers",
    "crd-informer-synced",
    "start-system-namespaces-controller",
    "start-cluster-authentication-info-controller",
    "start-kube-apiserver-identity-lease-controller",
    "start-kube-apiserver-identity-lease-garbage-collector",
    "start-legacy-token-tracking-controller",
    "start-service-ip-repair-controllers",
    "rbac/bootstrap-roles",
    "scheduling/bootstrap-system-priority-classes",
    "priority-and-fairness-config-producer",
    "bootstrap-controller",
    "start-kubernetes-service-cidr-controller",
    "aggregator-reload-proxy-client-cert",
    "start-kube-aggregator-informers",
    "apiservice-status-local-available-controller",
    "apiservice-status-remote-available-controller",
    "apiservice-registration-controller",
    "apiservice-discovery-controller",
    "kube-apiserver-autoregistration",
    "autoregister-completion",
    "apiservice-openapi-controller",
    "apiservice-openapiv3-controller",
)
CHECKS: Final[dict[str, tuple[str, ...]]] = {
    "healthz": (*_COMMON, *(f"poststarthook/{hook}" for hook in _HOOKS)),
    "livez": (*_COMMON, *(f"poststarthook/{hook}" for hook in _HOOKS)),
    "readyz": (
        *_COMMON,
        "etcd-readiness",
        "informer-sync",
        *(f"poststarthook/{hook}" for hook in _HOOKS),
        "shutdown",
    ),
}


def paths() -> list[str]:
    """Every path that is a check, for the list at `/`."""
    return [path for probe, checks in CHECKS.items() for path in (f"/{probe}", *(f"/{probe}/{c}" for c in checks))]


async def serve(request: Request) -> bool:
    """Answer if the path is a health check; the server that can answer is healthy."""
    probe, _, check = request.path.strip("/").partition("/")
    checks = CHECKS.get(probe)
    if checks is None or (check and check not in checks):
        return False
    text = "ok"
    if not check and request.query.has("verbose"):
        excluded = set(request.query.all("exclude"))
        lines = [f"[+]{name} excluded: ok" if name in excluded else f"[+]{name} ok" for name in checks]
        text = "\n".join((*lines, f"{probe} check passed", ""))
    nosniff = [("x-content-type-options", "nosniff")]
    await request.reply(200, text.encode(), "text/plain; charset=utf-8", nosniff)
    return True
