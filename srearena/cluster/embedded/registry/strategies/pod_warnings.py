"""What a server remarks on pods and templates without refusing them."""

from __future__ import annotations

from collections.abc import Iterator

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj, annotations_of, dig, meta, name_of
from srearena.cluster.embedded.quantity import parse
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.parts import items

_RETIRED_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_RETIRED_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_RETIRED_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_SELECTS_NOTHING = "a null labelSelector results in matching no pod"
_BYTES = ("memory", "ephemeral-storage")


def name_warnings(obj: Obj, used_in: str) -> list[str]:
    """Names that are fine for the object and awkward for the hostname made of it."""
    wrong = names.label_errors(name_of(obj))
    if not wrong:
        return []
    text = "which can result in surprising behavior; a DNS label is recommended"
    return [f"metadata.name: this is used in {used_in}, {text}: [{' '.join(wrong)}]"]


def pod_warnings(pod: Obj) -> list[str]:
    return [*name_warnings(pod, "the Pod's hostname"), *template_warnings(pod, "")]


def template_warnings(template: Obj, path: str) -> list[str]:
    """Remarks on a pod template that stands at `path` (nothing for a pod of its own)."""
    found: list[str] = []
    spec = template.get("spec") or {}
    root = f"{path}." if path else ""
    for key in spec.get("nodeSelector") or ():
        if key in _RETIRED_LABELS:
            found.append(f"{root}spec.nodeSelector[{key}]: {_RETIRED_LABELS[key]}")
    if spec.get("affinity"):
        found += _node_affinity(f"{root}spec.affinity.nodeAffinity", spec["affinity"].get("nodeAffinity") or {})
    for index, constraint in enumerate(items(spec, "topologySpreadConstraints")):
        where, key = f"{root}spec.topologySpreadConstraints[{index}]", constraint.get("topologyKey") or ""
        if key in _RETIRED_LABELS:
            found.append(f"{where}.topologyKey: {key} is {_RETIRED_LABELS[key]}")
        if constraint.get("labelSelector") is None:
            found.append(f"{where}.labelSelector: {_SELECTS_NOTHING}")
    if meta(template).get("annotations"):
        for key, text in _RETIRED_ANNOTATIONS.items():
            if key in annotations_of(template):
                found.append(f"{root}metadata.annotations[{key}]: {text}")
    if spec.get("volumes"):
        found += _volumes(f"{root}spec.volumes", spec["volumes"])
    if spec.get("hostAliases") or spec.get("imagePullSecrets") or spec.get("overhead"):
        found += _repeated(spec, root)
    for where, container in _containers(spec, root):
        _container(found, where, container)
    found += _ports(spec, root)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        found.append(f"{root}spec.terminationGracePeriodSeconds: {text}")
    if spec.get("affinity"):
        found += _pod_affinity(f"{root}spec.affinity", spec["affinity"])
    return found


def claim_warnings(spec: Obj, path: str) -> list[str]:
    return list(_fractions(path, spec.get("resources") or {}, ("storage",), ("requests", "limits")))


def _node_affinity(path: str, affinity: Obj) -> list[str]:
    found: list[str] = []
    terms = dig(affinity, _REQUIRED, "nodeSelectorTerms", default=[])
    for index, term in enumerate(terms):
        where = f"{path}.{_REQUIRED}.nodeSelectorTerms[{index}]"
        for number, rule in enumerate(items(term, "matchExpressions")):
            found += _retired_key(f"{where}.matchExpressions[{number}]", rule)
    for index, preference in enumerate(items(affinity, _PREFERRED)):
        where = f"{path}.{_PREFERRED}[{index}].preference"
        for number, rule in enumerate(items(preference.get("preference"), "matchExpressions")):
            found += _retired_key(f"{where}.matchExpressions[{number}]", rule)
            for place, value in enumerate(items(rule, "values")):
                for text in checks.label_value_texts(value):
                    found.append(f"{where}.matchExpressions[{number}].values[{place}]: {value} is invalid, {text}")
    return found


def _retired_key(path: str, rule: Obj) -> list[str]:
    key = rule.get("key") or ""
    return [f"{path}.key: {key} is {_RETIRED_LABELS[key]}"] if key in _RETIRED_LABELS else []


def _pod_affinity(path: str, affinity: Obj) -> list[str]:
    found: list[str] = []
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind)
        for index, term in enumerate(items(rules, _REQUIRED)):
            if term.get("labelSelector") is None:
                found.append(f"{path}.{kind}.{_REQUIRED}[{index}].labelSelector: {_SELECTS_NOTHING}")
        for index, weighted in enumerate(items(rules, _PREFERRED)):
            if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
                where = f"{path}.{kind}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector"
                found.append(f"{where}: {_SELECTS_NOTHING}")
    return found


def _volumes(path: str, volumes: list[Obj]) -> list[str]:
    found: list[str] = []
    for index, volume in enumerate(volumes):
        for kind, source in volume.items():
            if kind in _RETIRED_VOLUMES and source is not None:
                shown = "storageOS" if kind == "storageos" else kind
                found.append(f"{path}[{index}].{shown}: {_RETIRED_VOLUMES[kind]}")
        template = dig(volume, "ephemeral", "volumeClaimTemplate")
        if template is not None:
            where = f"{path}[{index}].ephemeral.volumeClaimTemplate.spec"
            found += claim_warnings(template.get("spec") or {}, where)
    for volume in volumes:
        found += _overlaps(volume)
    return found


