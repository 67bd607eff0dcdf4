"""A pod's volumes on its node: set up before the containers start, removed after they end.

Setting up a volume either succeeds at once or fails with the kubelet's message; the pod worker retries with back-off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from srearena.cluster.embedded.client import Client
from srearena.cluster.embedded.kubelet.environment import ConfigError, expand
from srearena.cluster.embedded.kubelet.volumes.projections import MountError, Projector, references_of, write_payload
from srearena.cluster.embedded.machine.files import host_tree
from srearena.cluster.embedded.machine.files.filesystem import Mount, Volume
from srearena.cluster.embedded.machine.files.inodes import Directory, File, Node, Space
from srearena.cluster.embedded.machine.files.mounted_volume import MountedVolume
from srearena.cluster.embedded.machine.machine import Machine
from srearena.cluster.embedded.objects import Obj, dig, meta, name_of, namespace_of, uid_of
from srearena.cluster.embedded.quantity import units

_PLUGINS = {
    "configMap": "configmap",
    "secret": "secret",
    "projected": "projected",
    "downwardAPI": "downward-api",
    "emptyDir": "empty-dir",
    "hostPath": "host-path",
    "persistentVolumeClaim": "csi",
    "ephemeral": "csi",
}
_PROJECTED = ("configMap", "secret", "projected", "downwardAPI")


class UnprocessedVolume(Exception):
    """A claim is not ready to be used; the pod's sync ends with this."""


class PersistentStorage:
    """The data behind persistent volumes that no single machine holds; it outlives pods and nodes."""

    def __init__(self) -> None:
        self._volumes: dict[str, Volume] = {}

    def volume(self, key: str, capacity: int | None) -> Volume:
        found = self._volumes.get(key)
        if found is None:
            found = self._volumes[key] = Volume(
                Directory(0o777), space=Space(capacity), fstype="ext4", source=f"/dev/disk/by-id/{key}"
            )
        return found

    def forget(self, key: str) -> None:
        self._volumes.pop(key, None)


