"""Volume sources, of pods and of persistent volumes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.quantity import parse
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.claims import claim_template
from srearena.cluster.embedded.registry.strategies.downward_api import check_resource_field, check_volume_field
from srearena.cluster.embedded.registry.strategies.parts import items

MODE_RANGE = "must be a number between 0 and 0777 (octal), both inclusive"
MORE_THAN_ONE = "may not specify more than 1 volume type"
_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_SHORTEST_TOKEN, _LONGEST_TOKEN = 600, 2**32

# Sources of which no more is asked than that some fields are there.
_REQUIRED_FIELDS: dict[str, tuple[str, ...]] = {
    "gitRepo": ("repository",),
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "persistentVolumeClaim": ("claimName",),
    "glusterfs": ("endpoints", "path"),
    "rbd": ("monitors", "image"),
    "cinder": ("volumeID",),
    "cephfs": ("monitors",),
    "flexVolume": ("driver",),
    "azureFile": ("secretName", "shareName"),
    "azureDisk": ("diskName", "diskURI"),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "scaleIO": ("gateway", "system", "volumeName"),
    "iscsi": ("targetPortal", "iqn"),
    "quobyte": ("registry", "volume"),
    "storageos": ("volumeName",),
}
# Where the field's name in messages is not its name in the object.
_SHOWN_AS = {"gcePersistentDisk": "persistentDisk"}


def pod_volumes(problems: Problems, path: str, volumes: list[Obj], pod_name: str) -> dict[str, Obj]:
    """Check a pod's volumes; returns those in order, by name."""
    found: dict[str, Obj] = {}
    created = (
        {f"{pod_name}-{v.get('name') or ''}" for v in volumes if v.get("ephemeral") is not None} if pod_name else ()
    )
    for index, volume in enumerate(volumes):
        before = len(problems)
        where, name = f"{path}[{index}]", volume.get("name") or ""
        _source(problems, where, volume, pod_name)
        if not name:
            problems.append(FieldError.required(f"{where}.name"))
        else:
            checks.label(problems, f"{where}.name", name)
        if name in found:
            problems.append(FieldError.duplicate(f"{where}.name", name))
        if len(problems) == before:
            found[name] = volume
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim and claim in created:
            text = "must not reference a PVC that gets created for an ephemeral volume"
            problems.append(FieldError.invalid(f"{where}.persistentVolumeClaim.claimName", claim, text))
    return found


def _source(problems: Problems, path: str, volume: Obj, pod_name: str) -> None:
    kind = ""
    for key, source in volume.items():
        if key == "name" or source is None:
            continue
        if kind:
            problems.append(FieldError.forbidden(f"{path}.{key}", MORE_THAN_ONE))
            continue
        kind = key
        check_source(problems, path, key, source)
    if not kind:
        problems.append(FieldError.required(path, "must specify a volume type"))
    elif kind == "ephemeral" and pod_name and volume.get("name"):
        claim = f"{pod_name}-{volume['name']}"
        for text in names.subdomain_errors(claim):
            problems.append(FieldError.invalid(f"{path}.name", volume["name"], f"PVC name {quoted(claim)}: {text}"))


def check_source(problems: Problems, path: str, kind: str, source: Mapping[str, Any]) -> None:
    """Check the volume source `kind` that stands at `path`."""
    where = f"{path}.{_SHOWN_AS.get(kind, kind)}"
    for key in _REQUIRED_FIELDS.get(kind, ()):
        if not source.get(key):
            problems.append(FieldError.required(f"{where}.{key}"))
    check = _CHECKS.get(kind)
    if check:
        check(problems, where, source)


