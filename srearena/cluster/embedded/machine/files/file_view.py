"""File operations of one caller, with its working directory, credentials and umask.

Everything that runs in a container touches files through a `FileView`. Errors are OSErrors with the errno that the
system call would give.
"""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Iterable, Iterator

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.machine.files.filesystem import FileStat, Filesystem, Mount, Place, Trace
from srearena.cluster.embedded.machine.files.inodes import (
    Caller,
    Device,
    Directory,
    Executable,
    File,
    Generated,
    Node,
    Symlink,
)
from srearena.cluster.embedded.machine.files.streams import CHUNK, MAX_LINE, BytesFile, CommandFile, OpenFile, os_error


class RegularFile(OpenFile):
    """An open regular file with its position."""

    __slots__ = ("append", "clock", "description", "mount", "node", "offset", "readable", "writable")

    def __init__(
        self, clock: Clock, node: File, mount: Mount, path: str, *, readable: bool, writable: bool, append: bool
    ) -> None:
        super().__init__()
        self.description = path
        self.clock = clock
        self.node = node
        self.mount = mount
        self.offset = 0
        self.readable = readable
        self.writable = writable
        self.append = append
        node.opened()

    async def read(self, size: int = CHUNK) -> bytes:
        if not self.readable:
            raise os_error(errno.EBADF)
        if self.mount.volume.broken is not None:
            raise os_error(self.mount.volume.broken)
        data = self.node.read_at(self.offset, size)
        self.offset += len(data)
        return data

    async def read_line(self, limit: int = MAX_LINE) -> bytes:
        line = b""
        while True:
            data = await self.read(512)
            end = data.find(b"\n") + 1
            if end:
                self.offset -= len(data) - end
                return line + data[:end]
            line += data
            if not data or len(line) >= limit:
                return line

    async def write(self, data: bytes) -> None:
        if not self.writable:
            raise os_error(errno.EBADF)
        if self.mount.volume.broken is not None:
            raise os_error(self.mount.volume.broken)
        if not self.mount.writable:
            raise os_error(errno.EROFS)
        if self.append:
            self.offset = self.node.size
        self.node.write_at(self.offset, data)
        self.offset += len(data)
        self.node.mtime = self.clock.now

    def closed(self) -> None:
        self.node.closed()


class Glance:
    """The cached content of a file. Checking whether it is current is much cheaper than reading it again."""

    __slots__ = ("_caller", "_node", "_trace", "content")

    def __init__(self, caller: Caller, node: File, trace: Trace) -> None:
        self._caller = caller
        self._node = node
        self._trace = trace
        self.content = node.content

    def current(self) -> bool:
        node = self._node
        return (
            node.consists_of(self.content)
            and self._caller.credentials.may(node.mode, node.uid, node.gid, 4)
            and self._trace.holds(self._caller)
        )


