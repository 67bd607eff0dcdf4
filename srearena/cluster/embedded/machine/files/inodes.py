"""Inodes: directories, files, links and devices, and the disk space they use.

Nodes of an image are frozen and shared by all containers that run it; the filesystem clones a node before the
first change, as an overlay does. Contents are kept in pages of which equal neighbours share
their bytes and zeros cost nothing, so that filling a simulated disk does not fill the real memory.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from srearena.cluster.embedded.machine.files.streams import OpenFile, os_error

if TYPE_CHECKING:
    from srearena.cluster.embedded.machine.processes.credentials import Credentials

PAGE = 64 * 1024
MAX_STORED = 64 * 1024 * 1024
"""The limit of real bytes per file; more non-repeating content fails with EFBIG."""


_ZEROS = bytes(PAGE)


class Caller(Protocol):
    """The caller of a file operation: credentials, working directory and umask."""

    cwd: str
    umask: int
    credentials: Credentials


class Space:
    """Used bytes of a storage with a capacity; usage also counts in the parent."""

    __slots__ = ("capacity", "parent", "used", "written")

    def __init__(self, capacity: int | None = None, parent: Space | None = None, used: int = 0) -> None:
        self.capacity = capacity
        self.parent = parent
        self.used = used
        self.written = 0
        """Bytes added since the storage exists; what is removed does not count."""

    def take(self, amount: int) -> None:
        """Count `amount` more bytes (or fewer, if negative); ENOSPC where they do not fit."""
        if amount > 0:
            level: Space | None = self
            while level is not None:
                if level.capacity is not None and level.used + amount > level.capacity:
                    raise os_error(errno.ENOSPC)
                level = level.parent
        level = self
        added = max(0, amount)
        while level is not None:
            level.used += amount
            level.written += added
            level = level.parent

    @property
    def limits(self) -> tuple[int, int]:
        """Size and use of what `df` shows for it: the nearest thing with a capacity."""
        level: Space = self
        while level.capacity is None and level.parent is not None:
            level = level.parent
        return (level.capacity if level.capacity is not None else 0), level.used


class Node:
    __slots__ = ("frozen", "gid", "mode", "mtime", "uid")
    letter = "-"
    type_name = "regular file"

    def __init__(self, mode: int, uid: int = 0, gid: int = 0, mtime: float = 0.0) -> None:
        self.mode = mode
        self.uid = uid
        self.gid = gid
        self.mtime = mtime
        self.frozen = False

    @property
    def size(self) -> int:
        return 0

    @property
    def links(self) -> int:
        return 1

    def clone(self) -> Node:
        """A private copy of a frozen node."""
        raise os_error(errno.EROFS)

    def freeze(self) -> None:
        self.frozen = True


class Directory(Node):
    __slots__ = ("_entries", "prepared")
    letter = "d"
    type_name = "directory"

    def __init__(
        self,
        mode: int = 0o755,
        uid: int = 0,
        gid: int = 0,
        mtime: float = 0.0,
        entries: Mapping[str, Node] | None = None,
    ) -> None:
        super().__init__(mode, uid, gid, mtime)
        self._entries: dict[str, Node] = dict(entries or {})
        self.prepared: dict[tuple[tuple[str, bool], ...], Directory] | None = None
        """Of a frozen tree that containers begin with: the same with mount points. Kept here and not in a cache of the
        process, as trees lead to the cluster they are in."""

    @property
    def size(self) -> int:
        return 4096

    @property
    def links(self) -> int:
        return 2 + sum(isinstance(child, Directory) for child in self._entries.values())

    def get(self, name: str) -> Node | None:
        return self._entries.get(name)

    @property
    def lookup(self) -> Callable[[str], Node | None]:
        """What `get` does, for callers that ask again and again."""
        return self._entries.get if type(self) is Directory else self.get

    def names(self) -> Iterable[str]:
        return self._entries.keys()

    def put(self, name: str, node: Node) -> None:
        self._entries[name] = node

    def drop(self, name: str) -> None:
        self._entries.pop(name, None)

    def clone(self) -> Directory:
        return Directory(self.mode, self.uid, self.gid, self.mtime, self._entries)

    def freeze(self) -> None:
        super().freeze()
        for child in self._entries.values():
            child.freeze()


class Symlink(Node):
    __slots__ = ("target",)
    node: Node | None = None
    """What it leads to where its target is no path, as of the links in /proc/PID/fd."""
    letter = "l"
    type_name = "symbolic link"

    def __init__(self, target: str, uid: int = 0, gid: int = 0, mtime: float = 0.0) -> None:
        super().__init__(0o777, uid, gid, mtime)
        self.target = target

    @property
    def size(self) -> int:
        return len(self.target.encode())

    def target_for(self, caller: Caller) -> str:
        return self.target

    def clone(self) -> Symlink:
        return Symlink(self.target, self.uid, self.gid, self.mtime)


class File(Node):
    """A regular file. Small ones are one bytes object, large ones a table of pages; missing pages are zeros."""

    __slots__ = ("_data", "_links", "_pages", "_size", "_stored", "opens", "space")

    def __init__(
        self,
        data: bytes = b"",
        mode: int = 0o644,
        uid: int = 0,
        gid: int = 0,
        mtime: float = 0.0,
        space: Space | None = None,
    ) -> None:
        super().__init__(mode, uid, gid, mtime)
        self._data = b""
        self._pages: dict[int, bytes] | None = None
        self._size = 0
        self._stored = 0
        self._links = 1
        self.opens = 0
        self.space = space
        if data:
            self.write_at(0, data)

    @property
    def size(self) -> int:
        return self._size

    @property
    def links(self) -> int:
        return self._links

    def read_at(self, offset: int, size: int) -> bytes:
        size = max(0, min(size, self._size - offset))
        if self._pages is None:
            return self._data[offset : offset + size]
        parts: list[bytes] = []
        while size > 0:
            index, start = divmod(offset, PAGE)
            take = min(size, PAGE - start)
            page = self._pages.get(index)
            part = bytes(take) if page is None else page[start : start + take]
            parts.append(part if len(part) == take else part + bytes(take - len(part)))
            offset += take
            size -= take
        return b"".join(parts)

    def write_at(self, offset: int, data: bytes) -> None:
        end = offset + len(data)
        grown = max(0, end - self._size)
        if grown and self.space is not None:
            self.space.take(grown)
        try:
            self._store(offset, data)
        except OSError:
            if grown and self.space is not None:
                self.space.take(-grown)
            raise
        self._size = max(self._size, end)

    def _store(self, offset: int, data: bytes) -> None:
        end = offset + len(data)
        if self._pages is None and end <= PAGE:
            gap = bytes(max(0, offset - len(self._data)))
            self._data = self._data[:offset] + gap + data + self._data[end:]
            return
        if self._pages is None:
            self._pages = {0: self._data} if self._data else {}
            self._stored, self._data = len(self._data), b""
        position = 0
        while position < len(data):
            index, start = divmod(offset + position, PAGE)
            part = data[position : position + PAGE - start]
            old = self._pages.get(index, b"")
            new = part if len(part) == PAGE else _spliced(old, start, part)
            self._stored -= self._weight(index)
            previous = self._pages.get(index - 1)
            if new == _ZEROS[: len(new)]:
                self._pages.pop(index, None)
            elif previous is not None and previous == new:
                self._pages[index] = previous
            elif self._stored > MAX_STORED:
                raise os_error(errno.EFBIG)
            else:
                self._pages[index] = new
                self._stored += len(new)
            position += len(part)

    def _weight(self, index: int) -> int:
        """Real bytes that only this page holds."""
        assert self._pages is not None
        page = self._pages.get(index)
        if page is None or page is self._pages.get(index - 1) or page is self._pages.get(index + 1):
            return 0
        return len(page)

    def truncate(self, size: int) -> None:
        """Cut to `size`, or grow to it with zeros."""
        if self.space is not None:
            self.space.take(size - self._size)
        if size < self._size:
            if self._pages is None:
                self._data = self._data[:size]
            else:
                last, rest = divmod(size, PAGE)
                self._pages = {i: p for i, p in self._pages.items() if i < last or (i == last and rest)}
                if last in self._pages:
                    self._pages[last] = self._pages[last][:rest]
                self._stored = min(self._stored, sum(map(len, self._pages.values())))
        elif self._pages is None and size > self._size:
            self._pages = {0: self._data} if self._data else {}
            self._stored, self._data = len(self._data), b""
        self._size = size

    @property
    def content(self) -> bytes:
        return self.read_at(0, min(self._size, MAX_STORED))

    def consists_of(self, content: bytes) -> bool:
        """Whether the content is this very object, as it stays until the file is written to."""
        return self._data is content and self._pages is None

    def link(self) -> None:
        self._links += 1

    def unlink(self) -> None:
        self._links -= 1
        self._settle()

    def opened(self) -> None:
        self.opens += 1

    def closed(self) -> None:
        self.opens -= 1
        self._settle()

    def _settle(self) -> None:
        """Release the space when no name and no open descriptor is left."""
        if self._links <= 0 and self.opens <= 0 and self.space is not None:
            self.space.take(-self._size)
            self.space = None

    def clone(self) -> File:
        copy = type(self).__new__(type(self))
        File.__init__(copy, b"", self.mode, self.uid, self.gid, self.mtime)
        copy._data, copy._size, copy._stored = self._data, self._size, self._stored
        copy._pages = None if self._pages is None else dict(self._pages)
        return copy


def _spliced(old: bytes, start: int, part: bytes) -> bytes:
    gap = bytes(max(0, start - len(old)))
    return old[:start] + gap + part + old[start + len(part) :]


class Runnable(Protocol):
    """The code behind an `Executable`: given its process, it runs to an exit status."""

    @property
    def name(self) -> str: ...

    def run(self, process: Any) -> Coroutine[Any, Any, int]: ...


class Executable(File):
    """A compiled program: its content is opaque, and callers with execute permission can run it."""

    __slots__ = ("runnable",)

    def __init__(self, runnable: Runnable, mode: int = 0o755, size: int = 0) -> None:
        super().__init__(b"\x7fELF\x02\x01\x01\x00" + runnable.name.encode() + b"\x00", mode)
        self.runnable = runnable
        if size > self._size:
            self.truncate(size)

    def clone(self) -> Executable:
        copy = super().clone()
        assert isinstance(copy, Executable)
        copy.runnable = self.runnable
        return copy


class Generated(Node):
    """A file whose content is produced on read (/proc, /sys)."""

    __slots__ = ("accept", "produce")

    def __init__(self, produce: Callable[[], bytes], mode: int = 0o444) -> None:
        super().__init__(mode)
        self.produce = produce
        self.accept: Callable[[bytes], object] | None = None
        """What a write to it does; None where it cannot be written."""


class Device(Node):
    """A device: opening it calls its driver."""

    __slots__ = ("numbers", "opener")
    letter = "c"
    type_name = "character special file"

    def __init__(
        self, opener: Callable[[Caller, bool], OpenFile], mode: int = 0o666, numbers: tuple[int, int] = (1, 3)
    ) -> None:
        super().__init__(mode)
        self.opener = opener
        self.numbers = numbers

    def clone(self) -> Device:
        return Device(self.opener, self.mode, self.numbers)
