"""Security contexts of pods and containers."""

from __future__ import annotations

import re

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import MAX_INT32, Problems
from srearena.cluster.embedded.registry.strategies.go_shapes import shape_of
from srearena.cluster.embedded.registry.strategies.parts import items

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL_PATTERN = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = re.compile(_SYSCTL_PATTERN)
_NET_SYSCTLS = ("net.", "net/")
_IPC_SYSCTLS = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.", "kernel/shm", "kernel/msg", "kernel/sem")


def container_security(problems: Problems, path: str, context: Obj, host_users: bool) -> None:
    for key in ("runAsUser", "runAsGroup"):
        checks.in_range(problems, f"{path}.{key}", context.get(key), 0, MAX_INT32)
    mount = context.get("procMount")
    if mount is not None:
        if mount not in ("Default", "Unmasked"):
            problems.append(FieldError.not_supported(f"{path}.procMount", mount, ("Default", "Unmasked")))
        if host_users and mount == "Unmasked":
            text = "`hostUsers` must be false to use `Unmasked`"
            problems.append(FieldError.invalid(f"{path}.procMount", mount, text))
    _seccomp(problems, f"{path}.seccompProfile", context.get("seccompProfile"))
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            problems.append(FieldError.invalid(path, shape_of("SecurityContext", context), text))
        for capability in items(context.get("capabilities"), "add"):
            if capability == "CAP_SYS_ADMIN":
                text = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
                problems.append(FieldError.invalid(path, shape_of("SecurityContext", context), text))
    _app_armor(problems, f"{path}.appArmorProfile", context.get("appArmorProfile"))


def pod_security(problems: Problems, path: str, spec: Obj) -> None:
    context = spec.get("securityContext")
    if not context:
        if spec.get("shareProcessNamespace") and spec.get("hostPID"):
            _shared_twice(problems, path)
        return
    for key in ("fsGroup", "runAsUser", "runAsGroup"):
        checks.in_range(problems, f"{path}.{key}", context.get(key), 0, MAX_INT32)
    for index, group in enumerate(items(context, "supplementalGroups")):
        checks.in_range(problems, f"{path}.supplementalGroups[{index}]", group, 0, MAX_INT32)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        _shared_twice(problems, path)
    _sysctls(problems, f"{path}.sysctls", items(context, "sysctls"), spec)
    for key, supported in (
        ("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
        ("supplementalGroupsPolicy", ("Merge", "Strict")),
        ("seLinuxChangePolicy", ("MountOption", "Recursive")),
    ):
        if context.get(key) is not None:
            checks.one_of(problems, f"{path}.{key}", context[key], supported)
    _seccomp(problems, f"{path}.seccompProfile", context.get("seccompProfile"))
    _app_armor(problems, f"{path}.appArmorProfile", context.get("appArmorProfile"))


def _shared_twice(problems: Problems, path: str) -> None:
    text = "ShareProcessNamespace and HostPID cannot both be enabled"
    problems.append(FieldError.invalid(f"{path}.shareProcessNamespace", True, text))


def _sysctls(problems: Problems, path: str, sysctls: list[Obj], spec: Obj) -> None:
    seen: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        where, name = f"{path}[{index}].name", sysctl.get("name") or ""
        if not name:
            problems.append(FieldError.required(where))
        elif len(name) > 253 or not _SYSCTL.fullmatch(name):
            text = f"must have at most 253 characters and match regex ^{_SYSCTL_PATTERN}$"
            problems.append(FieldError.invalid(where, name, text))
        elif name in seen:
            problems.append(FieldError.duplicate(where, name))
        if spec.get("hostNetwork") and name.startswith(_NET_SYSCTLS):
            problems.append(FieldError.invalid(where, name, "may not be specified when 'hostNetwork' is true"))
        elif spec.get("hostIPC") and name.startswith(_IPC_SYSCTLS):
            problems.append(FieldError.invalid(where, name, "may not be specified when 'hostIPC' is true"))
        seen.add(name)


def _seccomp(problems: Problems, path: str, profile: Obj | None) -> None:
    if profile is None:
        return
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    if not kind:
        problems.append(FieldError.required(f"{path}.type", "type is required when seccompProfile is set"))
    elif kind not in _PROFILES:
        problems.append(FieldError.not_supported(f"{path}.type", kind, _PROFILES))
    where = f"{path}.localhostProfile"
    if kind != "Localhost":
        if local is not None:
            shown = shape_of("SeccompProfile", profile)
            problems.append(FieldError.invalid(where, shown, "can only be set when seccomp type is Localhost"))
    elif local is None:
        problems.append(FieldError.required(where, "must be set when seccomp type is Localhost"))
    else:
        checks.relative_path(problems, where, local)


def _app_armor(problems: Problems, path: str, profile: Obj | None) -> None:
    if profile is None:
        return
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    where = f"{path}.localhostProfile"
    if kind == "Localhost":
        if local is None or not local.strip():
            problems.append(FieldError.required(where, "must be set when AppArmor type is Localhost"))
        elif local != local.strip():
            problems.append(FieldError.invalid(where, local, "must not be padded with whitespace"))
    elif kind in _PROFILES:
        if local is not None:
            problems.append(FieldError.invalid(where, local, "can only be set when AppArmor type is Localhost"))
    elif not kind:
        problems.append(FieldError.required(f"{path}.type", "type is required when appArmorProfile is set"))
    else:
        problems.append(FieldError.not_supported(f"{path}.type", kind, _PROFILES))
