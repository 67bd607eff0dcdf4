"""A line in a pipeline: its text and present labels."""

from __future__ import annotations

import re
from collections.abc import Mapping

ERROR, ERROR_DETAILS = "__error__", "__error_details__"
_ODD = re.compile(r"[^a-zA-Z0-9_]")


class Line:
    """`labels` begins as the stream's and is a line's own as soon as something is set."""

    __slots__ = ("base", "labels", "shared", "text", "time")

    def __init__(self, time: int, text: bytes, base: dict[str, str]) -> None:
        self.time = time
        self.text = text
        self.base = base
        self.labels = base
        self.shared = True

    def set(self, name: str, value: str) -> None:
        if self.shared:
            self.labels = dict(self.base)
            self.shared = False
        self.labels[name] = value

    def remove(self, name: str) -> None:
        if name in self.labels:
            if self.shared:
                self.labels = dict(self.base)
                self.shared = False
            del self.labels[name]

    def extract(self, name: str, value: str) -> None:
        """Set a label that was found in the line; the stream's own labels keep their names."""
        self.set(f"{name}_extracted" if name in self.base else name, value)

    def fail(self, kind: str, details: str = "") -> None:
        self.set(ERROR, kind)
        if details:
            self.set(ERROR_DETAILS, details)

    @property
    def decoded(self) -> str:
        return self.text.decode("utf-8", "replace")

    def result(self) -> Mapping[str, str]:
        """Return the final labels."""
        return self.labels


def label_name(key: str) -> str:
    """A field's name as a label's name."""
    key = key.strip()
    if key[:1].isdigit():
        key = f"_{key}"
    return _ODD.sub("_", key)
