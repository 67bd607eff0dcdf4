"""The file system of a container: the image, the writable layer over it, and mounted volumes.

The root is copy-on-write over the image's frozen tree, so a container that writes nothing costs nothing. Every
directory that something is mounted on exists in the tree below it (ensured by `prepared`), so that listings are
complete. Callers access it through `file_view`.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.machine.files.inodes import (
    Caller,
    Directory,
    File,
    Generated,
    Node,
    Space,
    Symlink,
)
from srearena.cluster.embedded.machine.files.streams import os_error
from srearena.cluster.embedded.machine.processes.credentials import ROOT, Credentials

MAX_SYMLINKS = 40
MAX_NAME = 255
SURELY_SHORT = MAX_NAME // 4
"""Characters that fit into MAX_NAME bytes whatever they are."""
MAX_PATH = 4096


class Volume:
    """A file tree that can be mounted, once or in many containers."""

    __slots__ = ("broken", "fstype", "read_only", "root", "source", "space")

    def __init__(
        self,
        root: Directory | None = None,
        *,
        space: Space | None = None,
        fstype: str = "ext4",
        source: str = "/dev/sda1",
        read_only: bool = False,
    ) -> None:
        self.root = root if root is not None else Directory(0o755)
        self.space = space if space is not None else Space()
        self.fstype = fstype
        self.source = source
        self.read_only = read_only
        self.broken: int | None = None
        """An errno (EIO, ESTALE) with which every access fails, when the storage is broken."""


@dataclass(eq=False, slots=True)
class Mount:
    path: str
    volume: Volume
    read_only: bool = False
    sub_path: str = ""
    node: Node | None = None
    """What is mounted: the volume's root, or what `sub_path` led to when the container started."""
    source: str = ""
    """Where the node keeps it; appears in error messages."""

    @property
    def root(self) -> Node:
        return self.volume.root if self.node is None else self.node

    @property
    def writable(self) -> bool:
        return not (self.read_only or self.volume.read_only)


@dataclass(frozen=True, slots=True)
class FileStat:
    path: str
    node: Node
    mount: Mount

    @property
    def is_dir(self) -> bool:
        return isinstance(self.node, Directory)

    @property
    def is_link(self) -> bool:
        return isinstance(self.node, Symlink)

    @property
    def is_file(self) -> bool:
        return isinstance(self.node, File | Generated)

    @property
    def size(self) -> int:
        return self.node.size


@dataclass(slots=True)
class Place:
    """Where a path leads: the node if there is one, and where it is (or would be) in its mount."""

    path: str
    mount: Mount
    node: Node | None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def trail(self) -> tuple[str, ...]:
        """Names from the mount's root down to `name`."""
        inside = self.path.removeprefix(self.mount.path).lstrip("/")
        return tuple(inside.split("/")) if inside else ()


class Trace:
    """What a walk from the root passed through; mounts do not come or go while a container runs."""

    __slots__ = ("roots", "steps")

    def __init__(self) -> None:
        self.roots: list[tuple[Mount, Node]] = []
        self.steps: list[tuple[Directory, str, Node | None, Callable[[str], Node | None]]] = []

    def step(self, directory: Directory, name: str, child: Node | None) -> None:
        self.steps.append((directory, name, child, directory.lookup))

    def holds(self, caller: Caller) -> bool:
        """Whether the same walk would end at the same node."""
        for mount, root in self.roots:
            if mount.root is not root or mount.volume.broken is not None:
                return False
        credentials = caller.credentials
        may_enter_all = credentials.can("DAC_OVERRIDE")
        for directory, name, child, lookup in self.steps:
            if lookup(name) is not child:
                return False
            if not may_enter_all and not credentials.may(directory.mode, directory.uid, directory.gid, 1):
                return False
        return True


