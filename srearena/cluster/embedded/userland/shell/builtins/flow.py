"""Builtins that decide what runs next: loops, functions, eval, source, exit, command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.cluster.embedded.userland.shell.builtins.registry import builtin, builtin_named
from srearena.cluster.embedded.userland.shell.control import BreakLoop, ContinueLoop, ExitShell, ReturnFunction
from srearena.cluster.embedded.userland.shell.simple import external, replace

if TYPE_CHECKING:
    from srearena.cluster.embedded.userland.shell.interpreter import Shell

RESERVED = frozenset(
    ("if", "then", "elif", "else", "fi", "while", "until", "do", "done", "for", "case", "esac", "{", "}", "!", "in")
)


async def number_argument(shell: Shell, name: str, args: list[str], default: int) -> int:
    """A builtin's numeric argument; a bad one ends the shell, as it does for special builtins."""
    if not args:
        return default
    text = args[0].removeprefix("-") if shell.dialect.name == "bash" else args[0]
    if text.isdigit():
        return int(args[0])
    texts = {"bash": f"{name}: {args[0]}: numeric argument required", "dash": f"{name}: Illegal number: {args[0]}"}
    await shell.complain(texts.get(shell.dialect.name, f"{name}: Illegal number: {args[0]}"))
    raise ExitShell(2)


@builtin(":", "true")
async def nothing(shell: Shell, args: list[str]) -> int:
    return 0


@builtin("false")
async def fail(shell: Shell, args: list[str]) -> int:
    return 1


@builtin("break")
async def break_loop(shell: Shell, args: list[str]) -> int:
    levels = await number_argument(shell, "break", args, 1)
    if shell.loop_depth == 0:
        return 0
    raise BreakLoop(min(max(1, levels), shell.loop_depth))


@builtin("continue")
async def continue_loop(shell: Shell, args: list[str]) -> int:
    levels = await number_argument(shell, "continue", args, 1)
    if shell.loop_depth == 0:
        return 0
    raise ContinueLoop(min(max(1, levels), shell.loop_depth))


@builtin("return")
async def return_function(shell: Shell, args: list[str]) -> int:
    status = await number_argument(shell, "return", args, shell.status)
    raise ReturnFunction(status & 0xFF if shell.dialect.name == "bash" else status)


@builtin("exit")
async def exit_shell(shell: Shell, args: list[str]) -> int:
    raise ExitShell(await number_argument(shell, "exit", args, shell.status))


@builtin("eval")
async def evaluate(shell: Shell, args: list[str]) -> int:
    text = " ".join(args)
    if not text.strip():
        return 0
    shell.nesting += 1
    try:
        if shell.nesting > shell.MAX_NESTING:
            await shell.complain("eval: maximum eval nesting level exceeded")
            raise ExitShell(2)
        return await shell.run_text(text)
    finally:
        shell.nesting -= 1


@builtin(".")
async def dot(shell: Shell, args: list[str]) -> int:
    if not args:
        await shell.complain(".: filename argument required")
        return 2
    files = shell.process.files
    path = args[0]
    if "/" not in path:
        found = files.search(path, shell.variables.get("PATH") or "")
        path = found if found is not None else f"./{path}"
    try:
        text = files.read_text(path)
    except OSError as error:
        texts = {
            "dash": f".: cannot open {args[0]}: No such file",
            "busybox": f".: can't open '{args[0]}': {error.strerror}",
        }
        await shell.complain(texts.get(shell.dialect.name, f"{args[0]}: {error.strerror}"))
        if shell.interactive or shell.dialect.name == "bash":
            return 1
        raise ExitShell(2) from None
    saved = shell.arguments
    if len(args) > 1:
        shell.arguments = args[1:]
    shell.nesting += 1
    try:
        if shell.nesting > shell.MAX_NESTING:
            await shell.complain(f"{args[0]}: maximum source nesting level exceeded")
            raise ExitShell(2)
        shell.status = 0
        return await shell.run_text(text)
    except ReturnFunction as leaving:
        return leaving.status
    finally:
        shell.nesting -= 1
        shell.arguments = saved


@builtin("source", extended=True)
async def source(shell: Shell, args: list[str]) -> int:
    return await dot(shell, args)


@builtin("exec")
async def exec_program(shell: Shell, args: list[str]) -> int:
    """`exec` as an argument of `command`; on its own the interpreter handles it, with its redirections."""
    return await replace(shell, args, [], None)


@builtin("command")
async def command(shell: Shell, args: list[str]) -> int:
    if args and args[0] in ("-v", "-V"):
        status = 0
        for name in args[1:]:
            status = max(status, await _describe(shell, name, verbose=args[0] == "-V"))
        return status
    if args and args[0] == "-p":
        args = args[1:]
    if not args:
        return 0
    found = builtin_named(args[0], shell.dialect)
    if found is not None:
        return await found(shell, args[1:])
    return await external(shell, args, [], None, tail=False)


@builtin("builtin", extended=True)
async def run_builtin(shell: Shell, args: list[str]) -> int:
    found = builtin_named(args[0], shell.dialect) if args else None
    if found is None:
        await shell.complain(f"builtin: {args[0] if args else ''}: not a shell builtin")
        return 1
    return await found(shell, args[1:])


@builtin("type")
async def show_type(shell: Shell, args: list[str]) -> int:
    if args[:1] == ["-t"] and shell.dialect.extended:
        return await _kinds(shell, args[1:])
    status = 0
    for name in args:
        status = max(status, await _describe(shell, name, verbose=True))
    return status


async def _kinds(shell: Shell, names: list[str]) -> int:
    for name in names:
        if name in RESERVED:
            kind = "keyword"
        elif name in shell.functions:
            kind = "function"
        elif builtin_named(name, shell.dialect) is not None:
            kind = "builtin"
        elif shell.process.files.search(name, shell.variables.get("PATH") or "") is not None:
            kind = "file"
        else:
            return 1
        await shell.process.write(f"{kind}\n")
    return 0


async def _describe(shell: Shell, name: str, *, verbose: bool) -> int:
    if name in RESERVED:
        text = f"{name} is a shell keyword" if verbose else name
    elif name in shell.functions:
        kind = "is a function" if shell.dialect.name == "bash" else "is a shell function"
        text = f"{name} {kind}" if verbose else name
    elif builtin_named(name, shell.dialect) is not None:
        text = f"{name} is a shell builtin" if verbose else name
    else:
        path = shell.process.files.search(name, shell.variables.get("PATH") or "")
        if path is None or not shell.process.files.may(path, 1) or shell.process.files.is_dir(path):
            if verbose:
                message = f"{name}: not found\n"
                if shell.dialect.name == "bash":
                    await shell.complain(f"type: {name}: not found")
                elif shell.dialect.name == "dash":
                    await shell.process.write(message)
                else:
                    await shell.process.error(f"sh: {name}: not found\n")
            return 1 if shell.dialect.name == "bash" else 127
        text = f"{name} is {path}" if verbose else path
    await shell.process.write(f"{text}\n")
    return 0


@builtin("hash", "alias", "unalias")
async def accept(shell: Shell, args: list[str]) -> int:
    """Nothing is cached and nothing is aliased here, so there is nothing to do."""
    return 0


@builtin("times")
async def times(shell: Shell, args: list[str]) -> int:
    used = shell.process.container.meter.cpu_seconds()
    minutes, seconds = divmod(used, 60)
    row = f"{int(minutes)}m{seconds:.6f}s 0m0.000000s\n"
    await shell.process.write(row + "0m0.000000s 0m0.000000s\n")
    return 0