def _overlaps(volume: Obj) -> Iterator[str]:
    """Two items of a volume that want to write the same file, or one a file where the other needs a folder."""
    if not any(kind in volume for kind in ("configMap", "secret", "downwardAPI", "projected")):
        return
    name = quoted(volume.get("name") or "")
    for kind, shown, key in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
        source = volume.get(kind)
        if source and source.get("items"):
            paths = [(item.get("path") or "", "") for item in source["items"]]
            for pair in _colliding(paths):
                yield f"volume {name} ({shown} {quoted(source.get(key) or '')}): overlapping paths: {pair}"
    fields = items(volume.get("downwardAPI"), "items")
    for pair in _colliding([(item.get("path") or "", "") for item in fields]):
        yield f"volume {name} (DownwardAPI): overlapping paths: {pair}"
    if volume.get("projected") is None:
        return
    for source in items(volume.get("projected"), "sources"):
        if not any(value is not None for value in source.values()):
            yield f"volume {name} (Projected) has no sources provided"
    for pair in _colliding(list(_projected_paths(items(volume.get("projected"), "sources")))):
        yield f"volume {name} (Projected): overlapping paths: {pair}"


def _projected_paths(sources: list[Obj]) -> Iterator[tuple[str, str]]:
    for source in sources:
        for kind, shown in (("configMap", "ConfigMap"), ("secret", "Secret")):
            part = source.get(kind)
            for item in items(part, "items"):
                yield item.get("path") or "", f"{shown} {quoted((part or {}).get('name') or '')}"
        for item in items(source.get("downwardAPI"), "items"):
            yield item.get("path") or "", "DownwardAPI"
        token = source.get("serviceAccountToken")
        if token is not None:
            yield token.get("path") or "", "ServiceAccountToken"


def _colliding(paths: list[tuple[str, str]]) -> Iterator[str]:
    seen: list[tuple[str, str]] = []
    for raw, source in paths:
        path = raw.rstrip("/")
        for other, whose in seen if path else ():
            if other and (f"{other}/".startswith(f"{path}/") or f"{path}/".startswith(f"{other}/")):
                yield f"{_path_text(path, source)} with {_path_text(other, whose)}"
        seen.append((path, source))


def _path_text(path: str, source: str) -> str:
    return f"{quoted(path)} ({source})" if source else quoted(path)


def _repeated(spec: Obj, root: str) -> Iterator[str]:
    for key, field, word in (("hostAliases", "ip", "ip"), ("imagePullSecrets", "name", "name")):
        seen: set[str] = set()
        for index, item in enumerate(items(spec, key)):
            value = item.get(field) or ""
            if value in seen:
                yield f"{root}spec.{key}[{index}].{field}: duplicate {word} {quoted(value)}"
            seen.add(value)
    for index, item in enumerate(items(spec, "imagePullSecrets")):
        if not item.get("name"):
            yield f'{root}spec.imagePullSecrets[{index}].name: invalid empty name ""'
    yield from _fractions(f"{root}spec", {"overhead": spec.get("overhead")}, _BYTES, ("overhead",), within="")


def _fractions(
    path: str, holder: Obj, resources: tuple[str, ...], lists: tuple[str, ...], within: str = ".resources"
) -> Iterator[str]:
    """Amounts of bytes that are no whole number of them."""
    for resource in resources:
        for key in lists:
            text = (holder.get(key) or {}).get(resource)
            if text is not None and text.endswith("m") and parse(text).milli_value() % 1000:
                where = f"{path}{within}.{key}[{resource}]"
                yield f"{where}: fractional byte value {quoted(text)} is invalid, must be an integer"


def _containers(spec: Obj, root: str) -> Iterator[tuple[str, Obj]]:
    for key in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(key) or ()):
            yield f"{root}spec.{key}[{index}]", container


def _container(found: list[str], path: str, container: Obj) -> None:
    resources = container.get("resources")
    if resources:
        found += _fractions(path, resources, _BYTES, ("limits", "requests"))
    variables = container.get("env") or ()
    if len({variable.get("name") for variable in variables}) == len(variables):
        return
    seen: set[str] = set()
    for index, variable in enumerate(variables):
        name = variable.get("name") or ""
        if name not in seen:
            seen.add(name)
            continue
        value, reference = variable.get("value") or "", f"$({name})"
        if variable.get("valueFrom") is not None or value == reference or reference not in value:
            text = f"hides previous definition of {quoted(name)}, which may be dropped when using apply"
            found.append(f"{path}.env[{index}]: {text}")


def _ports(spec: Obj, root: str) -> list[str]:
    """Ports that more than one container, or one container twice, says it has."""
    found: list[str] = []
    all_ports = [
        (f"{where}.ports[{index}]", port)
        for where, container in _containers(spec, root)
        for index, port in enumerate(container.get("ports") or ())
    ]
    if len(all_ports) < 2:
        return found
    seen: dict[tuple[int, str], list[tuple[str, Obj]]] = {}
    for where, port in all_ports:
        others = seen.setdefault((port.get("containerPort") or 0, port.get("protocol") or ""), [])
        for place, other in others:
            relation = _relation(port, other)
            if relation:
                found.append(f"{where}: {relation} port definition with {place}")
        others.append((where, port))
    named: dict[str, str] = {}
    for where, port in all_ports:
        name = port.get("name")
        if name and name in named:
            text = "services and probes that select ports by name will use"
            found.append(f"{where}: duplicate port name {quoted(name)} with {named[name]}, {text} {named[name]}")
        elif name:
            named[name] = where
    return found


def _relation(port: Obj, other: Obj) -> str:
    (ip, number), (other_ip, other_number) = ((p.get("hostIP") or "", p.get("hostPort") or 0) for p in (port, other))
    if (ip, number) == (other_ip, other_number):
        return "duplicate"
    if not number or not other_number:
        return "overlapping"
    return "dangerously ambiguous" if number == other_number and bool(ip) != bool(other_ip) else ""
