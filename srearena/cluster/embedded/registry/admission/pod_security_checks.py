"""The Pod Security Standards: what each level forbids, since which version, in the words of the real plug-in.

A table of checks: each looks at a pod and reports what it found. A level runs the baseline checks in the order of
their ids, then its own; a check of the restricted level may take the place of a baseline one. Pure: nothing is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj, dig

NEWEST_MINOR = 34
_BASELINE_CAPABILITIES = frozenset(
    "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID "
    "SYS_CHROOT".split()
)
_SYSCTLS_SINCE: dict[int, tuple[str, ...]] = {
    0: (
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    ),
    27: ("net.ipv4.ip_local_reserved_ports",),
    29: (
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
    ),
    32: ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
}
_SELINUX_TYPES_SINCE: dict[int, tuple[str, ...]] = {
    0: ("", "container_t", "container_init_t", "container_kvm_t"),
    31: ("container_engine_t",),
}
_RESTRICTED_VOLUMES = frozenset(
    "configMap csi downwardAPI emptyDir ephemeral image persistentVolumeClaim projected secret".split()
)
_PROFILES = ("RuntimeDefault", "Localhost")
_APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"


@dataclass(slots=True, frozen=True)
class Violation:
    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


@dataclass(slots=True, frozen=True)
class Pod:
    """What is looked at: a pod, or the pod a workload would make, under a version of the standards."""

    metadata: Obj
    spec: Obj
    minor: int

    def containers(self) -> Iterator[Obj]:
        for field in ("initContainers", "containers", "ephemeralContainers"):
            yield from self.spec.get(field) or ()

    def offenders(self, bad: Callable[[Obj], bool]) -> list[str]:
        return [container.get("name", "") for container in self.containers() if bad(container)]

    def setters(self, bad: Callable[[Obj], bool]) -> str:
        """`pod and containers "a", "b"`: who has set something bad in a security context."""
        containers = self.offenders(lambda container: bad(container.get("securityContext") or {}))
        who = ["pod"] if bad(self.spec.get("securityContext") or {}) else []
        return " and ".join([*who, _named("container", containers)] if containers else who)

    def contexts(self) -> Iterator[Obj]:
        for holder in (self.spec, *self.containers()):
            yield holder.get("securityContext") or {}

    @property
    def on_windows(self) -> bool:
        return self.minor >= 25 and dig(self.spec, "os", "name") == "windows"


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def _listed(values: list[str]) -> str:
    return ", ".join(quoted(value) for value in values)


def _named(what: str, names: list[str]) -> str:
    return f"{_plural(what, len(names))} {_listed(names)}"


def _since(table: dict[int, tuple[str, ...]], minor: int) -> set[str]:
    return {value for start, values in table.items() if start <= minor for value in values}


def _apparmor(pod: Pod) -> Violation | None:
    def bad(context: Obj) -> bool:
        return "appArmorProfile" in context and dig(context, "appArmorProfile", "type") not in _PROFILES

    who = pod.setters(bad)
    values = sorted({dig(context, "appArmorProfile", "type", default="") for context in pod.contexts() if bad(context)})
    notes = sorted(
        f"{key}={quoted(value)}"
        for key, value in (pod.metadata.get("annotations") or {}).items()
        if key.startswith(_APPARMOR_ANNOTATION)
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    )
    if notes:
        who = " and ".join(filter(None, (who, _plural("annotation", len(notes)))))
    if not who:
        return None
    wrong = [*values, *notes]
    listed = '"' + '", "'.join(wrong) + '"'
    return Violation(
        _plural("forbidden AppArmor profile", len(wrong)), f"{who} must not set AppArmor profile type to {listed}"
    )


def _capabilities(pod: Pod) -> Violation | None:
    def added(container: Obj) -> set[str]:
        return set(dig(container, "securityContext", "capabilities", "add", default=())) - _BASELINE_CAPABILITIES

    bad = pod.offenders(lambda c: bool(added(c)))
    if not bad:
        return None
    extra = sorted(set().union(*(added(c) for c in pod.containers())))
    detail = f"{_named('container', bad)} must not include {_listed(extra)} in securityContext.capabilities.add"
    return Violation("non-default capabilities", detail)


def _host_namespaces(pod: Pod) -> Violation | None:
    used = [f"{key}=true" for key in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(key)]
    return Violation("host namespaces", ", ".join(used)) if used else None


def _host_path(pod: Pod) -> Violation | None:
    bad = [volume.get("name", "") for volume in pod.spec.get("volumes") or () if volume.get("hostPath")]
    return Violation("hostPath volumes", _named("volume", bad)) if bad else None


def _host_ports(pod: Pod) -> Violation | None:
    ports = sorted({str(p["hostPort"]) for c in pod.containers() for p in c.get("ports") or () if p.get("hostPort")})
    bad = pod.offenders(lambda c: any(p.get("hostPort") for p in c.get("ports") or ()))
    if not bad:
        return None
    verb = "uses" if len(bad) == 1 else "use"
    return Violation(
        "hostPort", f"{_named('container', bad)} {verb} {_plural('hostPort', len(ports))} {', '.join(ports)}"
    )


def _probe_hosts(pod: Pod) -> Violation | None:
    """A probe or hook that calls another host makes the kubelet call whatever the pod's author likes."""

    def hosts(container: Obj) -> set[str]:
        probes = [container.get(f"{kind}Probe") or {} for kind in ("liveness", "readiness", "startup")]
        hooks = [dig(container, "lifecycle", hook, default={}) for hook in ("postStart", "preStop")]
        found = {dig(call, way, "host") for call in (*probes, *hooks) for way in ("httpGet", "tcpSocket")}
        return {host for host in found if host}

    bad = sorted(set(pod.offenders(lambda c: bool(hosts(c)))))
    if not bad:
        return None
    called = sorted(set().union(*(hosts(c) for c in pod.containers())))
    verb = "uses" if len(bad) == 1 else "use"
    return Violation(
        "probe or lifecycle host",
        f"{_named('container', bad)} {verb} {_named('probe or lifecycle host', called)}",
    )


