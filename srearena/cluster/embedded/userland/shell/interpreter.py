"""Runs shell commands: the walk over the syntax tree, on virtual time, in the shell's own process.

Pipelines, subshells, substitutions and background jobs are child processes with a copy of the shell's state, made at
the moment of the fork. Every command costs a little time, so a loop can never spin at one instant.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, NoReturn

from srearena.cluster.embedded.machine.processes.cpu_cost import FORK_COST, STEP_COST
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.machine.processes.signals import signal_name
from srearena.cluster.embedded.machine.processes.terminal import Terminal
from srearena.cluster.embedded.userland.shell import compound, lists, quoting
from srearena.cluster.embedded.userland.shell.children import Job
from srearena.cluster.embedded.userland.shell.control import BreakLoop, ExitShell, Interrupt, ReturnFunction
from srearena.cluster.embedded.userland.shell.dialect import Dialect
from srearena.cluster.embedded.userland.shell.expansion import Expander, ExpansionError
from srearena.cluster.embedded.userland.shell.parameters import SPECIAL_PARAMETERS
from srearena.cluster.embedded.userland.shell.redirection import Table
from srearena.cluster.embedded.userland.shell.scripts import script_of
from srearena.cluster.embedded.userland.shell.simple import run_simple
from srearena.cluster.embedded.userland.shell.syntax import (
    AndOr,
    ArithmeticCommand,
    Background,
    Case,
    Conditional,
    For,
    ForArithmetic,
    Function,
    Group,
    If,
    Loop,
    Node,
    Pipeline,
    Redirected,
    Sequence,
    Simple,
    Subshell,
)
from srearena.cluster.embedded.userland.shell.tokens import ShellSyntaxError
from srearena.cluster.embedded.userland.shell.variables import ReadOnlyVariable, Variables

CHARACTER_COST = 2e-8
"""Virtual seconds that expanding a character takes; felt only by those who move megabytes."""


class Shell:
    """The state of one shell process and the means to run commands in it."""

    MAX_NESTING = 20

    def __init__(self, process: Process, dialect: Dialect, name: str, arguments: list[str] | None = None) -> None:
        self.process: Process = process
        self.dialect: Dialect = dialect
        self.name = name
        self.arguments: list[str] = arguments or []
        self.variables = Variables(process.env, keep_unusable=dialect.name != "dash")
        self.functions: dict[str, Node] = {}
        self.options: set[str] = set()
        """Single letters of `set`, and `pipefail`."""
        self.traps: dict[int, str] = {}
        self.jobs: list[Job] = []
        self.status: int = 0
        self.number: int = process.pid
        """What `$$` is: the number of the first shell, also in its children."""
        self.borrowed: list[int] = []
        """Descriptors of process substitutions."""
        self.helpers: list[Process] = []
        """The processes behind them."""
        self.last_background: int | None = None
        self.line: int = 1
        self.is_script = False
        self.terminal: Terminal | None = None
        """Set where the shell is interactive."""
        self.interrupted = False
        self.expander = Expander(self)
        self.loop_depth = 0
        self.function_depth = 0
        self.nesting = 0
        """How deep eval and source are inside each other."""
        self.directory = self._starting_directory()
        """Where the shell thinks it is: with the links it went through."""
        self._export("PWD", self.directory)
        if dialect.name != "dash":
            level = process.env.get("SHLVL", "")
            self._export("SHLVL", str(int(level) + 1 if level.isdecimal() else 1))
        self.unchecked = 0
        """Inside a condition, where a failure does not end a shell under `set -e`."""
        self.substitution_status: int | None = None
        self.forked = False
        process.reaps = True

    def _starting_directory(self) -> str:
        inherited = self.process.env.get("PWD", "")
        files = self.process.files
        if inherited.startswith("/") and files.is_dir(inherited) and files.canonical(inherited) == self.process.cwd:
            return inherited
        return self.process.cwd

    def _export(self, name: str, value: str) -> None:
        self.variables.set(name, value)
        self.variables.export(name)

    @property
    def interactive(self) -> bool:
        return self.terminal is not None

    # --- variables and parameters ----------------------------------------------------------------------------

    def assign(self, name: str, value: str) -> None:
        self.variables.set(name, value)
        if "a" in self.options:
            self.variables.export(name)

    def parameter(self, name: str) -> str | None:
        """The value of a parameter of any kind; None where it is not set."""
        if name.isdigit():
            index = int(name)
            if index == 0:
                return self.name
            return self.arguments[index - 1] if index <= len(self.arguments) else None
        special = SPECIAL_PARAMETERS.get(name)
        value = None if special is None else special(self)
        return self.variables.get(name) if value is None else value

    def home(self, user: str) -> str | None:
        """The directory that `~` or `~user` stands for."""
        if not user:
            return self.variables.get("HOME")
        account = self.process.container.program.accounts(self.process.container.files).by_name(user)
        return None if account is None else account.home

    # --- messages --------------------------------------------------------------------------------------------

    async def complain(self, message: str) -> None:
        text = self.dialect.complaint(
            self.name, self.line, message, script=self.is_script, interactive=self.interactive
        )
        await self.process.error(text)

    def complaint_prefix(self, command: str) -> str:
        """What precedes a message of a builtin."""
        text = self.dialect.complaint(self.name, self.line, "", script=self.is_script, interactive=self.interactive)
        return f"{text.rstrip()} {command}: "

    async def print(self, command: str, data: bytes) -> int:
        """Write the output of a builtin; 1 where the write fails."""
        try:
            await self.process.fd(1).write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            texts = {"dash": f"{command}: I/O error", "busybox": f"write error: {error.strerror}"}
            await self.complain(texts.get(self.dialect.name, f"{command}: write error: {error.strerror}"))
            return 1
        return 0

    def message_cannot_open(self, path: str, error: OSError, *, writing: bool) -> str:
        missing = error.errno == errno.ENOENT
        if self.dialect.name == "dash":
            reason = ("Directory nonexistent" if writing else "No such file") if missing else str(error.strerror)
            return f"cannot {'create' if writing else 'open'} {path}: {reason}"
        if self.dialect.name == "busybox":
            reason = ("nonexistent directory" if writing else "no such file") if missing else str(error.strerror)
            return f"can't {'create' if writing else 'open'} {path}: {reason}"
        return f"{path}: {error.strerror}"

    def message_bad_descriptor(self, target: str) -> str:
        if not target.isdigit():
            return "Bad fd number" if self.dialect.name == "dash" else f"{target}: ambiguous redirect"
        return f"{target}: {os.strerror(errno.EBADF)}"

    # --- forks -----------------------------------------------------------------------------------------------

    def copy_for_child(self) -> Shell:
        """A copy of this shell's state for a child process, without traps, jobs and enclosing loops."""
        other = Shell.__new__(Shell)
        other.__dict__.update(self.__dict__)
        other.variables = self.variables.copy()
        other.arguments = list(self.arguments)
        other.functions = dict(self.functions)
        other.options = set(self.options)
        other.traps = {number: action for number, action in self.traps.items() if not action}
        other.jobs = []
        other.borrowed = []
        other.helpers = []
        other.expander = Expander(other)
        other.terminal = None
        other.loop_depth = 0
        other.unchecked = 0
        other.forked = True
        return other

    def fresh(self, process: Process, name: str, arguments: list[str]) -> Shell:
        """A new shell of this kind, for a script."""
        other = Shell(process, self.dialect, name, arguments)
        other.is_script = True
        return other

    def fork(self, node: Node, table: Table, *, group: int | None = None) -> Process:
        """Run `node` in a child with these descriptors. The child's state is copied now, before anything changes."""
        other = self.copy_for_child()

        async def entry(process: Process) -> int:
            other.process = process
            process.reaps = True
            await process.spend(FORK_COST)
            return await other.run_to_end(lambda: other.run(node, True))

        child = self.process.fork(entry, env=self.variables.environment, fds=table)
        if group is not None:
            child.group = group or child.pid
        return child

    async def run_to_end(self, work: Callable[[], Awaitable[int]]) -> int:
        """Run something as all that this process does: however it leaves, the EXIT trap runs and a status remains."""
        try:
            self.status = await work()
        except ExitShell as leaving:
            self.status = leaving.status
        except ReturnFunction as leaving:
            self.status = leaving.status
        except BreakLoop:
            pass
        except Interrupt:
            self.status = 130
        try:
            await self.run_pending_traps()
            action = self.traps.pop(0, "")
            if action:
                status = self.status
                await self.run_text(action)
                self.status = status
        except (ExitShell, ReturnFunction) as leaving:
            self.status = leaving.status
        except (BreakLoop, Interrupt):
            pass
        return self.status

    async def run_text(self, text: str, *, tail: bool = False) -> int:
        """Parse and run, line by line (eval, trap, source, -c)."""
        script = script_of(text, self.dialect)
        for number in count():
            try:
                command = script.command(number)
            except ShellSyntaxError as error:
                self.line = error.line
                await self._complain_syntax(error, text)
                raise ExitShell(2) from None
            if command is None:
                break
            node, is_last = command
            self.status = await self.run(node, tail and is_last)
        return self.status

    async def _complain_syntax(self, error: ShellSyntaxError, text: str) -> None:
        if self.dialect.name != "bash" or self.is_script or self.interactive:
            await self.complain(error.message)
            return
        await self.process.error(f"{self.name}: -c: line {error.line}: {error.message}\n")
        lines = text.split("\n")
        if not error.incomplete and error.line <= len(lines):
            await self.process.error(f"{self.name}: -c: line {error.line}: `{lines[error.line - 1]}'\n")

    # --- running ---------------------------------------------------------------------------------------------

    def run(self, node: Node, tail: bool = False) -> Awaitable[int]:
        """Run a command. `tail` where nothing comes after it in this process, so that it may be replaced."""
        return _HANDLERS[type(node)](self, node, tail)

    def checked(self, status: int) -> int:
        """With `set -e`, end the shell after an unchecked failure."""
        if status and "e" in self.options and not self.unchecked:
            self.status = status
            raise ExitShell(status)
        return status

    async def step(self) -> None:
        """Account for a moment's work, and see what happened in the meantime."""
        weight, self.expander.weight = self.expander.weight, 0
        await self.process.spend(STEP_COST + weight * CHARACTER_COST)
        if self.process.pending:
            await self.run_pending_traps()
        if self.interrupted:
            self.interrupted = False
            raise Interrupt

    async def expanded(self, expansion: Awaitable[Any]) -> Any:
        """The result of an expansion; one that fails ends the shell, or brings an interactive one to its prompt."""
        try:
            return await expansion
        except ExpansionError as error:
            await self.complain(error.message)
            self.status = error.status
        except ReadOnlyVariable as error:
            await self._complain_readonly(error)
        return self.give_up()

    def give_up(self) -> NoReturn:
        """Leave after an error that no command survives: a script ends, a person gets a new prompt."""
        if self.interactive:
            raise Interrupt
        raise ExitShell(self.status)

    async def refuse(self, error: ReadOnlyVariable) -> NoReturn:
        """Report an assignment to a read-only variable."""
        await self._complain_readonly(error)
        self.give_up()

    async def _complain_readonly(self, error: ReadOnlyVariable) -> None:
        texts = {"dash": f"{error.name}: is read only", "busybox": f"{error.name}: is read only"}
        await self.complain(texts.get(self.dialect.name, f"{error.name}: readonly variable"))
        self.status = 2 if self.dialect.name != "bash" else 1

    async def in_table(self, table: Table | None, work: Awaitable[int]) -> int:
        """Run something of the shell's own with other descriptors."""
        if table is None:
            return await work
        saved, self.process.fds = self.process.fds, table
        try:
            return await work
        finally:
            self.process.fds = saved

    @property
    def in_function(self) -> bool:
        return self.function_depth > 0

    # --- traps -----------------------------------------------------------------------------------------------

    def set_trap(self, number: int, action: str | None) -> None:
        """None is the default action, the empty string ignores."""
        if action is None:
            self.traps.pop(number, None)
        else:
            self.traps[number] = action
        if number == 0:
            return
        if action is None:
            self.process.handle(number, None)
        elif not action:
            self.process.ignore(number)
        else:
            self.process.handle(number, self.process.pending.append)

    async def run_pending_traps(self) -> None:
        while self.process.pending:
            number = self.process.pending.pop(0)
            action = self.traps.get(number)
            if action:
                status = self.status
                await self.run_text(action)
                self.status = status

    def describe_traps(self) -> str:
        names = {0: "EXIT"}
        return "".join(
            f"trap -- {quoting.quoted(action, always=True)} {names.get(number) or signal_name(number)}\n"
            for number, action in sorted(self.traps.items())
        )


_HANDLERS: dict[type[Any], Callable[[Shell, Any, bool], Awaitable[int]]] = {
    Sequence: lists.run_sequence,
    AndOr: lists.run_and_or,
    Background: lists.run_background,
    Pipeline: lists.run_pipeline,
    If: compound.run_if,
    Loop: compound.run_loop,
    For: compound.run_for,
    ForArithmetic: compound.run_for_arithmetic,
    Case: compound.run_case,
    Subshell: compound.run_subshell,
    Group: compound.run_group,
    Function: compound.run_function,
    Conditional: compound.run_conditional,
    ArithmeticCommand: compound.run_arithmetic,
    Redirected: compound.run_redirected,
    Simple: run_simple,
}
