"""What the pods of a workload are, as one comparable value: a template with its references resolved.

Two templates that say the same in different words compare equal: an environment variable with a literal value or one
from a ConfigMap with that value, a renamed volume, a renamed ConfigMap with the same content. A volume counts only
where a container mounts it: a claim that is listed and not mounted holds nothing.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from srearena.service.kubernetes import Obj

if TYPE_CHECKING:
    from srearena.conductor.grading.baseline import Baseline

_SOURCES = {"configMap": ("configmaps", "name"), "secret": ("secrets", "secretName")}


def pod_spec(workload: Obj) -> Obj:
    """The pod spec in a workload's template, or of a pod."""
    spec: Obj = workload.get("spec") or {}
    if workload.get("kind") == "CronJob":
        spec = (spec.get("jobTemplate") or {}).get("spec") or {}
    return (spec.get("template") or {}).get("spec") or {} if "template" in spec else spec


def pod_labels(workload: Obj) -> dict[str, str]:
    """The labels of a workload's pods."""
    template = (workload.get("spec") or {}).get("template") or {}
    return (template.get("metadata") or {}).get("labels") or {}


def containers(spec: Obj) -> Iterator[tuple[str, Obj]]:
    """The containers and init containers of a pod spec, each with the field it is in."""
    for group in ("initContainers", "containers"):
        for container in spec.get(group) or ():
            yield group, container


def references(spec: Obj) -> set[tuple[str, str]]:
    """The objects that a pod spec needs, as resource and name: settings, claims, its service account."""
    found: set[tuple[str, str]] = set()
    for volume in spec.get("volumes") or ():
        for source in (volume, *((volume.get("projected") or {}).get("sources") or ())):
            for field, (resource, key) in _SOURCES.items():
                if field in source:
                    found.add((resource, str(source[field].get(key) or source[field].get("name") or "")))
        if "persistentVolumeClaim" in volume:
            found.add(("persistentvolumeclaims", volume["persistentVolumeClaim"]["claimName"]))
    for _, container in containers(spec):
        for entry in (*(container.get("env") or ()), *(container.get("envFrom") or ())):
            origin = entry.get("valueFrom") or entry
            for field, resource in (("configMap", "configmaps"), ("secret", "secrets")):
                reference = origin.get(f"{field}KeyRef") or origin.get(f"{field}Ref")
                if reference:
                    found.add((resource, str(reference.get("name", ""))))
    for pull in spec.get("imagePullSecrets") or ():
        found.add(("secrets", pull.get("name", "")))
    found.add(("serviceaccounts", spec.get("serviceAccountName") or "default"))
    return found


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration of a workload's containers: environment variables and mounted files, by container and name."""

    variables: dict[tuple[str, str], str]
    files: dict[tuple[str, str], str]


class Templates:
    """Resolves the references of one state's templates, in the terms of an earlier state."""

    def __init__(self, state: Baseline, earlier: Baseline | None = None) -> None:
        self._state = state
        self._earlier = earlier or state

    def resolved(self, workload: Obj) -> Obj:
        """The pod spec of a workload with effective environment variables and mounts by their source."""
        namespace = workload["metadata"].get("namespace", "")
        spec = pod_spec(workload)
        volumes = {volume["name"]: volume for volume in spec.get("volumes") or ()}
        for claim in (workload.get("spec") or {}).get("volumeClaimTemplates") or ():
            volumes[claim["metadata"]["name"]] = {"volumeClaimTemplate": claim["metadata"]["name"]}
        result = {key: value for key, value in spec.items() if key not in ("volumes", "containers", "initContainers")}
        for group, container in containers(spec):
            resolved = {
                key: value for key, value in container.items() if key not in ("name", "env", "envFrom", "volumeMounts")
            }
            resolved["env"] = self._environment(container, namespace)
            resolved["mounts"] = {
                mount["mountPath"]: self._mount(mount, volumes.get(mount["name"]), namespace)
                for mount in container.get("volumeMounts") or ()
            }
            result.setdefault(group, {})[container["name"]] = resolved
        return result

    def settings(self, workload: Obj) -> Settings:
        """The settings of a workload with the content that ConfigMaps and Secrets have in this state."""
        namespace = workload["metadata"].get("namespace", "")
        spec = pod_spec(workload)
        volumes = {volume["name"]: volume for volume in spec.get("volumes") or ()}
        found = Settings({}, {})
        for _, container in containers(spec):
            name = container["name"]
            for variable, value in self._environment(container, namespace).items():
                found.variables[name, variable] = value
            for mount in container.get("volumeMounts") or ():
                for field, (resource, key) in _SOURCES.items():
                    source = (volumes.get(mount["name"]) or {}).get(field)
                    for entry, text in (
                        self._data(resource, str(source.get(key, "")), namespace).items() if source else ()
                    ):
                        found.files[name, f"{mount['mountPath'].rstrip('/')}/{entry}"] = text
        return found

    def _environment(self, container: Obj, namespace: str) -> dict[str, str]:
        environment: dict[str, str] = {}
        for source in container.get("envFrom") or ():
            for field, resource in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
                if field in source:
                    data = self._data(resource, str(source[field].get("name", "")), namespace)
                    environment |= {f"{source.get('prefix', '')}{key}": value for key, value in data.items()}
        for entry in container.get("env") or ():
            origin = entry.get("valueFrom")
            environment[entry["name"]] = (
                str(entry.get("value", "")) if not origin else self._value(origin, namespace) or _text(origin)
            )
        return environment

    def _value(self, origin: Obj, namespace: str) -> str | None:
        for field, resource in (("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")):
            if field in origin:
                data = self._data(resource, str(origin[field].get("name", "")), namespace)
                return data.get(origin[field].get("key", ""))
        return None

    def _mount(self, mount: Obj, volume: Obj | None, namespace: str) -> str:
        source = {key: value for key, value in (volume or {}).items() if key != "name"}
        for field, (resource, key) in _SOURCES.items():
            if field in source:
                reference = {name: value for name, value in source[field].items() if name != "defaultMode"}
                name = self._original_name(resource, str(reference.pop(key, "")), namespace)
                source = {field: {**reference, key: name}}
        if "emptyDir" in source:
            source = {"emptyDir": {}}
        return _text({**source, "subPath": mount.get("subPath", "")})

    def _data(self, resource: str, name: str, namespace: str) -> dict[str, str]:
        """The content of a ConfigMap or Secret: the earlier one where it existed, so that only references count."""
        obj = self._earlier.get(resource, self._original_name(resource, name, namespace), namespace)
        return content(obj or self._state.get(resource, name, namespace) or {})

    def _original_name(self, resource: str, name: str, namespace: str) -> str:
        """The earlier object that this one is a copy of, under its name or a new one."""
        if self._earlier.get(resource, name, namespace) is not None:
            return name
        copy = self._state.get(resource, name, namespace)
        if copy is None:
            return name
        for candidate in self._earlier.of(resource, namespace=namespace):
            if content(candidate) == content(copy):
                return str(candidate["metadata"]["name"])
        return name


def content(obj: Obj) -> dict[str, str]:
    """The entries of a ConfigMap or Secret as text."""
    entries = {str(key): str(value) for key, value in (obj.get("data") or {}).items()}
    if obj.get("kind") == "Secret":
        entries = {key: _decoded(value) for key, value in entries.items()}
    return {**entries, **{str(key): str(value) for key, value in (obj.get("binaryData") or {}).items()}}


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value).decode(errors="surrogateescape")
    except (ValueError, binascii.Error):
        return value


def _text(value: Obj) -> str:
    return json.dumps(value, sort_keys=True)
