"""agnhost mounttest: writes, reads and describes files of a volume."""

from __future__ import annotations

from srearena.cluster.embedded.machine.files.filesystem import FileStat
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.agnhost.commands import command
from srearena.cluster.embedded.programs.serving import Flags

_CONTENT = b"mount-tester new file\n"
_NEW_FILES = {"new_file_0644": 0o644, "new_file_0666": 0o666, "new_file_0660": 0o660, "new_file_0777": 0o777}
_EXT4_MAGIC = 61267
_LOOP_SECONDS = 2.0
_DEFAULT_RETRY_SECONDS = 180


def go_mode(node_mode: int, *, directory: bool, permissions_only: bool = False) -> str:
    """A mode as Go's os.FileMode prints it: `-rw-r--r--`, `drwxr-xr-x`, `dtrwxrwxrwx`."""
    kind = ""
    if not permissions_only:
        bits = ((directory, "d"), (node_mode & 0o4000, "u"), (node_mode & 0o2000, "g"), (node_mode & 0o1000, "t"))
        kind = "".join(letter for present, letter in bits if present)
    letters = "".join(letter if node_mode >> (8 - at) & 1 else "-" for at, letter in enumerate("rwxrwxrwx"))
    return f"{kind or '-'}{letters}"


@command("mounttest")
async def mounttest(process: Process, flags: Flags) -> int:
    process.umask = 0
    test = _MountTest(process)
    await test.filesystem_type(flags.get("fs_type"))
    for flag, mode in _NEW_FILES.items():
        await test.write(flags.get(flag), mode)
    await test.describe(flags.get("file_mode"), "mode", permissions_only=False)
    await test.describe(flags.get("file_perm"), "perms", permissions_only=True)
    await test.owner(flags.get("file_owner"))
    await test.show(flags.get("file_content"))
    retry = flags.get("retry_time", str(_DEFAULT_RETRY_SECONDS))
    seconds = int(retry) if retry.isdigit() else _DEFAULT_RETRY_SECONDS
    until_expected = flags.get("break_on_expected_content", "true") == "true"
    await test.watch(flags.get("file_content_in_loop"), seconds, until_expected=until_expected)
    return 1 if test.failed else 0


class _MountTest:
    def __init__(self, process: Process) -> None:
        self._process = process
        self.failed = False

    async def _fail(self, text: str) -> None:
        self.failed = True
        await self._process.write(f"{text}\n")

    async def _stat(self, path: str, call: str) -> FileStat | None:
        if not path:
            return None
        try:
            return self._process.files.stat(path)
        except OSError as error:
            await self._fail(f'error from {call}("{path}"): {call.lower()} {path}: {_reason(error)}')
            return None

    async def filesystem_type(self, path: str) -> None:
        found = await self._stat(path, "statfs")
        if found is not None:
            kind = "tmpfs" if found.mount.volume.fstype == "tmpfs" else str(_EXT4_MAGIC)
            await self._process.write(f'mount type of "{path}": {kind}\n')

    async def write(self, path: str, mode: int) -> None:
        if not path:
            return
        try:
            self._process.files.write_bytes(path, _CONTENT, mode)
        except OSError as error:
            await self._fail(f'error writing new file "{path}": open {path}: {_reason(error)}')
            return
        await self.show(path)

    async def describe(self, path: str, what: str, *, permissions_only: bool) -> None:
        found = await self._stat(path, "Stat")
        if found is not None:
            text = go_mode(found.node.mode, directory=found.is_dir, permissions_only=permissions_only)
            await self._process.write(f'{what} of file "{path}": {text}\n')

    async def owner(self, path: str) -> None:
        found = await self._stat(path, "stat")
        if found is not None:
            owner = f'owner UID of "{path}": {found.node.uid}\nowner GID of "{path}": {found.node.gid}\n'
            await self._process.write(owner)

    async def show(self, path: str) -> None:
        if not path:
            return
        try:
            content = self._process.files.read_bytes(path)
        except OSError as error:
            await self._fail(f'error reading file content for "{path}": open {path}: {_reason(error)}')
            return
        await self._process.write(f'content of file "{path}": '.encode() + content + b"\n")

    async def watch(self, path: str, seconds: int, *, until_expected: bool) -> None:
        """Read a file every two seconds until it holds what `write` writes, or time is up."""
        if not path:
            return
        process, failed = self._process, False
        deadline = process.clock.now + seconds
        while process.clock.now < deadline:
            try:
                content = process.files.read_bytes(path)
            except OSError as error:
                failed = True
                await process.write(f"Error reading file {path}: open {path}: {_reason(error)}, retrying\n")
            else:
                failed = False
                await process.write(f'content of file "{path}": '.encode() + content + b"\n")
                if until_expected and content == _CONTENT:
                    return
                if until_expected:
                    expected = _CONTENT.decode()
                    await process.write(f"Unexpected content. Expected: {expected}. Retrying\n")
            await process.sleep(_LOOP_SECONDS)
        self.failed = self.failed or failed


def _reason(error: OSError) -> str:
    return str(error.strerror).lower()