def _privileged(pod: Pod) -> Violation | None:
    bad = pod.offenders(lambda c: dig(c, "securityContext", "privileged") is True)
    return (
        Violation("privileged", f"{_named('container', bad)} must not set securityContext.privileged=true")
        if bad
        else None
    )


def _proc_mount(pod: Pod) -> Violation | None:
    def kind(container: Obj) -> str:
        return str(dig(container, "securityContext", "procMount") or "Default")

    bad = pod.offenders(lambda c: kind(c) != "Default")
    values = sorted({kind(c) for c in pod.containers()} - {"Default"})
    detail = f"{_named('container', bad)} must not set securityContext.procMount to {_listed(values)}"
    return Violation("procMount", detail) if bad else None


def _selinux(pod: Pod) -> Violation | None:
    allowed = _since(_SELINUX_TYPES_SINCE, pod.minor)
    options = [context["seLinuxOptions"] for context in pod.contexts() if context.get("seLinuxOptions")]

    def bad(context: Obj) -> bool:
        chosen = context.get("seLinuxOptions") or {}
        return bool(chosen.get("type", "") not in allowed or chosen.get("user") or chosen.get("role"))

    who = pod.setters(bad)
    if not who:
        return None
    types = sorted({chosen.get("type", "") for chosen in options} - allowed)
    wrong = [_named("type", types)] if types else []
    wrong += [f"{key} may not be set" for key in ("user", "role") if any(chosen.get(key) for chosen in options)]
    return Violation("seLinuxOptions", f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(wrong)}")


def _bad_seccomp(context: Obj) -> bool:
    return "seccompProfile" in context and dig(context, "seccompProfile", "type") not in _PROFILES


def _seccomp_baseline(pod: Pod) -> Violation | None:
    who = pod.setters(_bad_seccomp)
    if not who:
        return None
    values = sorted({dig(c, "seccompProfile", "type", default="") for c in pod.contexts() if _bad_seccomp(c)})
    return Violation("seccompProfile", f"{who} must not set securityContext.seccompProfile.type to {_listed(values)}")


def _sysctls(pod: Pod) -> Violation | None:
    allowed = _since(_SYSCTLS_SINCE, pod.minor)
    names = [sysctl.get("name", "") for sysctl in dig(pod.spec, "securityContext", "sysctls", default=())]
    bad = [name for name in names if name not in allowed]
    return Violation("forbidden sysctls", ", ".join(bad)) if bad else None


def _host_process(pod: Pod) -> Violation | None:
    who = pod.setters(lambda context: dig(context, "windowsOptions", "hostProcess") is True)
    detail = f"{who} must not set securityContext.windowsOptions.hostProcess=true"
    return Violation("hostProcess", detail) if who else None


def _escalation(pod: Pod) -> Violation | None:
    bad = pod.offenders(lambda c: dig(c, "securityContext", "allowPrivilegeEscalation") is not False)
    if not bad or pod.on_windows:
        return None
    detail = f"{_named('container', bad)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail)


