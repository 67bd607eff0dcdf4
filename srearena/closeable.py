"""Base class of objects with a `close` method that are context managers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closeable(ABC):
    """Releases its resources in `close`, which the end of a `with` block calls."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources; calling it again does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
