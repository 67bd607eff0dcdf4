"""Volumes whose files are generated from objects: config maps, secrets, the downward API, tokens, and mixtures of them.

Files are laid out as the kubelet's atomic writer does: the names are links through `..data` to a folder with a
timestamp, and an update moves that one link, so a reader sees the old files or the new ones, never both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from srearena.cluster.embedded.client import Client
from srearena.cluster.embedded.kubelet.environment import contents_of
from srearena.cluster.embedded.kubelet.pods.fields import FieldSources, field_value, resource_value
from srearena.cluster.embedded.machine.files.filesystem import Volume
from srearena.cluster.embedded.machine.files.inodes import Directory, File, Generated, Node, Symlink
from srearena.cluster.embedded.objects import Obj, dig, namespace_of

DEFAULT_MODE = 0o644
DEFAULT_TOKEN_SECONDS = 3607
_DATA = "..data"

TokenProvider = Callable[[Obj, str, int], str]
"""(pod, audience, lifetime in seconds): a service account token bound to the pod."""


class MountError(Exception):
    """A volume could not be set up; the text is the end of the FailedMount event."""

    def __init__(self, cause: str, operation: str = "MountVolume.SetUp") -> None:
        super().__init__(cause)
        self.operation = operation
        """The kubelet's operation that failed: the start of the event message."""


@dataclass(frozen=True, slots=True)
class Content:
    """One file: its bytes, or a function that produces them at each read."""

    data: bytes | Callable[[], bytes]
    mode: int
    user: int = 0
    """Its owner."""


Payload = dict[str, Content]


@dataclass(frozen=True, slots=True)
class Projector:
    """Produces the content of projected files for one pod."""

    client: Client
    sources: FieldSources
    token: TokenProvider

    def payload(self, pod: Obj, volume: Obj) -> Payload:
        """The files of a volume by path; MountError where a source is missing."""
        for kind, make in _MAKERS.items():
            if kind in volume:
                source = volume[kind] or {}
                return make(self, pod, source, source.get("defaultMode", DEFAULT_MODE))
        return {}


def _config_map(projector: Projector, pod: Obj, source: Obj, mode: int) -> Payload:
    return _keys(
        projector, pod, source, mode, "configmaps", "configmap", "configmap references non-existent config key"
    )


def _secret(projector: Projector, pod: Obj, source: Obj, mode: int) -> Payload:
    return _keys(projector, pod, source, mode, "secrets", "secret", "references non-existent secret key")


def _keys(projector: Projector, pod: Obj, source: Obj, mode: int, resource: str, word: str, complaint: str) -> Payload:
    name = source.get("name") or source.get("secretName") or ""
    found = projector.client.get(resource, namespace_of(pod), name)
    optional = bool(source.get("optional"))
    if found is None:
        if optional:
            return {}
        raise MountError(f'{word} "{name}" not found')
    contents = contents_of(found)
    if not source.get("items"):
        return {key: Content(data, mode) for key, data in contents.items()}
    payload: Payload = {}
    for item in source["items"]:
        data = contents.get(item["key"])
        if data is not None:
            payload[item["path"]] = Content(data, item.get("mode", mode))
        elif not optional:
            raise MountError(f"{complaint}: {item['key']}")
    return payload


def _downward(projector: Projector, pod: Obj, source: Obj, mode: int) -> Payload:
    payload: Payload = {}
    for item in source.get("items") or ():
        if "fieldRef" in item:
            text = field_value(pod, item["fieldRef"]["fieldPath"], projector.sources) or ""
        else:
            text = resource_value(pod, {}, item["resourceFieldRef"], projector.sources)
        payload[item["path"]] = Content(text.encode(), item.get("mode", mode))
    return payload


def _token(projector: Projector, pod: Obj, source: Obj, mode: int) -> Payload:
    audience, seconds = source.get("audience") or "", source.get("expirationSeconds") or DEFAULT_TOKEN_SECONDS
    user, group = _user_of(pod), dig(pod, "spec", "securityContext", "fsGroup")
    if user is not None or group is not None:
        mode = 0o600 if group is None else 0o640
    return {source["path"]: Content(lambda: projector.token(pod, audience, seconds).encode(), mode, user or 0)}