def _capabilities_restricted(pod: Pod) -> Violation | None:
    def added(container: Obj) -> set[str]:
        return set(dig(container, "securityContext", "capabilities", "add", default=())) - {"NET_BIND_SERVICE"}

    keeping = pod.offenders(lambda c: "ALL" not in dig(c, "securityContext", "capabilities", "drop", default=()))
    adding = pod.offenders(lambda c: bool(added(c)))
    parts: list[str] = []
    if keeping:
        parts.append(f'{_named("container", keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        extra = sorted(set().union(*(added(c) for c in pod.containers())))
        who = _named("container", adding)
        parts.append(f"{who} must not include {_listed(extra)} in securityContext.capabilities.add")
    return Violation("unrestricted capabilities", "; ".join(parts)) if parts and not pod.on_windows else None


def _volumes_restricted(pod: Pod) -> Violation | None:
    bad: list[str] = []
    used: set[str] = set()
    for volume in pod.spec.get("volumes") or ():
        kinds = [kind for kind in volume if kind != "name"]
        if not any(kind in _RESTRICTED_VOLUMES for kind in kinds):
            bad.append(volume.get("name", ""))
            used.update(kinds or ("unknown",))
    if not bad:
        return None
    verb = "uses" if len(bad) == 1 else "use"
    return Violation(
        "restricted volume types",
        f"{_named('volume', bad)} {verb} {_named('restricted volume type', sorted(used))}",
    )


def _run_as_non_root(pod: Pod) -> Violation | None:
    who = pod.setters(lambda context: context.get("runAsNonRoot") is False)
    if who:
        return Violation("runAsNonRoot != true", f"{who} must not set securityContext.runAsNonRoot=false")
    if dig(pod.spec, "securityContext", "runAsNonRoot"):
        return None
    silent = pod.offenders(lambda c: dig(c, "securityContext", "runAsNonRoot") is None)
    detail = f"pod or {_named('container', silent)} must set securityContext.runAsNonRoot=true"
    return Violation("runAsNonRoot != true", detail) if silent else None


def _run_as_user(pod: Pod) -> Violation | None:
    who = pod.setters(lambda context: context.get("runAsUser") == 0)
    return Violation("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def _seccomp_restricted(pod: Pod) -> Violation | None:
    if pod.on_windows:
        return None
    wrong = _seccomp_baseline(pod)
    if wrong is not None or dig(pod.spec, "securityContext", "seccompProfile"):
        return wrong
    silent = pod.offenders(lambda c: not dig(c, "securityContext", "seccompProfile"))
    detail = (
        f"pod or {_named('container', silent)} must set securityContext.seccompProfile.type to "
        '"RuntimeDefault" or "Localhost"'
    )
    return Violation("seccompProfile", detail) if silent else None


@dataclass(slots=True, frozen=True)
class Check:
    id: str
    look: Callable[[Pod], Violation | None]
    since: int = 0
    replaces: str = ""
    """The baseline check that the restricted level does not run besides this one."""


BASELINE: tuple[Check, ...] = (
    Check("appArmorProfile", _apparmor),
    Check("capabilities_baseline", _capabilities),
    Check("hostNamespaces", _host_namespaces),
    Check("hostPathVolumes", _host_path),
    Check("hostPorts", _host_ports),
    Check("hostProbesAndHostLifecycle", _probe_hosts, since=34),
    Check("privileged", _privileged),
    Check("procMount", _proc_mount),
    Check("seLinuxOptions", _selinux),
    Check("seccompProfile_baseline", _seccomp_baseline, since=19),
    Check("sysctls", _sysctls),
    Check("windowsHostProcess", _host_process),
)
RESTRICTED: tuple[Check, ...] = (
    Check("allowPrivilegeEscalation", _escalation, since=8),
    Check("capabilities_restricted", _capabilities_restricted, since=22, replaces="capabilities_baseline"),
    Check("restrictedVolumes", _volumes_restricted, replaces="hostPathVolumes"),
    Check("runAsNonRoot", _run_as_non_root),
    Check("runAsUser", _run_as_user, since=23),
    Check("seccompProfile_restricted", _seccomp_restricted, since=19, replaces="seccompProfile_baseline"),
)


def checks(level: str, minor: int) -> list[Check]:
    """The checks of a level in a version, in the order in which they report."""
    if level == "privileged":
        return []
    own = [check for check in RESTRICTED if check.since <= minor] if level == "restricted" else []
    replaced = {check.replaces for check in own}
    return [*(c for c in BASELINE if c.since <= minor and c.id not in replaced), *own]


def violations(level: str, minor: int, metadata: Obj, spec: Obj) -> list[Violation]:
    minor = min(minor, NEWEST_MINOR)
    pod = Pod(metadata, spec, minor)
    return [found for check in checks(level, minor) if (found := check.look(pod)) is not None]
