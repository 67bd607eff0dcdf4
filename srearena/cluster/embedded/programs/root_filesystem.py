"""Builds the file tree of an image from its family's userland and the program's own files.

Trees are frozen and shared. Those of a family are built once; an image's own tree copies only the directories in
which it differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from srearena.cluster.embedded.machine.files.inodes import Directory, Executable, File, Node, Runnable, Symlink
from srearena.cluster.embedded.machine.images.families import Family
from srearena.cluster.embedded.machine.processes.accounts import Account
from srearena.cluster.embedded.userland.tools.registry import Tool

if TYPE_CHECKING:
    from srearena.cluster.embedded.programs.base import Program

BUILT_AT = 1_735_689_600.0
"""When images were built: the start of 2025."""
TOOL_SIZE = 48 * 1024
BUSYBOX_SIZE = 1_131_168


@dataclass(frozen=True, slots=True)
class Folder:
    mode: int = 0o755
    uid: int = 0
    gid: int = 0


_FOLDERS = {
    "dev": 0o755,
    "etc": 0o755,
    "home": 0o755,
    "media": 0o755,
    "mnt": 0o755,
    "opt": 0o755,
    "proc": 0o555,
    "root": 0o700,
    "run": 0o755,
    "srv": 0o755,
    "sys": 0o555,
    "tmp": 0o1777,
    "usr": 0o755,
    "usr/bin": 0o755,
    "usr/lib": 0o755,
    "usr/local": 0o755,
    "usr/local/bin": 0o755,
    "usr/local/sbin": 0o755,
    "usr/sbin": 0o755,
    "usr/share": 0o755,
    "var": 0o755,
    "var/cache": 0o755,
    "var/lib": 0o755,
    "var/log": 0o755,
    "var/spool": 0o755,
    "var/tmp": 0o1777,
}

_ACCOUNTS = (
    Account("root", 0, 0, "/root", "/bin/sh"),
    Account("daemon", 1, 1, "/usr/sbin", "/usr/sbin/nologin"),
    Account("bin", 2, 2, "/bin", "/usr/sbin/nologin"),
    Account("www-data", 33, 33, "/var/www", "/usr/sbin/nologin"),
    Account("nobody", 65534, 65534, "/nonexistent", "/usr/sbin/nologin"),
)
_DISTROLESS_ACCOUNTS = (
    Account("root", 0, 0, "/root", "/sbin/nologin"),
    Account("nobody", 65534, 65534, "/nonexistent", "/sbin/nologin"),
    Account("nonroot", 65532, 65532, "/home/nonroot", "/sbin/nologin"),
)


class _Builder:
    """Puts nodes into a tree, making directories on the way and copying frozen ones."""

    def __init__(self, root: Directory) -> None:
        self.root = root.clone() if root.frozen else root

    def directory(self, path: str) -> Directory:
        here = self.root
        for name in path.strip("/").split("/"):
            if not name:
                continue
            child = here.get(name)
            if isinstance(child, Symlink):
                target = child.target
                here = self.directory(target if target.startswith("/") else f"{path.rpartition(name)[0]}/{target}")
                continue
            if not isinstance(child, Directory):
                child = Directory(0o755, mtime=BUILT_AT)
                here.put(name, child)
            elif child.frozen:
                child = child.clone()
                here.put(name, child)
            here = child
        return here

    def put(self, path: str, node: Node) -> None:
        folder, _, name = path.rpartition("/")
        node.mtime = BUILT_AT
        self.directory(folder).put(name, node)

    def done(self) -> Directory:
        self.root.mtime = BUILT_AT
        self.root.freeze()
        return self.root


@cache
def _executable(tool: Tool) -> Executable:
    node = Executable(tool, size=BUSYBOX_SIZE if tool.name == "busybox" else TOOL_SIZE)
    node.mtime = BUILT_AT
    node.freeze()
    return node


def _install_tool(builder: _Builder, family: Family, name: str) -> None:
    if family.dialect == "busybox" and name in family.tools:
        if name == "busybox":
            builder.put("/bin/busybox", Executable(Tool("busybox"), size=BUSYBOX_SIZE))
        else:
            builder.put(f"/bin/{name}", Symlink("/bin/busybox"))
        return
    if name == "sh" and family.shell:
        builder.put("/usr/bin/sh", Symlink(family.shell))
        return
    builder.directory("/usr/bin").put(name, _executable(Tool(name)))


@cache
def family_tree(family: Family) -> Directory:
    builder = _Builder(Directory(0o755))
    if family.name == "scratch":
        return builder.done()
    for path, mode in _FOLDERS.items():
        builder.directory(path).mode = mode
    builder.put("/var/run", Symlink("/run"))
    if family.merged_usr:
        for name in ("bin", "sbin", "lib"):
            builder.put(f"/{name}", Symlink(f"usr/{name}"))
    else:
        for name in ("bin", "sbin", "lib"):
            builder.directory(name)
    for tool in family.tools:
        _install_tool(builder, family, tool)
    if family.release:
        builder.put("/etc/os-release", File(family.release.encode()))
    accounts = _ACCOUNTS if family.has_shell else _DISTROLESS_ACCOUNTS
    _write_accounts(builder, accounts)
    builder.put("/etc/hostname", File(b""))
    builder.put("/etc/hosts", File(b""))
    builder.put("/etc/resolv.conf", File(b""))
    builder.put("/etc/nsswitch.conf", File(b"passwd: files\ngroup: files\nhosts: files dns\n"))
    return builder.done()


def _write_accounts(builder: _Builder, accounts: tuple[Account, ...]) -> None:
    passwd = "".join(f"{account.line}\n" for account in accounts)
    groups = "".join(f"{account.name}:x:{account.gid}:\n" for account in accounts)
    builder.put("/etc/passwd", File(passwd.encode()))
    builder.put("/etc/group", File(groups.encode()))


def _program_file(runnable: Runnable) -> Executable:
    return Executable(runnable, size=8 * 1024 * 1024)


def build_tree(program: Program) -> Directory:
    family = program.family
    tree = family_tree(family)
    added = (program.tools, program.binaries, program.accounts_added, program.folders, program.files, program.links)
    if not any(added):
        return tree
    builder = _Builder(tree)
    for tool in program.tools:
        if tool not in family.tools or tool in program.packaged_tools:
            builder.directory("/usr/bin").put(tool, _executable(Tool(tool)))
    for path in program.binaries:
        builder.put(path, _program_file(program.binary(path)))
    if program.accounts_added:
        base = _ACCOUNTS if family.has_shell else _DISTROLESS_ACCOUNTS
        _write_accounts(builder, (*base, *program.accounts_added))
    for path, folder in program.folders.items():
        directory = builder.directory(path)
        directory.mode, directory.uid, directory.gid = folder.mode, folder.uid, folder.gid
    for path, text in program.files.items():
        builder.put(path, File(text.encode(), 0o755 if text.startswith("#!") else 0o644))
    for path, target in program.links.items():
        builder.put(path, Symlink(target))
    return builder.done()
