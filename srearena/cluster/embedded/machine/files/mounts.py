"""Set up a container's mounts over its image, as the runtime does before it starts the process.

Missing mount points are created; a subPath is looked up once, here, which is why a container never
sees a later version of a file that was mounted through one.
"""

from __future__ import annotations

import errno
import posixpath

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.machine.containers.errors import StartError, mount_error
from srearena.cluster.embedded.machine.files.file_view import FileView
from srearena.cluster.embedded.machine.files.filesystem import Filesystem, Mount, RootCaller, prepared
from srearena.cluster.embedded.machine.files.inodes import Directory, Node, Symlink


def lay(filesystem: Filesystem, mounts: list[Mount]) -> None:
    """Mount everything, outer paths first; StartError with runc's message on failure."""
    base = filesystem.root.volume.root
    placed: list[Mount] = []
    for mount in sorted(mounts, key=lambda m: m.path):
        path = _canonical(base, mount.path)
        if path == "/":
            raise StartError(f'invalid mount {{Destination:{mount.path}}}: mount destination can\'t be "/"')
        node = mount.node if mount.node is not None else _mounted_node(filesystem.clock, mount)
        placed.append(Mount(path, mount.volume, mount.read_only, mount.sub_path, node, mount.source))
    on_root = [mount for mount in placed if _outer(mount, placed) is None]
    try:
        filesystem.root.volume.root = _with_mount_points(base, on_root)
    except OSError as error:
        raise StartError(f"error mounting to rootfs: mkdirat: {str(error.strerror).lower()}") from None
    for mount in placed:
        _place(filesystem, mount)


def _with_mount_points(base: Directory, mounts: list[Mount]) -> Directory:
    points = tuple((mount.path, isinstance(mount.root, Directory)) for mount in mounts)
    if base.prepared is None:
        base.prepared = {}
    tree = base.prepared.get(points)
    if tree is None:
        tree = base.prepared[points] = prepared(base, points)
    return tree


def _place(filesystem: Filesystem, mount: Mount) -> None:
    view = FileView(filesystem, RootCaller())
    is_directory = isinstance(mount.root, Directory)
    source = mount.source or posixpath.join("/var/lib/kubelet/volumes", mount.path.strip("/").replace("/", "-"))
    try:
        if not view.exists(mount.path):
            parent = posixpath.dirname(mount.path)
            if not view.exists(parent):
                view.mkdir(parent, 0o755, parents=True)
            if is_directory:
                view.mkdir(mount.path, 0o755)
            else:
                view.write_bytes(mount.path, b"")
    except OSError as error:
        verb = "mkdirat" if is_directory else "openat"
        raise StartError(
            f'error mounting "{source}" to rootfs at "{mount.path}": create mountpoint for {mount.path} mount: '
            f'make mountpoint "{mount.path}": {verb} {mount.path}: {str(error.strerror).lower()}'
        ) from None
    if isinstance(view.stat(mount.path).node, Directory) is not is_directory:
        raise mount_error(source, mount.path)
    filesystem.mount(mount)


def _outer(mount: Mount, mounts: list[Mount]) -> Mount | None:
    """The mount inside of which this one lies."""
    return next((m for m in mounts if m is not mount and mount.path.startswith(f"{m.path}/")), None)


def _mounted_node(clock: Clock, mount: Mount) -> Node | None:
    if not mount.sub_path:
        return None
    inside = Filesystem(clock, mount.volume.root, space=mount.volume.space)
    view = FileView(inside, RootCaller(umask=0))
    path = posixpath.normpath("/" + mount.sub_path)
    if not view.exists(path):
        view.mkdir(path, 0o750, parents=True)
    return view.stat(path).node


def _canonical(base: Directory, path: str) -> str:
    """The mount point with the image's own links followed as far as there are any."""
    todo = [part for part in reversed(path.split("/")) if part not in ("", ".")]
    done: list[str] = []
    nodes: list[Node | None] = [base]
    links = 0
    while todo:
        name = todo.pop()
        if name == "..":
            if done:
                done.pop()
                nodes.pop()
            continue
        here = nodes[-1]
        child = here.get(name) if isinstance(here, Directory) else None
        if isinstance(child, Symlink):
            links += 1
            if links > 40:
                raise StartError(f"mount destination {path}: {errno.errorcode[errno.ELOOP]}")
            if child.target.startswith("/"):
                done, nodes = [], [base]
            todo.extend(part for part in reversed(child.target.split("/")) if part not in ("", "."))
            continue
        done.append(name)
        nodes.append(child)
    return "/" + "/".join(done)