class FileView:
    """The file tree with the permissions of one caller. Paths may be relative to the caller's directory."""

    __slots__ = ("caller", "filesystem")

    def __init__(self, filesystem: Filesystem, caller: Caller) -> None:
        self.filesystem = filesystem
        self.caller = caller

    def _check(self, node: Node, requested: int) -> None:
        if not self.caller.credentials.may(node.mode, node.uid, node.gid, requested):
            raise os_error(errno.EACCES)

    def _find(self, path: str, *, follow: bool = True) -> Place:
        place = self.filesystem.resolve(path, self.caller, follow=follow)
        if place.node is None:
            raise os_error(errno.ENOENT)
        return place

    def _parent_for_change(self, place: Place) -> Directory:
        directory = self.filesystem.own_parent(place)
        self._check(directory, 3)
        return directory

    def _new_node(self, place: Place, node: Node) -> None:
        directory = self._parent_for_change(place)
        if directory.mode & 0o2000:
            node.gid = directory.gid
            if isinstance(node, Directory):
                node.mode |= 0o2000
        directory.put(place.name, node)
        directory.mtime = self.filesystem.clock.now
        place.node = node

    def canonical(self, path: str) -> str:
        """The path with its links followed."""
        return self.filesystem.resolve(path, self.caller).path

    def stat(self, path: str, *, follow: bool = True) -> FileStat:
        place = self._find(path, follow=follow)
        assert place.node is not None
        return FileStat(place.path, place.node, place.mount)

    def exists(self, path: str, *, follow: bool = True) -> bool:
        try:
            self._find(path, follow=follow)
        except OSError:
            return False
        return True

    def is_dir(self, path: str) -> bool:
        try:
            return isinstance(self._find(path).node, Directory)
        except OSError:
            return False

    def is_file(self, path: str) -> bool:
        try:
            return isinstance(self._find(path).node, File | Generated)
        except OSError:
            return False

    def may(self, path: str, requested: int) -> bool:
        """Whether the caller may read (4), write (2) or execute (1) it."""
        try:
            place = self._find(path)
        except OSError:
            return False
        node = place.node
        assert node is not None
        if requested & 2 and not place.mount.writable and not isinstance(node, Device):
            return False
        if requested & 1 and not isinstance(node, Directory) and not node.mode & 0o111:
            return False
        return self.caller.credentials.may(node.mode, node.uid, node.gid, requested)

    def listdir(self, path: str = ".") -> list[str]:
        node = self._find(path).node
        if not isinstance(node, Directory):
            raise os_error(errno.ENOTDIR)
        self._check(node, 4)
        place = self.filesystem.resolve(path, self.caller)
        prefix = place.path if place.path != "/" else ""
        mounted = (
            posixpath.basename(m.path)
            for m in self.filesystem.mounts[1:]
            if posixpath.dirname(m.path) == (prefix or "/")
        )
        return sorted({*node.names(), *mounted})

    def readlink(self, path: str) -> str:
        node = self._find(path, follow=False).node
        if not isinstance(node, Symlink):
            raise os_error(errno.EINVAL)
        return node.target_for(self.caller)

    def open(self, path: str, mode: str = "r", permissions: int = 0o666) -> OpenFile:
        """Open as `r`, `w` (create, truncate), `a` (create, append), `x` (create, must be new) or `r+`."""
        place = self.filesystem.resolve(path, self.caller)
        node = place.node
        if node is None:
            if mode in ("r", "r+"):
                raise os_error(errno.ENOENT)
            node = self._create(place, permissions)
        elif mode == "x":
            raise os_error(errno.EEXIST)
        writing = mode != "r"
        if isinstance(node, Directory):
            if writing:
                raise os_error(errno.EISDIR)
            self._check(node, 4)
            return _OpenDirectory()
        self._check(node, {"r": 4, "r+": 6}.get(mode, 2))
        if isinstance(node, Device):
            return node.opener(self.caller, writing)
        if isinstance(node, Generated):
            if not writing:
                return BytesFile(node.produce())
            if node.accept is None:
                raise os_error(errno.EACCES)
            return CommandFile(node.accept)
        if writing:
            node = self.filesystem.own(place)
        assert isinstance(node, File)
        if mode == "w" and node.size:
            node.truncate(0)
            node.mtime = self.filesystem.clock.now
        return RegularFile(
            self.filesystem.clock,
            node,
            place.mount,
            place.path,
            readable=mode in ("r", "r+"),
            writable=writing,
            append=mode == "a",
        )

    def _create(self, place: Place, permissions: int) -> File:
        who = self.caller.credentials
        node = File(
            b"",
            permissions & ~self.caller.umask,
            who.uid,
            who.gid,
            self.filesystem.clock.now,
            place.mount.volume.space,
        )
        self._new_node(place, node)
        return node

    def read_bytes(self, path: str) -> bytes:
        node = self._find(path).node
        assert node is not None
        if isinstance(node, Directory):
            raise os_error(errno.EISDIR)
        self._check(node, 4)
        if isinstance(node, Generated):
            return node.produce()
        return node.content if isinstance(node, File) else b""

    def glance(self, path: str) -> Glance | None:
        """The content of a readable regular file at an absolute path, else None."""
        if not path.startswith("/"):
            return None
        trace = Trace()
        try:
            node = self.filesystem.resolve(path, self.caller, trace=trace).node
            if not isinstance(node, File):
                return None
            self._check(node, 4)
        except OSError:
            return None
        return Glance(self.caller, node, trace)

    def read_text(self, path: str) -> str:
        return self.read_bytes(path).decode(errors="replace")

    def write_bytes(self, path: str, data: bytes, permissions: int = 0o666) -> None:
        """Replace the content of a regular file; create it if it is missing."""
        file = self.open(path, "w", permissions)
        try:
            if isinstance(file, RegularFile):
                file.node.write_at(0, data)
                file.node.mtime = self.filesystem.clock.now
            elif isinstance(file, CommandFile):
                file.accept(data)
        finally:
            file.release()

    def mkdir(self, path: str, permissions: int = 0o777, *, parents: bool = False) -> None:
        if parents:
            head = posixpath.dirname(path.rstrip("/"))
            if head and head != path and not self.exists(head):
                self.mkdir(head, permissions, parents=True)
            if self.is_dir(path):
                return
        place = self.filesystem.resolve(path.rstrip("/") or "/", self.caller)
        if place.node is not None:
            raise os_error(errno.EEXIST)
        who = self.caller.credentials
        node = Directory(permissions & ~self.caller.umask, who.uid, who.gid, self.filesystem.clock.now)
        self._new_node(place, node)

    def symlink(self, target: str, path: str) -> None:
        place = self.filesystem.resolve(path, self.caller, follow=False)
        if place.node is not None:
            raise os_error(errno.EEXIST)
        who = self.caller.credentials
        self._new_node(place, Symlink(target, who.uid, who.gid, self.filesystem.clock.now))

    def hard_link(self, target: str, path: str) -> None:
        source = self._find(target, follow=False)
        if isinstance(source.node, Directory):
            raise os_error(errno.EPERM)
        place = self.filesystem.resolve(path, self.caller, follow=False)
        if place.node is not None:
            raise os_error(errno.EEXIST)
        if source.mount is not place.mount:
            raise os_error(errno.EXDEV)
        node = self.filesystem.own(source)
        directory = self._parent_for_change(place)
        directory.put(place.name, node)
        if isinstance(node, File):
            node.link()

    def unlink(self, path: str) -> None:
        place = self._find(path, follow=False)
        if isinstance(place.node, Directory):
            raise os_error(errno.EISDIR)
        self._remove(place)

    def rmdir(self, path: str) -> None:
        place = self._find(path, follow=False)
        node = place.node
        if not isinstance(node, Directory):
            raise os_error(errno.ENOTDIR)
        if not place.trail:
            raise os_error(errno.EBUSY)
        if any(True for _ in node.names()):
            raise os_error(errno.ENOTEMPTY)
        self._remove(place)

    def _remove(self, place: Place) -> None:
        if not place.trail:
            raise os_error(errno.EBUSY)
        directory = self._parent_for_change(place)
        self._check_sticky(directory, place.node)
        node = directory.get(place.name)
        directory.drop(place.name)
        directory.mtime = self.filesystem.clock.now
        if isinstance(node, File) and not node.frozen:
            node.unlink()

    def _check_sticky(self, directory: Directory, node: Node | None) -> None:
        who = self.caller.credentials
        if (
            directory.mode & 0o1000
            and node is not None
            and not who.can("FOWNER")
            and who.uid not in (node.uid, directory.uid)
        ):
            raise os_error(errno.EPERM)

    def rename(self, old: str, new: str) -> None:
        source = self._find(old, follow=False)
        target = self.filesystem.resolve(new.rstrip("/") or "/", self.caller, follow=False)
        if source.mount is not target.mount:
            raise os_error(errno.EXDEV)
        if not source.trail or not target.trail:
            raise os_error(errno.EBUSY)
        if target.node is source.node:
            return
        if isinstance(source.node, Directory) and f"{target.path}/".startswith(f"{source.path}/"):
            raise os_error(errno.EINVAL)
        self._check_replacement(source.node, target.node)
        node = self.filesystem.own(source)
        origin = self._parent_for_change(source)
        self._check_sticky(origin, node)
        destination = self._parent_for_change(target)
        replaced = destination.get(target.name)
        if isinstance(replaced, File) and not replaced.frozen:
            replaced.unlink()
        origin.drop(source.name)
        destination.put(target.name, node)
        origin.mtime = destination.mtime = self.filesystem.clock.now

    @staticmethod
    def _check_replacement(source: Node | None, target: Node | None) -> None:
        if isinstance(target, Directory):
            if not isinstance(source, Directory):
                raise os_error(errno.EISDIR)
            if any(True for _ in target.names()):
                raise os_error(errno.ENOTEMPTY)
        elif target is not None and isinstance(source, Directory):
            raise os_error(errno.ENOTDIR)

    def _changeable(self, path: str, *, follow: bool = True) -> Node:
        place = self._find(path, follow=follow)
        assert place.node is not None
        who = self.caller.credentials
        if not who.can("FOWNER") and who.uid != place.node.uid:
            raise os_error(errno.EPERM)
        return self.filesystem.own(place)

    def chmod(self, path: str, mode: int) -> None:
        self._changeable(path).mode = mode & 0o7777

    def chown(self, path: str, uid: int | None, gid: int | None, *, follow: bool = True) -> None:
        who = self.caller.credentials
        node = self.stat(path, follow=follow).node
        new_owner = uid is not None and uid != node.uid
        new_group = gid is not None and gid not in (node.gid, who.gid, *who.groups)
        if (new_owner or new_group) and not who.can("CHOWN"):
            raise os_error(errno.EPERM)
        node = self._changeable(path, follow=follow)
        node.uid = node.uid if uid is None else uid
        node.gid = node.gid if gid is None else gid

    def touch(self, path: str, moment: float | None = None) -> None:
        if not self.exists(path):
            self.open(path, "w").release()
        place = self._find(path)
        assert place.node is not None
        self._check(place.node, 2)
        self.filesystem.own(place).mtime = self.filesystem.clock.now if moment is None else moment

    def truncate(self, path: str, size: int) -> None:
        if not self.exists(path):
            self.open(path, "w").release()
        place = self._find(path)
        assert place.node is not None
        self._check(place.node, 2)
        node = self.filesystem.own(place)
        if not isinstance(node, File):
            raise os_error(errno.EINVAL)
        node.truncate(size)

    def walk(self, path: str) -> Iterator[FileStat]:
        """Everything at and below `path`, parents first, links not followed; unreadable directories are skipped."""
        found = self.stat(path, follow=False)
        yield found
        if not found.is_dir:
            return
        try:
            names = self.listdir(path)
        except OSError:
            return
        for name in names:
            yield from self.walk(posixpath.join(path, name))

    def executable(self, path: str) -> Executable | File:
        """The file to run for an absolute or relative path; ENOENT, EACCES, EISDIR as execve(2) and its callers."""
        place = self._find(path)
        node = place.node
        if isinstance(node, Directory):
            raise os_error(errno.EISDIR)
        if not isinstance(node, File) or not node.mode & 0o111:
            raise os_error(errno.EACCES)
        self._check(node, 1)
        return node

    def search(self, name: str, path: str) -> str | None:
        """The path of a command found along $PATH."""
        if "/" in name:
            return name
        for folder in path.split(":"):
            candidate = posixpath.join(folder or ".", name)
            if self.is_file(candidate) and self.may(candidate, 1):
                return candidate
        return None

    def usage(self, paths: Iterable[str]) -> int:
        """Bytes in the files at and below the paths."""
        return sum(entry.size for path in paths for entry in self.walk(path) if isinstance(entry.node, File))


class _OpenDirectory(OpenFile):
    """An open directory: reads fail with EISDIR."""

    __slots__ = ()

    async def read(self, size: int = CHUNK) -> bytes:
        raise os_error(errno.EISDIR)
