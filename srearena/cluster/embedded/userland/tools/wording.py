"""What the tools say when a file cannot be had: GNU's words and busybox's."""

from __future__ import annotations

from srearena.cluster.embedded.machine.processes.process import Process

# tool (or tool and situation): GNU's text, busybox's text; {p} is the path, {e} the reason.
_TEXTS: dict[str, tuple[str, str]] = {
    "cat": ("{p}: {e}", "can't open '{p}': {e}"),
    "head": ("cannot open '{p}' for reading: {e}", "{p}: {e}"),
    "tail": ("cannot open '{p}' for reading: {e}", "can't open '{p}': {e}"),
    "tac": ("failed to open '{p}' for reading: {e}", "{p}: {e}"),
    "sed": ("can't read {p}: {e}", "{p}: {e}"),
    "sort": ("cannot read: {p}: {e}", "{p}: {e}"),
    "ls": ("cannot access '{p}': {e}", "{p}: {e}"),
    "ls.open": ("cannot open directory '{p}': {e}", "can't open '{p}': {e}"),
    "rm": ("cannot remove '{p}': {e}", "can't remove '{p}': {e}"),
    "rmdir": ("failed to remove '{p}': {e}", "'{p}': {e}"),
    "mkdir": ("cannot create directory '{p}': {e}", "can't create directory '{p}': {e}"),
    "touch": ("cannot touch '{p}': {e}", "{p}: {e}"),
    "chmod": ("cannot access '{p}': {e}", "{p}: {e}"),
    "chmod.change": ("changing permissions of '{p}': {e}", "{p}: {e}"),
    "chown": ("cannot access '{p}': {e}", "{p}: {e}"),
    "chown.change": ("changing ownership of '{p}': {e}", "{p}: {e}"),
    "cp": ("cannot stat '{p}': {e}", "can't stat '{p}': {e}"),
    "cp.open": ("cannot open '{p}' for reading: {e}", "can't open '{p}': {e}"),
    "cp.create": ("cannot create regular file '{p}': {e}", "can't create '{p}': {e}"),
    "cp.mkdir": ("cannot create directory '{p}': {e}", "can't create directory '{p}': {e}"),
    "cp.write": ("error writing '{p}': {e}", "write error: {e}"),
    "mv": ("cannot stat '{p}': {e}", "can't rename '{p}': {e}"),
    "mv.move": ("cannot move '{p}': {e}", "can't rename '{p}': {e}"),
    "ln": ("failed to create symbolic link '{p}': {e}", "{p}: {e}"),
    "ln.hard": ("failed to create hard link '{p}': {e}", "{p}: {e}"),
    "stat": ("cannot statx '{p}': {e}", "can't stat '{p}': {e}"),
    "du": ("cannot access '{p}': {e}", "{p}: {e}"),
    "find": ("'{p}': {e}", "{p}: {e}"),
    "df": ("{p}: {e}", "{p}: {e}"),
    "dd": ("failed to open '{p}': {e}", "can't open '{p}': {e}"),
    "tar": ("{p}: Cannot stat: {e}", "{p}: {e}"),
    "tar.open": ("{p}: Cannot open: {e}", "can't open '{p}': {e}"),
    "truncate": ("cannot open '{p}' for writing: {e}", "{p}: {e}"),
    "realpath": ("{p}: {e}", "{p}: {e}"),
}
_DEFAULT = ("{p}: {e}", "{p}: {e}")


def speaks_busybox(process: Process) -> bool:
    """Whether the tools are BusyBox's: those of the image, as long as the process has not changed its root."""
    container = process.container
    own_root = process.files.filesystem is container.filesystem
    program = container.program
    return own_root and program.family.dialect == "busybox" and process.name not in program.packaged_tools


def complaint(process: Process, situation: str, path: str, error: OSError) -> str:
    """The whole line a tool writes to standard error."""
    gnu, busybox = _TEXTS.get(situation, _DEFAULT)
    template = busybox if speaks_busybox(process) else gnu
    return f"{situation.partition('.')[0]}: {template.format(p=path, e=error.strerror)}\n"


async def complain(process: Process, situation: str, path: str, error: OSError) -> None:
    await process.error(complaint(process, situation, path, error))
