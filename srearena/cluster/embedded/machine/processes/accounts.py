"""Users and groups of an image, from its /etc/passwd and /etc/group."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    uid: int
    gid: int
    home: str = "/"
    shell: str = "/bin/sh"

    @property
    def line(self) -> str:
        return f"{self.name}:x:{self.uid}:{self.gid}:{self.name}:{self.home}:{self.shell}"


class Accounts:
    """A parsed pair of passwd and group; malformed lines are ignored, as in libc."""

    def __init__(self, passwd: str, group: str) -> None:
        self._accounts = [account for line in passwd.splitlines() if (account := _account(line)) is not None]
        self._groups: list[tuple[str, int, tuple[str, ...]]] = []
        for line in group.splitlines():
            fields = line.split(":")
            if len(fields) >= 3 and fields[2].isdigit():
                members = tuple(fields[3].split(",")) if len(fields) > 3 else ()
                self._groups.append((fields[0], int(fields[2]), members))

    def by_uid(self, uid: int) -> Account:
        """The user; an unknown one has no name, group 0 and no home."""
        known = next((account for account in self._accounts if account.uid == uid), None)
        return known if known is not None else Account("", uid, 0)

    def by_name(self, name: str) -> Account | None:
        return next((account for account in self._accounts if account.name == name), None)

    def resolve(self, user: str) -> Account:
        """An image's USER: a name or number, perhaps with a group."""
        who, _, group = user.partition(":")
        named = self.by_name(who) if not who.isdigit() else None
        account = named if named is not None else self.by_uid(int(who) if who.isdigit() else 0)
        gid = self.group_id(group) if group else None
        return account if gid is None else Account(account.name, account.uid, gid, account.home, account.shell)

    def user_name(self, uid: int) -> str:
        return self.by_uid(uid).name or str(uid)

    def group_name(self, gid: int) -> str:
        return next((name for name, number, _ in self._groups if number == gid), str(gid))

    def group_id(self, group: str) -> int | None:
        if group.isdigit():
            return int(group)
        return next((number for name, number, _ in self._groups if name == group), None)

    def groups_of(self, name: str) -> Iterable[int]:
        return (number for _, number, members in self._groups if name in members)

    @property
    def all(self) -> list[Account]:
        return self._accounts


@lru_cache(maxsize=64)
def accounts_in(passwd: str, group: str) -> Accounts:
    """Parse the two files; cached, since containers of an image share them."""
    return Accounts(passwd, group)


def _account(line: str) -> Account | None:
    fields = line.split(":")
    if len(fields) < 7 or not fields[2].isdigit() or not fields[3].isdigit():
        return None
    return Account(fields[0], int(fields[2]), int(fields[3]), fields[5] or "/", fields[6])
