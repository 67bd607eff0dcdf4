"""PodSecurity: the Pod Security Standards, as labels on a namespace ask for them.

`enforce` refuses pods, `warn` tells who creates a workload with such a template. The checks are a table: each looks
at a pod spec and reports what it found, in the words of the real admission plug-in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj, dig, labels_of
from srearena.cluster.embedded.registry.admission.chain import Attributes, Plugin
from srearena.cluster.embedded.store import Store

Level = Literal["privileged", "baseline", "restricted"]
_PREFIX = "pod-security.kubernetes.io/"
_TEMPLATES: dict[str, tuple[str, ...]] = {
    "pods": ("spec",),
    "replicationcontrollers": ("spec", "template", "spec"),
    "podtemplates": ("template", "spec"),
    "replicasets.apps": ("spec", "template", "spec"),
    "deployments.apps": ("spec", "template", "spec"),
    "statefulsets.apps": ("spec", "template", "spec"),
    "daemonsets.apps": ("spec", "template", "spec"),
    "jobs.batch": ("spec", "template", "spec"),
    "cronjobs.batch": ("spec", "jobTemplate", "spec", "template", "spec"),
}
_BASELINE_CAPABILITIES = frozenset(
    "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID "
    "SYS_CHROOT".split()
)
_SAFE_SYSCTLS = frozenset(
    "kernel.shm_rmid_forced net.ipv4.ip_local_port_range net.ipv4.tcp_syncookies net.ipv4.ping_group_range "
    "net.ipv4.ip_unprivileged_port_start net.ipv4.ip_local_reserved_ports net.ipv4.tcp_keepalive_time "
    "net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_keepalive_probes net.ipv4.tcp_rmem "
    "net.ipv4.tcp_wmem".split()
)
_RESTRICTED_VOLUMES = frozenset(
    "name configMap csi downwardAPI emptyDir ephemeral persistentVolumeClaim projected secret image".split()
)


@dataclass(slots=True, frozen=True)
class Violation:
    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


Check = Callable[[Obj, Obj], Violation | None]
"""(pod metadata, pod spec) → what is wrong."""


def containers_of(spec: Obj) -> Iterator[Obj]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(field) or ()


def _named(what: str, names: list[str]) -> str:
    return f"{what}{'' if len(names) == 1 else 's'} {', '.join(quoted(name) for name in names)}"


def _offenders(spec: Obj, bad: Callable[[Obj], bool]) -> list[str]:
    return [container.get("name", "") for container in containers_of(spec) if bad(container)]


def _privileged(_: Obj, spec: Obj) -> Violation | None:
    bad = _offenders(spec, lambda c: dig(c, "securityContext", "privileged") is True)
    return (
        Violation("privileged", f"{_named('container', bad)} must not set securityContext.privileged=true")
        if bad
        else None
    )


def _host_namespaces(_: Obj, spec: Obj) -> Violation | None:
    used = [f"{key}=true" for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key)]
    return Violation("host namespaces", ", ".join(used)) if used else None


def _host_ports(_: Obj, spec: Obj) -> Violation | None:
    ports = sorted(
        {p["hostPort"] for c in containers_of(spec) for p in c.get("ports") or () if p.get("hostPort")},
    )
    bad = _offenders(spec, lambda c: any(p.get("hostPort") for p in c.get("ports") or ()))
    if not bad:
        return None
    noun = "hostPort" if len(ports) == 1 else "hostPorts"
    verb = "uses" if len(bad) == 1 else "use"
    return Violation("hostPort", f"{_named('container', bad)} {verb} {noun} {', '.join(map(str, ports))}")


def _host_path(_: Obj, spec: Obj) -> Violation | None:
    bad = [volume.get("name", "") for volume in spec.get("volumes") or () if volume.get("hostPath")]
    return Violation("hostPath volumes", _named("volume", bad)) if bad else None


def _capabilities(_: Obj, spec: Obj) -> Violation | None:
    def added(container: Obj) -> set[str]:
        return set(dig(container, "securityContext", "capabilities", "add", default=())) - _BASELINE_CAPABILITIES

    bad = _offenders(spec, lambda c: bool(added(c)))
    if not bad:
        return None
    extra = sorted(set().union(*(added(c) for c in containers_of(spec))))
    return Violation(
        "non-default capabilities",
        f"{_named('container', bad)} must not include {', '.join(map(quoted, extra))} "
        "in securityContext.capabilities.add",
    )


def _proc_mount(_: Obj, spec: Obj) -> Violation | None:
    bad = _offenders(spec, lambda c: dig(c, "securityContext", "procMount", default="Default") != "Default")
    return (
        Violation("procMount", f'{_named("container", bad)} must not set securityContext.procMount to "Unmasked"')
        if bad
        else None
    )


def _seccomp_baseline(_: Obj, spec: Obj) -> Violation | None:
    def unconfined(holder: Obj) -> bool:
        return bool(dig(holder, "securityContext", "seccompProfile", "type") == "Unconfined")

    bad = _offenders(spec, unconfined)
    who = (["pod"] if unconfined(spec) else []) + ([_named("container", bad)] if bad else [])
    if not who:
        return None
    return Violation(
        "seccompProfile", f'{" and ".join(who)} must not set securityContext.seccompProfile.type to "Unconfined"'
    )


def _sysctls(_: Obj, spec: Obj) -> Violation | None:
    names = [s.get("name", "") for s in dig(spec, "securityContext", "sysctls", default=())]
    bad = [name for name in names if name not in _SAFE_SYSCTLS]
    return Violation("forbidden sysctls", ", ".join(bad)) if bad else None


def _escalation(_: Obj, spec: Obj) -> Violation | None:
    bad = _offenders(spec, lambda c: dig(c, "securityContext", "allowPrivilegeEscalation") is not False)
    if not bad:
        return None
    return Violation(
        "allowPrivilegeEscalation != false",
        f"{_named('container', bad)} must set securityContext.allowPrivilegeEscalation=false",
    )


def _capabilities_restricted(_: Obj, spec: Obj) -> Violation | None:
    keeping = _offenders(spec, lambda c: "ALL" not in dig(c, "securityContext", "capabilities", "drop", default=()))
    adding = _offenders(
        spec, lambda c: bool(set(dig(c, "securityContext", "capabilities", "add", default=())) - {"NET_BIND_SERVICE"})
    )
    parts: list[str] = []
    if keeping:
        parts.append(f'{_named("container", keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        extra = sorted(
            {
                name
                for c in containers_of(spec)
                for name in dig(c, "securityContext", "capabilities", "add", default=())
                if name != "NET_BIND_SERVICE"
            }
        )
        parts.append(
            f"{_named('container', adding)} must not include {', '.join(map(quoted, extra))} "
            "in securityContext.capabilities.add"
        )
    return Violation("unrestricted capabilities", "; ".join(parts)) if parts else None


def _volumes_restricted(_: Obj, spec: Obj) -> Violation | None:
    kinds = {
        volume.get("name", ""): [key for key in volume if key not in _RESTRICTED_VOLUMES]
        for volume in spec.get("volumes") or ()
    }
    bad = [name for name, found in kinds.items() if found]
    if not bad:
        return None
    used = sorted({kind for found in kinds.values() for kind in found})
    verb, noun = ("uses", "type") if len(bad) == 1 else ("use", "types")
    if len(used) == 1:
        noun = "type"
    return Violation(
        "restricted volume types",
        f"{_named('volume', bad)} {verb} restricted volume {noun} {', '.join(map(quoted, used))}",
    )


def _run_as_non_root(_: Obj, spec: Obj) -> Violation | None:
    pod_level = dig(spec, "securityContext", "runAsNonRoot")
    explicit = _offenders(spec, lambda c: dig(c, "securityContext", "runAsNonRoot") is False)
    if explicit:
        return Violation(
            "runAsNonRoot != true", f"{_named('container', explicit)} must not set securityContext.runAsNonRoot=false"
        )
    if pod_level is True:
        return None
    bad = _offenders(spec, lambda c: dig(c, "securityContext", "runAsNonRoot") is None)
    if pod_level is None and not bad:
        return None
    if pod_level is False:
        return Violation("runAsNonRoot != true", "pod must not set securityContext.runAsNonRoot=false")
    return Violation(
        "runAsNonRoot != true", f"pod or {_named('container', bad)} must set securityContext.runAsNonRoot=true"
    )


def _run_as_user(_: Obj, spec: Obj) -> Violation | None:
    bad = _offenders(spec, lambda c: dig(c, "securityContext", "runAsUser") == 0)
    who = (["pod"] if dig(spec, "securityContext", "runAsUser") == 0 else []) + (
        [_named("container", bad)] if bad else []
    )
    return Violation("runAsUser=0", f"{' and '.join(who)} must not set runAsUser=0") if who else None


def _seccomp_restricted(metadata: Obj, spec: Obj) -> Violation | None:
    fine = ("RuntimeDefault", "Localhost")
    wrong = _offenders(
        spec, lambda c: dig(c, "securityContext", "seccompProfile", "type", default="RuntimeDefault") not in fine
    )
    if wrong:
        return Violation(
            "seccompProfile",
            f'{_named("container", wrong)} must not set securityContext.seccompProfile.type to "Unconfined"',
        )
    if dig(spec, "securityContext", "seccompProfile", "type") in fine:
        return None
    missing = _offenders(spec, lambda c: dig(c, "securityContext", "seccompProfile", "type") is None)
    if not missing:
        return None
    return Violation(
        "seccompProfile",
        f"pod or {_named('container', missing)} must set securityContext.seccompProfile.type to "
        '"RuntimeDefault" or "Localhost"',
    )


_BASELINE: tuple[Check, ...] = (
    _host_namespaces,
    _privileged,
    _capabilities,
    _host_path,
    _host_ports,
    _proc_mount,
    _seccomp_baseline,
    _sysctls,
)
_RESTRICTED: tuple[Check, ...] = (
    _host_namespaces,
    _privileged,
    _escalation,
    _capabilities_restricted,
    _host_path,
    _host_ports,
    _proc_mount,
    _sysctls,
    _volumes_restricted,
    _run_as_non_root,
    _run_as_user,
    _seccomp_restricted,
)
CHECKS: dict[str, tuple[Check, ...]] = {"privileged": (), "baseline": _BASELINE, "restricted": _RESTRICTED}


def violations(level: str, metadata: Obj, spec: Obj) -> list[Violation]:
    return [found for check in CHECKS.get(level, ()) if (found := check(metadata, spec)) is not None]


class PodSecurity(Plugin):
    name = "PodSecurity"

    def __init__(self, store: Store) -> None:
        self._store = store

    def validate(self, attributes: Attributes) -> None:
        path = _TEMPLATES.get(attributes.row.group_resource)
        if path is None or attributes.obj is None or attributes.subresource not in ("", "ephemeralcontainers"):
            return
        namespace = self._store.get("namespaces", "", attributes.namespace)
        labels = labels_of(namespace or {})
        if not any(key.startswith(_PREFIX) for key in labels):
            return
        spec = dig(attributes.obj, *path)
        if not spec or (attributes.old is not None and dig(attributes.old, *path) == spec):
            return
        metadata = attributes.obj.get("metadata") or {}
        if attributes.row.group_resource == "pods":
            self._enforce(attributes, labels, metadata, spec)
        found = self._found("warn", labels, metadata, spec)
        if found:
            attributes.warnings.append(f"would violate PodSecurity {found}")

    def _enforce(self, attributes: Attributes, labels: dict[str, str], metadata: Obj, spec: Obj) -> None:
        found = self._found("enforce", labels, metadata, spec)
        if found:
            raise attributes.refusal(f"violates PodSecurity {found}")

    @staticmethod
    def _found(mode: str, labels: dict[str, str], metadata: Obj, spec: Obj) -> str:
        level = labels.get(_PREFIX + mode, "privileged")
        version = labels.get(f"{_PREFIX}{mode}-version", "latest")
        broken = violations(level, metadata, spec)
        if not broken:
            return ""
        return f"{quoted(f'{level}:{version}')}: {', '.join(map(str, broken))}"