class VolumePlugins:
    """Sets up volumes on one machine."""

    def __init__(self, machine: Machine, client: Client, storage: PersistentStorage) -> None:
        self._machine = machine
        self._client = client
        self._storage = storage

    def set_up(self, pod: Obj, spec: Obj, projector: Projector, disk: Space) -> MountedVolume:
        """One volume of the pod, ready to be mounted; MountError or UnprocessedVolume on failure."""
        kind = next((key for key in spec if key != "name"), "emptyDir")
        mounted = self._set_up(kind, pod, spec, projector, disk)
        mounted.source = mounted.source or (
            f"/var/lib/kubelet/pods/{uid_of(pod)}/volumes/kubernetes.io~{_PLUGINS.get(kind, 'csi')}/{spec['name']}"
        )
        return mounted

    def _set_up(self, kind: str, pod: Obj, spec: Obj, projector: Projector, disk: Space) -> MountedVolume:
        name = spec["name"]
        if kind in _PROJECTED:
            fstype = "ext4" if kind == "configMap" else "tmpfs"
            volume = Volume(Directory(0o777), fstype=fstype, source="tmpfs" if fstype == "tmpfs" else "/dev/sda1")
            write_payload(volume, projector.payload(pod, spec), self._machine.now, group_of(pod))
            return MountedVolume(name, volume, kind, read_only=True, references=references_of(spec))
        if kind == "emptyDir":
            return self._empty(pod, spec, disk)
        if kind == "hostPath":
            return self._host_path(name, spec["hostPath"])
        if kind in ("persistentVolumeClaim", "ephemeral"):
            return self._claimed(pod, spec)
        if kind == "csi" and self._client.get("csidrivers.storage.k8s.io", "", spec[kind]["driver"]) is None:
            raise MountError(
                "kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: "
                f"driver name {spec[kind]['driver']} not found in the list of registered CSI drivers"
            )
        key = f"{kind}:{name}:{uid_of(pod)}" if kind == "csi" else f"{kind}:{sorted((spec[kind] or {}).items())}"
        return MountedVolume(name, self._storage.volume(key, None), kind)

    def _empty(self, pod: Obj, spec: Obj, disk: Space) -> MountedVolume:
        options = spec.get("emptyDir") or {}
        limit = units(options["sizeLimit"]) if options.get("sizeLimit") else None
        group = group_of(pod)
        root = Directory(0o777 if group is None else 0o2777, gid=group or 0, mtime=self._machine.now)
        if options.get("medium") == "Memory":
            capacity = limit if limit is not None else self._machine.memory // 2
            volume = Volume(root, space=Space(capacity), fstype="tmpfs", source="tmpfs")
            return MountedVolume(spec["name"], volume, "emptyDir")
        volume = Volume(root, space=Space(parent=disk), fstype="ext4", source="/dev/sda1")
        return MountedVolume(spec["name"], volume, "emptyDir", size_limit=limit)

    # --- files of the machine --------------------------------------------------------------------------------

    def _host_path(self, name: str, source: Obj, read_only: bool = False) -> MountedVolume:
        path, host_path_type = source["path"], source.get("type") or ""
        host = self._machine.files
        node = host_tree.find(host.root, path)
        if node is None and host_path_type in ("", "DirectoryOrCreate"):
            try:
                node = host_tree.make_folders(host.root, path)
            except NotADirectoryError:
                raise MountError(f"mkdir {path}: not a directory") from None
        if node is None and host_path_type == "FileOrCreate":
            folder = host_tree.find(host.root, path.rpartition("/")[0] or "/")
            if not isinstance(folder, Directory):
                raise MountError(f"open {path}: no such file or directory")
            node = File(b"", 0o644)
            folder.put(path.rpartition("/")[2], node)
        _check_host_path(path, host_path_type, node)
        assert node is not None
        if isinstance(node, Directory):
            space = Space(parent=self._machine.disk)
            volume = Volume(node, space=space, fstype="ext4", source="/dev/sda1")
            volume.broken = host.broken
            return MountedVolume(name, volume, "hostPath", read_only=read_only, source=path)
        return MountedVolume(name, Volume(fstype="ext4"), "hostPath", node=node, read_only=read_only, source=path)

    # --- persistent volumes ----------------------------------------------------------------------------------

    def _claimed(self, pod: Obj, spec: Obj) -> MountedVolume:
        namespace = namespace_of(pod)
        source = spec.get("persistentVolumeClaim") or {}
        claim_name = source.get("claimName") or f"{name_of(pod)}-{spec['name']}"
        claim = self._client.get("persistentvolumeclaims", namespace, claim_name)
        prefix = f"error processing PVC {namespace}/{claim_name}"
        if claim is None:
            raise UnprocessedVolume(
                f'{prefix}: failed to fetch PVC from API server: persistentvolumeclaims "{claim_name}" not found'
            )
        if meta(claim).get("deletionTimestamp"):
            raise UnprocessedVolume(f"{prefix}: PVC is being deleted")
        volume_name = dig(claim, "spec", "volumeName")
        if not volume_name or dig(claim, "status", "phase") != "Bound":
            raise UnprocessedVolume(f"{prefix}: PVC is not bound")
        volume = self._client.get("persistentvolumes", "", volume_name)
        if volume is None:
            raise UnprocessedVolume(
                f"{prefix}: failed to fetch PV {volume_name} from API server: "
                f'persistentvolumes "{volume_name}" not found'
            )
        self._check_claim(pod, spec["name"], claim, volume, prefix)
        mounted = self._persistent(volume, bool(source.get("readOnly")))
        mounted.name = spec["name"]
        group = group_of(pod)
        if group is not None and mounted.kind != "hostPath":
            mounted.volume.root.gid = group
            mounted.volume.root.mode |= 0o2770
        return mounted

    @staticmethod
    def _check_claim(pod: Obj, name: str, claim: Obj, volume: Obj, prefix: str) -> None:
        """Check that the volume is bound to this claim and that the volume modes match."""
        found, bound = f"found PV object {name_of(volume)}", dig(volume, "spec", "claimRef")
        if not bound:
            text = "but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim"
            raise UnprocessedVolume(f"{prefix}: {found} {text}")
        if bound.get("uid") != uid_of(claim):
            text = f"but its pv.Spec.ClaimRef.UID {bound.get('uid', '')} does not point to claim.UID {uid_of(claim)}"
            raise UnprocessedVolume(f"{prefix}: {found} {text}")
        mode = dig(volume, "spec", "volumeMode", default="Filesystem")
        for use, expected_mode in (("volumeMounts", "Filesystem"), ("volumeDevices", "Block")):
            containers = (*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"])
            used = any(entry["name"] == name for container in containers for entry in container.get(use) or ())
            if used and mode != expected_mode:
                raise UnprocessedVolume(f"volume {name} has volumeMode {mode}, but is specified in {use}")

    def _persistent(self, volume: Obj, read_only: bool) -> MountedVolume:
        name, spec = name_of(volume), volume["spec"]
        if "hostPath" in spec:
            return self._host_path(name, spec["hostPath"], read_only)
        if "local" in spec:
            path = spec["local"]["path"]
            if host_tree.find(self._machine.files.root, path) is None:
                raise MountError(f'path "{path}" does not exist', "MountVolume.NewMounter initialization")
            return self._host_path(name, {"path": path}, read_only)
        if "csi" in spec:
            self._check_attached(volume, spec["csi"]["driver"])
        capacity = dig(spec, "capacity", "storage")
        handle = dig(spec, "csi", "volumeHandle")
        key = f"{spec['csi']['driver']}/{handle}" if handle else f"{name}/{uid_of(volume)}"
        data = self._storage.volume(key, units(capacity) if capacity else None)
        return MountedVolume(name, data, "persistentVolumeClaim", read_only=read_only)

    def _check_attached(self, volume: Obj, driver: str) -> None:
        """A driver that attaches volumes must have attached this one to this machine, and must run here."""
        described = self._client.get("csidrivers.storage.k8s.io", "", driver)
        if dig(described, "spec", "attachRequired", default=True) and not self._is_attached(name_of(volume)):
            raise NotAttached(name_of(volume))
        if described is None:
            raise MountError(
                "kubernetes.io/csi: attacher.MountDevice failed to create newCsiDriverClient: "
                f"driver name {driver} not found in the list of registered CSI drivers",
                "MountVolume.MountDevice",
            )

    def _is_attached(self, volume: str) -> bool:
        return any(
            dig(attachment, "spec", "nodeName") == self._machine.name
            and dig(attachment, "spec", "source", "persistentVolumeName") == volume
            and dig(attachment, "status", "attached")
            for attachment in self._client.list("volumeattachments.storage.k8s.io")
        )


class NotAttached(Exception):
    """The volume is not attached to this machine yet; the kubelet waits without an event."""


_HOST_PATH_TYPES: dict[str, tuple[str, Callable[[str, Node], bool]]] = {
    "Directory": ("directory", lambda path, node: isinstance(node, Directory)),
    "DirectoryOrCreate": ("directory", lambda path, node: isinstance(node, Directory)),
    "File": ("file", lambda path, node: isinstance(node, File)),
    "FileOrCreate": ("file", lambda path, node: isinstance(node, File)),
    "Socket": ("socket file", lambda path, node: host_tree.is_socket(path)),
    "CharDevice": ("character device", lambda path, node: False),
    "BlockDevice": ("block device", lambda path, node: False),
}


def _check_host_path(path: str, host_path_type: str, node: Node | None) -> None:
    if host_path_type in _HOST_PATH_TYPES:
        word, fits = _HOST_PATH_TYPES[host_path_type]
        if node is None or not fits(path, node):
            raise MountError(f"hostPath type check failed: {path} is not a {word}")


def group_of(pod: Obj) -> int | None:
    found: int | None = dig(pod, "spec", "securityContext", "fsGroup")
    return found


def mounts_of(
    pod: Obj, container: Obj, volumes: Mapping[str, MountedVolume], environment: Mapping[str, str]
) -> list[Mount]:
    """The mounts of a container's `volumeMounts`; ConfigError where a subPath escapes its volume."""
    mounts: list[Mount] = []
    for volume_mount in container.get("volumeMounts") or ():
        mounted = volumes.get(volume_mount["name"])
        if mounted is None:
            raise ConfigError(
                f'cannot find volume "{volume_mount["name"]}" to mount into container "{container["name"]}"'
            )
        sub_path = volume_mount.get("subPath") or ""
        if volume_mount.get("subPathExpr"):
            sub_path = expand(volume_mount["subPathExpr"], environment)
        if sub_path.startswith("/"):
            raise ConfigError(f"error SubPath `{sub_path}` must not be an absolute path")
        if ".." in sub_path.split("/"):
            raise ConfigError(f"unable to provision SubPath `{sub_path}`: must not contain '..'")
        read_only = bool(volume_mount.get("readOnly")) or mounted.read_only
        mounts.append(
            Mount(volume_mount["mountPath"], mounted.volume, read_only, sub_path, mounted.node, source=mounted.source)
        )
    return mounts


def needed_volumes(pod: Obj) -> Iterable[Obj]:
    """The volumes that a container mounts; others are not set up."""
    spec = pod["spec"]
    used = {
        mount["name"]
        for container in (
            *(spec.get("initContainers") or ()),
            *spec["containers"],
            *(spec.get("ephemeralContainers") or ()),
        )
        for mount in (*(container.get("volumeMounts") or ()), *(container.get("volumeDevices") or ()))
    }
    return [volume for volume in spec.get("volumes") or () if volume["name"] in used]
