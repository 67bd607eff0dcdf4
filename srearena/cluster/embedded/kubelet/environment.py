"""A container's environment: from services, config maps, secrets, the pod itself, and each other.

The order is the kubelet's: `envFrom`, then `env` from top to bottom (a value may refer to what stands above it as
`$(NAME)`), then the variables of services for names that are still unset.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from srearena.cluster.embedded.client import Client
from srearena.cluster.embedded.kubelet.pods.fields import FieldSources, field_value, resource_value
from srearena.cluster.embedded.objects import Obj, dig, name_of, namespace_of
from srearena.cluster.embedded.store import Change

if TYPE_CHECKING:
    from srearena.cluster.embedded.world import World

_VARIABLE = re.compile(r"\$(\$|\([^)]*\)|.)?", re.DOTALL)
_ENV_NAME = re.compile(r"[ -<>-~]+")
"""What 1.34 accepts as a name: printable ASCII without the equals sign."""


class ConfigError(Exception):
    """The container cannot be configured (CreateContainerConfigError); the text is the kubelet's."""


def expand(text: str, known: Mapping[str, str]) -> str:
    """Replace `$(NAME)`; unknown names stay as they are and `$$` is one dollar."""
    if "$" not in text:
        return text

    def replace(match: re.Match[str]) -> str:
        rest = match[1]
        if rest is None or rest == "$":
            return "$"
        if rest.startswith("("):
            name = rest[1:-1]
            return known[name] if name in known else match[0]
        return match[0]

    return _VARIABLE.sub(replace, text)


class ServiceVariables:
    """The `<SERVICE>_SERVICE_HOST` family, recomputed only when services change."""

    def __init__(self, world: World) -> None:
        self._store = world.store
        self._by_namespace: dict[str, dict[str, str]] = {}
        world.on_change("services", self._forget)

    def _forget(self, change: Change) -> None:
        self._by_namespace.clear()

    def of(self, pod: Obj) -> Mapping[str, str]:
        """Variables of a new container: of the API server, and with `enableServiceLinks` of all services."""
        variables = dict(self._in("default", only="kubernetes"))
        if dig(pod, "spec", "enableServiceLinks", default=True):
            variables.update(self._in(namespace_of(pod)))
        return variables

    def _in(self, namespace: str, only: str = "") -> dict[str, str]:
        key = f"{namespace}/{only}"
        found = self._by_namespace.get(key)
        if found is None:
            found = {}
            for service in self._store.objects("services", namespace):
                if not only or name_of(service) == only:
                    found.update(_variables_of(service))
            self._by_namespace[key] = found
        return found


def _variables_of(service: Obj) -> dict[str, str]:
    spec = service.get("spec") or {}
    address = spec.get("clusterIP")
    ports = spec.get("ports") or ()
    if not address or address == "None" or not ports:
        return {}
    name = name_of(service).upper().replace("-", "_")
    found = {f"{name}_SERVICE_HOST": address, f"{name}_SERVICE_PORT": str(ports[0]["port"])}
    for port in ports:
        if port.get("name"):
            found[f"{name}_SERVICE_PORT_{port['name'].upper().replace('-', '_')}"] = str(port["port"])
    for number, port in enumerate(ports):
        protocol = port.get("protocol") or "TCP"
        url = f"{protocol.lower()}://{address}:{port['port']}"
        if number == 0:
            found[f"{name}_PORT"] = url
        prefix = f"{name}_PORT_{port['port']}_{protocol}"
        found[prefix] = url
        found[f"{prefix}_PROTO"] = protocol.lower()
        found[f"{prefix}_PORT"] = str(port["port"])
        found[f"{prefix}_ADDR"] = address
    return found


def environment_of(
    pod: Obj, container: Obj, client: Client, services: Mapping[str, str], sources: FieldSources
) -> dict[str, str]:
    """The variables of a container; ConfigError where a source is missing."""
    result: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        result.update(_all_of(pod, source, client))
    for variable in container.get("env") or ():
        name = variable["name"]
        if variable.get("valueFrom"):
            value = _value_from(pod, container, variable["valueFrom"], client, sources)
            if value is None:
                continue
            result[name] = value
        else:
            text = variable.get("value") or ""
            result[name] = expand(text, {**services, **result}) if "$" in text else text
    for name, value in services.items():
        result.setdefault(name, value)
    return result


_SOURCES: dict[str, tuple[str, str]] = {
    "configMapRef": ("configmaps", "configmap"),
    "secretRef": ("secrets", "secret"),
}


def _all_of(pod: Obj, source: Obj, client: Client) -> dict[str, str]:
    prefix = source.get("prefix") or ""
    for key, (resource, word) in _SOURCES.items():
        reference = source.get(key)
        if not reference:
            continue
        found = client.get(resource, namespace_of(pod), reference["name"])
        if found is None:
            if reference.get("optional"):
                return {}
            raise ConfigError(f'{word} "{reference["name"]}" not found')
        values = {prefix + name: text for name, text in texts_of(found).items()}
        return {name: text for name, text in values.items() if _ENV_NAME.fullmatch(name)}
    return {}


def _value_from(pod: Obj, container: Obj, source: Obj, client: Client, sources: FieldSources) -> str | None:
    """The value, or None where an optional source has none."""
    if "fieldRef" in source:
        path = source["fieldRef"]["fieldPath"]
        value = field_value(pod, path, sources)
        if value is None:
            raise ConfigError(f"unsupported fieldPath: {path}")
        return value
    if "resourceFieldRef" in source:
        return resource_value(pod, container, source["resourceFieldRef"], sources)
    for key, resource, word, kind in (
        ("configMapKeyRef", "configmaps", "configmap", "ConfigMap"),
        ("secretKeyRef", "secrets", "secret", "Secret"),
    ):
        reference = source.get(key)
        if not reference:
            continue
        namespace, name, wanted = namespace_of(pod), reference["name"], reference["key"]
        found = client.get(resource, namespace, name)
        if found is None:
            if reference.get("optional"):
                return None
            raise ConfigError(f'{word} "{name}" not found')
        text = texts_of(found).get(wanted)
        if text is None and not reference.get("optional"):
            raise ConfigError(f"couldn't find key {wanted} in {kind} {namespace}/{name}")
        return text
    return None


def texts_of(source: Obj) -> dict[str, str]:
    """The text values of a config map or a secret."""
    data: dict[str, str] = source.get("data") or {}
    if source.get("kind") == "Secret":
        return {name: decoded(value).decode(errors="replace") for name, value in data.items()}
    return data


def contents_of(source: Obj) -> dict[str, bytes]:
    """Every value of a config map or a secret, as bytes."""
    if source.get("kind") == "Secret":
        return {name: decoded(value) for name, value in (source.get("data") or {}).items()}
    contents = {name: value.encode() for name, value in (source.get("data") or {}).items()}
    contents.update({name: decoded(value) for name, value in (source.get("binaryData") or {}).items()})
    return contents


def decoded(value: Any) -> bytes:
    return base64.b64decode(value or "")


__all__ = ["ConfigError", "ServiceVariables", "contents_of", "environment_of", "expand", "texts_of"]