def _empty_dir(problems: Problems, path: str, source: Mapping[str, Any]) -> None:
    if source.get("sizeLimit") is not None and parse(source["sizeLimit"]).nano < 0:
        problems.append(FieldError.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity"))


def _host_path(problems: Problems, path: str, source: Mapping[str, Any]) -> None:
    if not source.get("path"):
        problems.append(FieldError.required(f"{path}.path"))
        return
    checks.no_backsteps(problems, f"{path}.path", source["path"])
    if source.get("type") is not None:
        checks.one_of(problems, f"{path}.type", source["type"], _HOST_PATH_TYPES)


def _git_repo(problems: Problems, path: str, source: Mapping[str, Any]) -> None:
    checks.relative_path(problems, f"{path}.directory", source.get("directory") or "")


def _nfs(problems: Problems, path: str, source: Mapping[str, Any]) -> None:
    place = source.get("path") or ""
    checks.required(problems, f"{path}.server", source.get("server"))
    checks.required(problems, f"{path}.path", place)
    if not place.startswith("/"):
        problems.append(FieldError.invalid(f"{path}.path", place, "must be an absolute path"))


def _disk(problems: Problems, path: str, source: Mapping[str, Any]) -> None:
    partition = source.get("partition") or 0
    if not 0 <= partition <= 255:
        problems.append(FieldError.invalid(f"{path}.partition", partition, checks.between(1, 255)))


def _iscsi(problems: Problems, path: str, source: Mapping[str, Any]) -> None:
    iqn = source.get("iqn") or ""
    if iqn and not iqn.startswith(("iqn", "eui", "naa")):
        text = "must be valid format starting with iqn, eui, or naa"
        problems.append(FieldError.invalid(f"{path}.iqn", iqn, text))
    checks.in_range(problems, f"{path}.lun", source.get("lun"), 0, 255)


def _fc(problems: Problems, path: str, source: Mapping[str, Any]) -> None:
    targets, ids = source.get("targetWWNs"), source.get("wwids")
    if not targets and not ids:
        text = "must specify either targetWWNs or wwids, but not both"
        problems.append(FieldError.required(f"{path}.targetWWNs", text))
    if targets and ids:
        text = "targetWWNs and wwids can not be specified simultaneously"
        problems.append(FieldError.invalid(f"{path}.targetWWNs", targets, text))
    if targets:
        if source.get("lun") is None:
            problems.append(FieldError.required(f"{path}.lun", "lun is required if targetWWNs is specified"))
        checks.in_range(problems, f"{path}.lun", source.get("lun"), 0, 255)


def _secret(problems: Problems, path: str, source: Mapping[str, Any]) -> None:
    checks.required(problems, f"{path}.secretName", source.get("secretName"))
    _mode(problems, f"{path}.defaultMode", source.get("defaultMode"))
    checks.each(problems, f"{path}.items", source.get("items"), _key_to_path)


def _config_map(problems: Problems, path: str, source: Mapping[str, Any]) -> None:
    checks.required(problems, f"{path}.name", source.get("name"))
    _mode(problems, f"{path}.defaultMode", source.get("defaultMode"))
    checks.each(problems, f"{path}.items", source.get("items"), _key_to_path)


def _downward_api(problems: Problems, path: str, source: Mapping[str, Any]) -> None:
    _mode(problems, f"{path}.defaultMode", source.get("defaultMode"))
    for file in items(source, "items"):
        _downward_file(problems, path, file)


def _downward_file(problems: Problems, path: str, file: Obj) -> None:
    checks.required(problems, f"{path}.path", file.get("path"))
    checks.projected_path(problems, f"{path}.path", file.get("path") or "")
    if file.get("fieldRef") is not None:
        check_volume_field(problems, f"{path}.fieldRef", file["fieldRef"])
        if file.get("resourceFieldRef") is not None:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            problems.append(FieldError.invalid(path, "resource", text))
    elif file.get("resourceFieldRef") is not None:
        check_resource_field(problems, f"{path}.resourceFieldRef", file["resourceFieldRef"], in_volume=True)
    else:
        problems.append(FieldError.required(path, "one of fieldRef and resourceFieldRef is required"))
    _mode(problems, f"{path}.mode", file.get("mode"))


def _key_to_path(problems: Problems, path: str, item: Obj) -> None:
    place = item.get("path") or ""
    checks.required(problems, f"{path}.key", item.get("key"))
    checks.required(problems, f"{path}.path", place)
    checks.projected_path(problems, f"{path}.path", place)
    _mode(problems, f"{path}.mode", item.get("mode"))


def _mode(problems: Problems, path: str, mode: int | None) -> None:
    if mode is not None and not 0 <= mode <= 0o777:
        problems.append(FieldError.invalid(path, mode, MODE_RANGE))


def _projected(problems: Problems, path: str, source: Mapping[str, Any]) -> None:
    _mode(problems, f"{path}.defaultMode", source.get("defaultMode"))
    used_paths: set[str] = set()
    for index, projection in enumerate(items(source, "sources")):
        where = f"{path}.sources[{index}]"
        set_keys = [key for key, value in projection.items() if value is not None]
        for key in ("secret", "configMap"):
            if projection.get(key) is not None:
                _projected_keys(problems, path, f"{where}.{key}", projection[key], used_paths)
        for file in items(projection.get("downwardAPI"), "items"):
            _downward_file(problems, f"{where}.downwardAPI", file)
            _once(problems, path, file.get("path") or "", file.get("path") or "", used_paths)
        token = projection.get("serviceAccountToken")
        if token is not None:
            _token(problems, path, f"{where}.serviceAccountToken", token)
        if len(set_keys) > 1:
            problems.append(FieldError.forbidden(where, "may not specify more than 1 volume type per source"))


def _projected_keys(problems: Problems, path: str, where: str, source: Obj, used_paths: set[str]) -> None:
    name = source.get("name") or ""
    checks.required(problems, f"{where}.name", name)
    for index, item in enumerate(items(source, "items")):
        _key_to_path(problems, f"{where}.items[{index}]", item)
        _once(problems, path, item.get("path") or "", name, used_paths)


def _once(problems: Problems, path: str, place: str, value_text: str, used_paths: set[str]) -> None:
    """Two sources cannot write the same file."""
    if place and place in used_paths:
        problems.append(FieldError.invalid(path, value_text, "conflicting duplicate paths"))
    used_paths.add(place)


def _token(problems: Problems, path: str, where: str, token: Obj) -> None:
    seconds = token.get("expirationSeconds") or 0
    if seconds < _SHORTEST_TOKEN:
        text = "may not specify a duration less than 10 minutes"
        problems.append(FieldError.invalid(f"{where}.expirationSeconds", seconds, text))
    if seconds > _LONGEST_TOKEN:
        text = "may not specify a duration larger than 2^32 seconds"
        problems.append(FieldError.invalid(f"{where}.expirationSeconds", seconds, text))
    if checks.required(problems, f"{path}.path", token.get("path")):
        checks.projected_path(problems, f"{path}.path", token["path"])


def _csi(problems: Problems, path: str, source: Mapping[str, Any]) -> None:
    csi_driver_name(problems, f"{path}.driver", source.get("driver") or "")
    secret = source.get("nodePublishSecretRef")
    if secret is not None and checks.required(problems, f"{path}.nodePublishSecretRef.name", secret.get("name")):
        checks.subdomain(problems, f"{path}.name", secret["name"])


def csi_driver_name(problems: Problems, path: str, name: str) -> None:
    checks.required(problems, path, name)
    if len(name) > 63:
        problems.append(FieldError.too_long(path, 63))
    checks.invalid_each(problems, path, name, names.subdomain_errors(name.lower()))


def _ephemeral(problems: Problems, path: str, source: Mapping[str, Any]) -> None:
    template = source.get("volumeClaimTemplate")
    if template is None:
        problems.append(FieldError.required(f"{path}.volumeClaimTemplate"))
    else:
        claim_template(problems, f"{path}.volumeClaimTemplate", template)


def _image(problems: Problems, path: str, source: Mapping[str, Any]) -> None:
    checks.required_one_of(
        problems, f"{path}.pullPolicy", source.get("pullPolicy"), ("Always", "IfNotPresent", "Never")
    )


def _local(problems: Problems, path: str, source: Mapping[str, Any]) -> None:
    if checks.required(problems, f"{path}.path", source.get("path")):
        checks.no_backsteps(problems, f"{path}.path", source["path"])


_CHECKS: dict[str, Callable[[Problems, str, Mapping[str, Any]], None]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": _disk,
    "awsElasticBlockStore": _disk,
    "nfs": _nfs,
    "iscsi": _iscsi,
    "fc": _fc,
    "secret": _secret,
    "configMap": _config_map,
    "downwardAPI": _downward_api,
    "projected": _projected,
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
    "local": _local,
}