def _user_of(pod: Obj) -> int | None:
    """The user that all containers of a pod run as, where the pod says so: its tokens belong to that user."""
    spec = pod["spec"]
    usual = dig(spec, "securityContext", "runAsUser")
    found = {
        dig(container, "securityContext", "runAsUser", default=usual)
        for container in (*(spec.get("initContainers") or ()), *spec["containers"])
    }
    return found.pop() if len(found) == 1 else None


def _projected(projector: Projector, pod: Obj, source: Obj, mode: int) -> Payload:
    payload: Payload = {}
    problems: list[str] = []
    for part in source.get("sources") or ():
        for kind, make in _PARTS.items():
            if kind in part:
                try:
                    payload.update(make(projector, pod, part[kind], mode))
                except MountError as error:
                    problems.append(str(error))
    if problems:
        raise MountError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return payload


_MAKERS = {
    "configMap": _config_map,
    "secret": _secret,
    "downwardAPI": _downward,
    "projected": _projected,
}
_PARTS = {
    "configMap": _config_map,
    "secret": _secret,
    "downwardAPI": _downward,
    "serviceAccountToken": _token,
}


def references_of(volume: Obj) -> list[tuple[str, str]]:
    """The config maps and secrets (resource, name) whose changes reach the files of a volume."""
    parts = [volume, *dig(volume, "projected", "sources", default=())]
    found: list[tuple[str, str]] = []
    for part in parts:
        if part.get("configMap"):
            found.append(("configmaps", part["configMap"].get("name", "")))
        if part.get("secret"):
            found.append(("secrets", part["secret"].get("secretName") or part["secret"].get("name", "")))
    return found


def write_payload(volume: Volume, payload: Mapping[str, Content], now: float, group: int | None) -> bool:
    """Write exactly these files to a volume; False where it already had them."""
    root = volume.root
    current = root.get(_DATA)
    folder = root.get(current.target) if isinstance(current, Symlink) else None
    if isinstance(folder, Directory) and _same(folder, payload):
        return False
    stamp = datetime.fromtimestamp(now, UTC).strftime("..%Y_%m_%d_%H_%M_%S.") + f"{int(now % 1 * 1e9):09d}"
    fresh = Directory(0o755, mtime=now, gid=group or 0)
    for path, content in payload.items():
        _put(fresh, path.split("/"), _file(content, now, group))
    if isinstance(current, Symlink):
        root.drop(current.target)
    root.put(stamp, fresh)
    root.put(_DATA, Symlink(stamp, mtime=now))
    tops = {path.split("/")[0] for path in payload}
    for name in [name for name in root.names() if not name.startswith("..") and name not in tops]:
        root.drop(name)
    for name in tops:
        if root.get(name) is None:
            root.put(name, Symlink(f"{_DATA}/{name}", mtime=now))
    root.mtime = now
    return True


def _file(content: Content, now: float, group: int | None) -> Node:
    mode = content.mode if group is None else content.mode | 0o040
    node: Node
    if isinstance(content.data, bytes):
        node = File(content.data, mode, mtime=now)
    else:
        node = Generated(content.data, mode)
        node.mtime = now
    node.uid, node.gid = content.user, group or 0
    return node


def _put(folder: Directory, names: list[str], node: Node) -> None:
    for name in names[:-1]:
        child = folder.get(name)
        if not isinstance(child, Directory):
            child = Directory(0o755)
            folder.put(name, child)
        folder = child
    folder.put(names[-1], node)


def _same(folder: Directory, payload: Mapping[str, Content]) -> bool:
    files = dict(_files(folder, ""))
    if files.keys() != payload.keys():
        return False
    for path, content in payload.items():
        node = files[path]
        if isinstance(content.data, bytes):
            if not isinstance(node, File) or node.content != content.data:
                return False
        elif not isinstance(node, Generated):
            return False
    return True


def _files(folder: Directory, prefix: str) -> list[tuple[str, Node]]:
    found: list[tuple[str, Node]] = []
    for name in folder.names():
        child = folder.get(name)
        if isinstance(child, Directory):
            found.extend(_files(child, f"{prefix}{name}/"))
        elif child is not None:
            found.append((prefix + name, child))
    return found
