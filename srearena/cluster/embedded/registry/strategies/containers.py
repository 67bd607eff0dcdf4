"""What a container of a pod may look like: name, image, ports, environment, mounts and the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.downward_api import check_env_field, check_resource_field
from srearena.cluster.embedded.registry.strategies.probes import lifecycle, probes
from srearena.cluster.embedded.registry.strategies.requirements import container_requirements
from srearena.cluster.embedded.registry.strategies.security_contexts import container_security

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RESIZABLE = ("cpu", "memory")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")
_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef")
_INIT_FORBIDDEN = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
_NOT_FOR_INIT = "may not be set for init containers without restartPolicy=Always"
_EPHEMERAL_FORBIDDEN = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)


@dataclass(slots=True)
class Surroundings:
    """What the containers of a pod can refer to."""

    volumes: Mapping[str, Mapping[str, Any]]
    """Sources of the volumes that are in order, by name."""
    grace: int = 30
    restart_policy: str = "Always"
    host_users: bool = True
    claims: frozenset[str] = field(default_factory=frozenset)


def containers(problems: Problems, path: str, listed: list[Obj], around: Surroundings) -> None:
    if not listed:
        problems.append(FieldError.required(path))
        return
    seen: set[str] = set()
    has_host_ports = False
    for index, container in enumerate(listed):
        where = f"{path}[{index}]"
        _common(problems, where, container, around)
        checks.unique(problems, f"{where}.name", container.get("name") or "", seen)
        if container.get("lifecycle") is not None:
            lifecycle(problems, f"{where}.lifecycle", container["lifecycle"], around.grace)
        probes(problems, where, container, around.grace)
        has_host_ports = has_host_ports or any(port.get("hostPort") for port in container.get("ports") or ())
    if has_host_ports:
        _host_ports(problems, path, listed, 0)


def init_containers(problems: Problems, path: str, listed: list[Obj], regular: list[Obj], around: Surroundings) -> None:
    seen = {container.get("name") or "" for container in regular}
    for index, container in enumerate(listed):
        where, name = f"{path}[{index}]", container.get("name") or ""
        _common(problems, where, container, around)
        if name in seen:
            problems.append(FieldError.duplicate(f"{where}.name", name))
        elif name:
            seen.add(name)
        _host_ports(problems, path, [container], 0)
        if container.get("restartPolicy") == "Always":
            if container.get("lifecycle") is not None:
                lifecycle(problems, f"{where}.lifecycle", container["lifecycle"], around.grace)
            probes(problems, where, container, around.grace)
        else:
            for key in _INIT_FORBIDDEN:
                if container.get(key) is not None:
                    problems.append(FieldError.forbidden(f"{where}.{key}", _NOT_FOR_INIT))


def ephemeral_containers(problems: Problems, path: str, spec: Obj, around: Surroundings) -> None:
    others = {c.get("name") or "" for key in ("containers", "initContainers") for c in spec.get(key) or ()}
    seen = set(others)
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        where = f"{path}[{index}]"
        _common(problems, where, container, around)
        untrimmed_image(problems, where, container)
        checks.unique(problems, f"{where}.name", container.get("name") or "", seen)
        target = container.get("targetContainerName")
        if target and target not in others:
            problems.append(FieldError.not_found(f"{where}.targetContainerName", target))
        for key in _EPHEMERAL_FORBIDDEN:
            if container.get(key) is not None and (container[key] or key != "resources"):
                text = "cannot be set for an Ephemeral Container"
                problems.append(FieldError.forbidden(f"{where}.{key}", text))
        for number, mount in enumerate(container.get("volumeMounts") or ()):
            for key in ("subPath", "subPathExpr"):
                if mount.get(key):
                    text = "cannot be set for an Ephemeral Container"
                    problems.append(FieldError.forbidden(f"{where}.volumeMounts[{number}].{key}", text))


def untrimmed_image(problems: Problems, path: str, container: Obj) -> None:
    image = container.get("image") or ""
    if image != image.strip():
        text = "must not have leading or trailing whitespace"
        problems.append(FieldError.invalid(f"{path}.image", image, text))


def _common(problems: Problems, path: str, container: Obj, around: Surroundings) -> None:
    name = container.get("name")
    if not name:
        problems.append(FieldError.required(f"{path}.name"))
    else:
        checks.label(problems, f"{path}.name", name)
    if not container.get("image"):
        problems.append(FieldError.required(f"{path}.image"))
    checks.required_one_of(
        problems, f"{path}.terminationMessagePolicy", container.get("terminationMessagePolicy"), _MESSAGE_POLICIES
    )
    if container.get("ports"):
        _ports(problems, f"{path}.ports", container["ports"])
    if container.get("env"):
        _environment(problems, f"{path}.env", container["env"])
    if container.get("envFrom"):
        _environment_from(problems, f"{path}.envFrom", container["envFrom"])
    mounts, devices = container.get("volumeMounts") or (), container.get("volumeDevices") or ()
    if mounts:
        _mounts(problems, f"{path}.volumeMounts", container, around)
    if devices:
        _devices(problems, f"{path}.volumeDevices", container, around)
    checks.required_one_of(problems, f"{path}.imagePullPolicy", container.get("imagePullPolicy"), PULL_POLICIES)
    container_requirements(problems, f"{path}.resources", container.get("resources"), around.claims)
    if container.get("resizePolicy"):
        _resize_policy(problems, f"{path}.resizePolicy", container["resizePolicy"], around.restart_policy)
    if container.get("securityContext"):
        container_security(problems, f"{path}.securityContext", container["securityContext"], around.host_users)


def _ports(problems: Problems, path: str, ports: list[Obj]) -> None:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        name = port.get("name")
        if name:
            errors = checks.port_name_errors(name)
            if errors:
                checks.invalid_each(problems, f"{path}[{index}].name", name, errors)
            else:
                checks.unique(problems, f"{path}[{index}].name", name, seen)
        number = port.get("containerPort")
        if not number:
            problems.append(FieldError.required(f"{path}[{index}].containerPort"))
        elif not 1 <= number <= 65535:
            problems.append(FieldError.invalid(f"{path}[{index}].containerPort", number, checks.PORT_RANGE))
        number = port.get("hostPort")
        if number:
            checks.port_number(problems, f"{path}[{index}].hostPort", number)
        protocol = port.get("protocol")
        if protocol not in checks.PROTOCOLS:
            checks.required_one_of(problems, f"{path}[{index}].protocol", protocol, checks.PROTOCOLS)


def _host_ports(problems: Problems, path: str, listed: list[Obj], start: int) -> None:
    """No two containers can have the same port of the node."""
    taken: set[str] = set()
    for index, container in enumerate(listed, start):
        for number, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort"):
                claim = f"{port.get('protocol') or ''}/{port.get('hostIP') or ''}/{port['hostPort']}"
                checks.unique(problems, f"{path}[{index}].ports[{number}].hostPort", claim, taken)


def _environment(problems: Problems, path: str, variables: list[Obj]) -> None:
    for index, variable in enumerate(variables):
        name = variable.get("name")
        if not name:
            problems.append(FieldError.required(f"{path}[{index}].name"))
        else:
            checks.invalid_each(problems, f"{path}[{index}].name", name, checks.env_name_errors(name))
        source = variable.get("valueFrom")
        if source is not None:
            _environment_source(problems, f"{path}[{index}].valueFrom", source, variable.get("value"))


def _environment_source(problems: Problems, path: str, source: Obj, value: str | None) -> None:
    set_keys = [key for key in _ENV_SOURCES if source.get(key) is not None]
    for key in set_keys:
        reference = source[key]
        if key == "fieldRef":
            check_env_field(problems, f"{path}.{key}", reference)
        elif key == "resourceFieldRef":
            check_resource_field(problems, f"{path}.{key}", reference, in_volume=False)
        else:
            _key_reference(problems, f"{path}.{key}", reference)
    if not set_keys:
        text = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        problems.append(FieldError.invalid(path, "", text))
    elif value:
        problems.append(FieldError.invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(set_keys) > 1:
        problems.append(FieldError.invalid(path, "", "may not have more than one field specified at a time"))


def _key_reference(problems: Problems, path: str, reference: Obj) -> None:
    checks.subdomain(problems, f"{path}.name", reference.get("name") or "")
    key = reference.get("key")
    if not key:
        problems.append(FieldError.required(f"{path}.key"))
    else:
        checks.invalid_each(problems, f"{path}.key", key, checks.config_key_errors(key))


def _environment_from(problems: Problems, path: str, sources: list[Obj]) -> None:
    for index, source in enumerate(sources):
        prefix = source.get("prefix")
        if prefix:
            checks.invalid_each(problems, f"{path}[{index}].prefix", prefix, checks.env_name_errors(prefix))
        set_keys = [key for key in ("configMapRef", "secretRef") if source.get(key) is not None]
        for key in set_keys:
            name = source[key].get("name")
            if not name:
                problems.append(FieldError.required(f"{path}[{index}].{key}.name"))
            else:
                checks.invalid_each(problems, f"{path}[{index}].{key}.name", name, checks.subdomain_prefix_errors(name))
        if not set_keys:
            problems.append(FieldError.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(set_keys) > 1:
            problems.append(FieldError.invalid(path, "", "may not have more than one field specified at a time"))


def _mounts(problems: Problems, path: str, container: Obj, around: Surroundings) -> None:
    devices = {d.get("name") or "": d.get("devicePath") or "" for d in container.get("volumeDevices") or ()}
    places: set[str] = set()
    for index, mount in enumerate(container["volumeMounts"]):
        name, place = mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            problems.append(FieldError.required(f"{path}[{index}].name"))
        if name not in around.volumes:
            problems.append(FieldError.not_found(f"{path}[{index}].name", name))
        if not place:
            problems.append(FieldError.required(f"{path}[{index}].mountPath"))
        if place in places:
            problems.append(FieldError.invalid(f"{path}[{index}].mountPath", place, "must be unique"))
        places.add(place)
        if devices:
            if name in devices:
                text = "must not already exist in volumeDevices"
                problems.append(FieldError.invalid(f"{path}[{index}].name", name, text))
            if place in devices.values():
                text = "must not already exist as a path in volumeDevices"
                problems.append(FieldError.invalid(f"{path}[{index}].mountPath", place, text))
        if len(mount) > 2 or not name or not place:
            _mount_options(problems, path, index, mount, container)


def _mount_options(problems: Problems, path: str, index: int, mount: Obj, container: Obj) -> None:
    # These paths lack the index in the real server's messages as well.
    inside, expression = mount.get("subPath"), mount.get("subPathExpr")
    if inside:
        checks.relative_path(problems, f"{path}.subPath", inside)
    if expression:
        if inside:
            text = "subPathExpr and subPath are mutually exclusive"
            problems.append(FieldError.invalid(f"{path}[{index}].subPathExpr", expression, text))
        checks.relative_path(problems, f"{path}.subPathExpr", expression)
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        checks.one_of(problems, f"{path}.mountPropagation", propagation, _PROPAGATIONS)
        if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
            text = "Bidirectional mount propagation is available only to privileged containers"
            problems.append(FieldError.forbidden(f"{path}.mountPropagation", text))
    recursive = mount.get("recursiveReadOnly")
    if recursive in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            text = "may only be specified when readOnly is true"
            problems.append(FieldError.forbidden(f"{path}.recursiveReadOnly", text))
        if propagation not in (None, "None"):
            text = "may only be specified when mountPropagation is None or not specified"
            problems.append(FieldError.forbidden(f"{path}.recursiveReadOnly", text))
    elif recursive is not None and recursive != "Disabled":
        supported = ("Disabled", "Enabled", "IfPossible")
        problems.append(FieldError.not_supported(f"{path}.recursiveReadOnly", recursive, supported))


def _devices(problems: Problems, path: str, container: Obj, around: Surroundings) -> None:
    mounts = {m.get("name") or "": m.get("mountPath") or "" for m in container.get("volumeMounts") or ()}
    names: set[str] = set()
    places: set[str] = set()
    for index, device in enumerate(container["volumeDevices"]):
        where, name, place = f"{path}[{index}]", device.get("name") or "", device.get("devicePath") or ""
        source = around.volumes.get(name)
        if not name:
            problems.append(FieldError.required(f"{where}.name"))
        if name in names:
            problems.append(FieldError.invalid(f"{where}.name", name, "must be unique"))
        if source is None:
            problems.append(FieldError.not_found(f"{where}.name", name))
        elif source.get("persistentVolumeClaim") is None and source.get("ephemeral") is None:
            text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            problems.append(FieldError.invalid(f"{where}.name", name, text))
        if not place:
            problems.append(FieldError.required(f"{where}.devicePath"))
        if place in places:
            problems.append(FieldError.invalid(f"{where}.devicePath", place, "must be unique"))
        if place and ".." in place.split("/"):
            problems.append(FieldError.invalid(f"{where}.devicePath", place, "can not contain backsteps ('..')"))
        else:
            places.add(place)
        if name in mounts:
            problems.append(FieldError.invalid(f"{where}.name", name, "must not already exist in volumeMounts"))
        if place in mounts.values():
            text = "must not already exist as a path in volumeMounts"
            problems.append(FieldError.invalid(f"{where}.devicePath", place, text))
        if name:
            names.add(name)


def _resize_policy(problems: Problems, path: str, policies: list[Obj], restart_policy: str) -> None:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        name, restart = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        checks.unique(problems, f"{path}[{index}]", name, seen)
        checks.required_one_of(problems, path, name, _RESIZABLE)
        checks.required_one_of(problems, path, restart, _RESIZE_POLICIES)
        if restart_policy == "Never" and restart != "NotRequired":
            text = "must be 'NotRequired' when `restartPolicy` is 'Never'"
            problems.append(FieldError.invalid(path, restart, text))
