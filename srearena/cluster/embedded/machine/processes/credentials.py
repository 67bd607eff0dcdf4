"""Process credentials: user, groups and capabilities."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_CAPABILITIES = frozenset(
    (
        "CHOWN",
        "DAC_OVERRIDE",
        "FSETID",
        "FOWNER",
        "MKNOD",
        "NET_RAW",
        "SETGID",
        "SETUID",
        "SETFCAP",
        "SETPCAP",
        "NET_BIND_SERVICE",
        "SYS_CHROOT",
        "KILL",
        "AUDIT_WRITE",
    )
)
"""The default capabilities of containerd."""


@dataclass(frozen=True, slots=True)
class Credentials:
    uid: int = 0
    gid: int = 0
    groups: tuple[int, ...] = ()
    capabilities: frozenset[str] = DEFAULT_CAPABILITIES

    def can(self, capability: str) -> bool:
        return self.uid == 0 and capability in self.capabilities

    def may(self, mode: int, uid: int, gid: int, requested: int) -> bool:
        """Whether these credentials have the `requested` bits (4 read, 2 write, 1 execute) of a mode."""
        if self.can("DAC_OVERRIDE"):
            return True
        if self.uid == uid:
            granted = mode >> 6
        elif self.gid == gid or gid in self.groups:
            granted = mode >> 3
        else:
            granted = mode
        return granted & requested == requested


ROOT = Credentials()
