"""What pods refer to and what is not there: ConfigMaps, Secrets and their keys, service accounts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from clients.rules import commands
from clients.rules.changes import suspicious_revision
from clients.rules.hypotheses import Hypothesis, Repair, Strength
from clients.rules.runbooks import runbook
from clients.rules.runbooks.workloads import waiting_reasons
from clients.rules.system import Obj, System, containers_of, name_of, namespace_of, path_of, template_of
from clients.rules.topology import config_maps_of

_MISSING = re.compile(r'(configmap|secret) "([^"]+)" not found', re.IGNORECASE)
_NO_KEY = re.compile(r"couldn't find key (\S+) in (ConfigMap|Secret) (?:[\w.-]+/)?([\w.-]+)")
_NO_ACCOUNT = re.compile(r'serviceaccount "([^"]+)" not found', re.IGNORECASE)
_KINDS = {"configmap": "ConfigMap", "secret": "Secret"}


def _complaints(system: System) -> dict[str, set[str]]:
    """Messages about missing things, each with the workloads that wait for them."""
    found: dict[str, set[str]] = {}
    for workload in system.workloads:
        if not system.unready(workload):
            continue
        for pod in system.pods_of(name_of(workload)):
            for _, _, message in waiting_reasons(pod):
                found.setdefault(message, set()).add(name_of(workload))
    for about, _, message in system.warnings():
        owner = system.workload(system.owner_of(str(about.get("name"))))
        if owner is not None and system.unready(owner):
            found.setdefault(message, set()).add(name_of(owner))
    return found


@runbook
def missing_object(system: System) -> Iterator[Hypothesis]:
    wanted: dict[tuple[str, str], set[str]] = {}
    for message, owners in _complaints(system).items():
        for kind, name in _MISSING.findall(message):
            wanted.setdefault((_KINDS[kind.lower()], name), set()).update(owners)
    for (kind, name), owners in wanted.items():
        resource = f"{kind.lower()}s"
        workloads = [one for owner in sorted(owners) if (one := system.workload(owner)) is not None]
        if system.find(resource, name) is not None or not workloads:
            continue
        if any(one["kind"] == "Deployment" and suspicious_revision(system, one) for one in workloads):
            continue  # it asks for it since a revision, which another runbook takes back
        space = namespace_of(workloads[0])
        repairs = _restored(system, name, workloads[0]) if kind == "ConfigMap" else []
        yield Hypothesis(
            f"{space}/{kind}/{name}",
            f"{', '.join(sorted(owners))} mounts it, and it does not exist",
            Strength.CONFIRMED,
            [*repairs, *(commands.restart(one) for one in workloads)] if repairs else [],
            frozenset({*owners}),
            "Operation Error",
        )


def _restored(system: System, name: str, workload: Obj) -> list[Repair]:
    """A ConfigMap with the keys that are mounted from it, each as most other ConfigMaps have it."""
    volumes = [
        volume["name"]
        for volume in template_of(workload)["spec"].get("volumes") or ()
        if (volume.get("configMap") or {}).get("name") == name
    ]
    keys = {
        str(mount["subPath"])
        for one in containers_of(workload)
        for mount in one.get("volumeMounts") or ()
        if mount["name"] in volumes and mount.get("subPath")
    }
    data: dict[str, str] = {}
    siblings = [one for one in system.own("configmaps") if namespace_of(one) == namespace_of(workload)]
    if not keys:
        kind = _common_keys(siblings, name, system, workload)
        keys = kind
    for key in keys:
        values = Counter(str(one["data"][key]) for one in siblings if key in (one.get("data") or {}))
        if not values:
            return []
        data[key] = values.most_common(1)[0][0]
    if not data:
        return []
    metadata = {"name": name, "namespace": namespace_of(workload)}
    return [commands.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})]


def _common_keys(siblings: list[Obj], name: str, system: System, workload: Obj) -> set[str]:
    """The keys of the ConfigMaps that workloads with the same image mount."""
    images = {str(one.get("image")) for one in containers_of(workload)}
    for other in system.workloads:
        if other is workload or images.isdisjoint(str(one.get("image")) for one in containers_of(other)):
            continue
        for one in siblings:
            if name_of(one) in config_maps_of(other) and one.get("data"):
                return {key for key in one["data"] if "." in key}
    return set()


@runbook
def missing_key(system: System) -> Iterator[Hypothesis]:
    for message, owners in _complaints(system).items():
        match = _NO_KEY.search(message)
        obj = system.find(f"{match[2].lower()}s", match[3]) if match else None
        if obj is None or match is None:
            continue
        yield Hypothesis(
            path_of(obj),
            f"{', '.join(sorted(owners))} takes its key {match[1]}, which it does not have",
            Strength.CONFIRMED,
            components=frozenset(owners),
        )


@runbook
def missing_account(system: System) -> Iterator[Hypothesis]:
    for message, owners in _complaints(system).items():
        match = _NO_ACCOUNT.search(message)
        workloads = [one for owner in sorted(owners) if (one := system.workload(owner)) is not None]
        if match is None or not workloads or system.find("serviceaccounts", match[1]) is not None:
            continue
        metadata = {"name": match[1], "namespace": namespace_of(workloads[0])}
        yield Hypothesis(
            f"{namespace_of(workloads[0])}/ServiceAccount/{match[1]}",
            f"{', '.join(sorted(owners))} runs under it, and it does not exist",
            Strength.CONFIRMED,
            [commands.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})],
            frozenset(owners),
            "Operation Error",
        )
