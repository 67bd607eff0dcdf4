"""Directories and texts that are produced when they are read."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable

from srearena.cluster.embedded.machine.files.inodes import Directory, Generated, Node
from srearena.cluster.embedded.machine.files.streams import os_error


class Listing(Directory):
    """A directory whose entries are produced by a function."""

    __slots__ = ("_contents",)

    def __init__(self, contents: Callable[[], dict[str, Node]]) -> None:
        super().__init__(0o555)
        self._contents = contents

    def get(self, name: str) -> Node | None:
        return self._contents().get(name)

    def names(self) -> Iterable[str]:
        return self._contents().keys()

    @property
    def size(self) -> int:
        return 0

    @property
    def links(self) -> int:
        return 2

    def put(self, name: str, node: Node) -> None:
        raise os_error(errno.ENOENT)

    def drop(self, name: str) -> None:
        raise os_error(errno.EPERM)


def text_file(produce: Callable[[], str], mode: int = 0o444) -> Generated:
    return Generated(lambda: produce().encode(errors="surrogateescape"), mode)