class Filesystem:
    """The tree of one container."""

    __slots__ = ("_mounts", "_root", "clock")

    def __init__(
        self, clock: Clock, base: Directory, *, read_only_root: bool = False, space: Space | None = None
    ) -> None:
        self.clock = clock
        volume = Volume(base, space=space, fstype="overlay", source="overlay")
        self._root = Mount("/", volume, read_only_root)
        self._mounts: dict[str, Mount] = {}

    @property
    def root(self) -> Mount:
        return self._root

    def beneath(self, path: str, caller: Caller) -> Filesystem:
        """The tree as a process sees it whose root is changed to a directory of this one."""
        place = self.resolve(path, caller)
        if place.node is None:
            raise os_error(errno.ENOENT)
        if not isinstance(place.node, Directory):
            raise os_error(errno.ENOTDIR)
        below = Filesystem(self.clock, place.node)
        below._root = Mount("/", place.mount.volume, place.mount.read_only, node=place.node)
        prefix = place.path.rstrip("/")
        for mount in self._mounts.values():
            if mount.path.startswith(f"{prefix}/"):
                inner = mount.path[len(prefix) :]
                below.mount(Mount(inner, mount.volume, mount.read_only, mount.sub_path, mount.node, mount.source))
        return below

    @property
    def mounts(self) -> list[Mount]:
        return [self._root, *self._mounts.values()]

    def mount(self, mount: Mount) -> None:
        """Lay a mount over the tree. The path is canonical by now: the container resolved its links."""
        self._mounts[mount.path] = mount

    def resolve(self, path: str, caller: Caller, *, follow: bool = True, trace: Trace | None = None) -> Place:
        """Walk to `path`. A missing last component gives a Place without a node; anything else raises."""
        if not path:
            raise os_error(errno.ENOENT)
        if len(path) > MAX_PATH:
            raise os_error(errno.ENAMETOOLONG)
        credentials = caller.credentials
        may_enter_all = credentials.can("DAC_OVERRIDE")
        must_be_directory = path.endswith(("/", "/."))
        todo = _parts(path if path.startswith("/") else f"{caller.cwd}/{path}")
        # Each level: canonical path, mount and node.
        levels: list[tuple[str, Mount, Node]] = [("/", self._root, self._root.root)]
        if trace is not None:
            trace.roots.append((self._root, self._root.root))
        links = 0
        while todo:
            name = todo.pop()
            here, mount, node = levels[-1]
            if not isinstance(node, Directory):
                raise os_error(errno.ENOTDIR)
            if mount.volume.broken is not None:
                raise os_error(mount.volume.broken)
            if not may_enter_all and not credentials.may(node.mode, node.uid, node.gid, 1):
                raise os_error(errno.EACCES)
            if name == "..":
                if trace is not None:
                    trace.step(node, name, None)
                if len(levels) > 1:
                    levels.pop()
                continue
            if len(name) > SURELY_SHORT and len(name.encode(errors="surrogateescape")) > MAX_NAME:
                raise os_error(errno.ENAMETOOLONG)
            below = f"{here}/{name}" if here != "/" else f"/{name}"
            over = self._mounts.get(below)
            if over is not None:
                levels.append((below, over, over.root))
                if trace is not None:
                    trace.roots.append((over, over.root))
                continue
            child = node.get(name)
            if trace is not None:
                trace.step(node, name, child)
            if child is None:
                if todo:
                    raise os_error(errno.ENOENT)
                return Place(below, mount, None)
            if isinstance(child, Symlink) and (todo or follow or must_be_directory):
                links += 1
                if links > MAX_SYMLINKS:
                    raise os_error(errno.ELOOP)
                if child.node is not None:
                    levels.append((below, mount, child.node))
                    continue
                target = child.target_for(caller)
                if target.startswith("/"):
                    del levels[1:]
                todo.extend(_parts(target))
                continue
            levels.append((below, mount, child))
        here, mount, node = levels[-1]
        if mount.volume.broken is not None:
            raise os_error(mount.volume.broken)
        if must_be_directory and not isinstance(node, Directory):
            raise os_error(errno.ENOTDIR)
        return Place(here, mount, node)

    def own(self, place: Place) -> Node:
        """The node of `place` as one that may be changed: a frozen one is copied up, with its directories."""
        mount = place.mount
        if not mount.writable:
            raise os_error(errno.EROFS)
        directory = self._own_parents(place)
        node = place.node
        assert node is not None
        if not node.frozen:
            return node
        private = node.clone()
        if isinstance(private, File):
            mount.volume.space.take(private.size)
            private.space = mount.volume.space
        if directory is None:
            mount.volume.root = private if isinstance(private, Directory) else mount.volume.root
        else:
            directory.put(place.name, private)
        place.node = private
        return private

    def own_parent(self, place: Place) -> Directory:
        """The directory that holds `place`, ready to be changed."""
        if not place.mount.writable:
            raise os_error(errno.EROFS)
        directory = self._own_parents(place)
        if directory is None:
            raise os_error(errno.EBUSY)
        return directory

    def _own_parents(self, place: Place) -> Directory | None:
        if not place.trail:
            return None
        mount = place.mount
        root = mount.root
        if root.frozen and mount.node is None:
            root = mount.volume.root = mount.volume.root.clone()
        assert isinstance(root, Directory)
        directory = root
        for name in place.trail[:-1]:
            child = directory.get(name)
            assert isinstance(child, Directory)
            if child.frozen:
                child = child.clone()
                directory.put(name, child)
            directory = child
        return directory


def _parts(path: str) -> list[str]:
    """Components in reverse, ready to be popped."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


@dataclass(slots=True)
class RootCaller:
    """The caller for accesses by the machine itself (the kubelet, the runtime)."""

    cwd: str = "/"
    umask: int = 0o022
    credentials: Credentials = ROOT


def prepared(base: Directory, points: Iterable[tuple[str, bool]]) -> Directory:
    """A frozen tree like `base` in which each mount point (path, is a directory) exists, as the runtime makes them."""
    tree: Directory = base
    for path, is_directory in points:
        tree = _with_point(tree, [part for part in path.split("/") if part], is_directory)
    return tree


def _with_point(directory: Directory, names: list[str], is_directory: bool) -> Directory:
    name, rest = names[0], names[1:]
    child = directory.get(name)
    if child is not None and not rest:
        return directory
    new: Node
    if rest:
        if child is not None and not isinstance(child, Directory):
            raise os_error(errno.ENOTDIR)
        new = _with_point(child or Directory(0o755), rest, is_directory)
    else:
        new = Directory(0o755) if is_directory else File(b"", 0o755)
    if new is child:
        return directory
    new.freeze()
    copy = directory.clone()
    copy.put(name, new)
    copy.frozen = True
    return copy
