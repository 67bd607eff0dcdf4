"""Runs shell commands: the walk over the syntax tree, on virtual time, in the shell's own process.

Pipelines, subshells, substitutions and background jobs are child processes with a copy of the shell's state, made at
the moment of the fork. Every command costs a little time, so a loop can never spin at one instant.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from signal import Signals
from typing import Any

from srearena.cluster.embedded.node.process import COMMAND_COST, ExecError, Process, Replaced, signal_name
from srearena.cluster.embedded.node.shell import patterns, quoting
from srearena.cluster.embedded.node.shell.builtins.registry import SPECIAL, builtin_named
from srearena.cluster.embedded.node.shell.conditions import ConditionError, evaluate_conditional
from srearena.cluster.embedded.node.shell.control import BreakLoop, ContinueLoop, ExitShell, Interrupt, ReturnFunction
from srearena.cluster.embedded.node.shell.dialect import Dialect
from srearena.cluster.embedded.node.shell.expansion import MAX_TEXT, Expander, ExpansionError
from srearena.cluster.embedded.node.shell.lexer import ShellSyntaxError
from srearena.cluster.embedded.node.shell.parser import Parser
from srearena.cluster.embedded.node.shell.redirection import RedirectionError, Table, copied, dropped, redirected
from srearena.cluster.embedded.node.shell.syntax import (
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
from srearena.cluster.embedded.node.shell.variables import ReadOnlyVariable, Variables
from srearena.cluster.embedded.node.streams import NullFile, OpenFile, Pipe
from srearena.cluster.embedded.node.terminal import Terminal

MAX_FUNCTION_DEPTH = 64
_DEATHS = {
    Signals.SIGHUP: "Hangup",
    Signals.SIGQUIT: "Quit",
    Signals.SIGKILL: "Killed",
    Signals.SIGSEGV: "Segmentation fault",
    Signals.SIGTERM: "Terminated",
    Signals.SIGABRT: "Aborted",
    Signals.SIGUSR1: "User defined signal 1",
    Signals.SIGUSR2: "User defined signal 2",
    Signals.SIGALRM: "Alarm clock",
}


@dataclass(slots=True)
class Job:
    number: int
    process: Process
    text: str


class Shell:
    """The state of one shell process and the means to run commands in it."""

    MAX_NESTING = 20

    def __init__(self, process: Process, dialect: Dialect, name: str, arguments: list[str] | None = None) -> None:
        self.process = process
        self.dialect = dialect
        self.name = name
        self.arguments = arguments or []
        self.variables = Variables(process.env)
        self.functions: dict[str, Node] = {}
        self.options: set[str] = set()
        """Single letters of `set`, and `pipefail`."""
        self.traps: dict[int, str] = {}
        self.jobs: list[Job] = []
        self.status = 0
        self.last_background: int | None = None
        self.line = 1
        self.is_script = False
        self.terminal: Terminal | None = None
        """Set where the shell is interactive."""
        self.interrupted = False
        self.expander = Expander(self)
        self.loop_depth = 0
        self._function_depth = 0
        self.nesting = 0
        """How deep eval and source are inside each other."""
        self.directory = self._starting_directory()
        """Where the shell thinks it is: with the links it went through."""
        self._unchecked = 0
        """Inside a condition, where a failure does not end a shell under `set -e`."""
        self._substitution_status: int | None = None
        self._forked = False
        process.reaps = True

    def _starting_directory(self) -> str:
        inherited = self.process.env.get("PWD", "")
        files = self.process.files
        if inherited.startswith("/") and files.is_dir(inherited) and files.canonical(inherited) == self.process.cwd:
            return inherited
        return self.process.cwd

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
        special: dict[str, Callable[[], str | None]] = {
            "?": lambda: str(self.status),
            "#": lambda: str(len(self.arguments)),
            "$": lambda: self.variables.get("$") or str(self.process.pid),
            "!": lambda: "" if self.last_background is None else str(self.last_background),
            "-": lambda: "".join(sorted(option for option in self.options if len(option) == 1)),
            "@": lambda: " ".join(self.arguments),
            "*": lambda: " ".join(self.arguments),
            "PPID": lambda: str(0 if self.process.parent is None else self.process.parent.pid),
            "RANDOM": lambda: (
                None if self.dialect.name == "dash" else str(self.process.container.random.randrange(32768))
            ),
            "LINENO": lambda: str(self.line),
            "SECONDS": lambda: (
                None if self.dialect.name != "bash" else str(int(self.process.clock.now - self.process.started_at))
            ),
            "HOSTNAME": lambda: (
                self.variables.get("HOSTNAME")
                or (self.process.container.host.hostname if self.dialect.name == "bash" else None)
            ),
            "EPOCHSECONDS": lambda: None if self.dialect.name != "bash" else str(int(self.process.clock.now)),
            "UID": lambda: None if self.dialect.name == "dash" else str(self.process.credentials.uid),
        }
        found = special.get(name)
        if found is not None:
            value = found()
            if value is not None:
                return value
        return self.variables.get(name)

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
        """Write what a builtin has to say; 1 where nobody takes it."""
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

    def twin(self) -> Shell:
        """This shell's state for a child: the same, except for traps, jobs and what loops it is in."""
        other = Shell.__new__(Shell)
        other.__dict__.update(self.__dict__)
        other.variables = self.variables.copy()
        if other.variables.get("$") is None:
            other.variables.set("$", str(self.process.pid))
        other.arguments = list(self.arguments)
        other.functions = dict(self.functions)
        other.options = set(self.options)
        other.traps = {number: action for number, action in self.traps.items() if not action}
        other.jobs = []
        other.expander = Expander(other)
        other.terminal = None
        other.loop_depth = 0
        other._unchecked = 0
        other._forked = True
        return other

    def fork(self, node: Node, table: Table, *, group: int | None = None) -> Process:
        """Run `node` in a child with these descriptors. What the child is, is fixed now, before anything changes."""
        other = self.twin()

        async def entry(process: Process) -> int:
            other.process = process
            process.reaps = True
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
        except ExitShell as leaving:
            self.status = leaving.status
        return self.status

    async def run_text(self, text: str, *, tail: bool = False) -> int:
        """Parse and run, line by line (eval, trap, source, -c)."""
        parser = Parser(text, self.dialect)
        while True:
            try:
                node = parser.next_command()
            except ShellSyntaxError as error:
                self.line = error.line
                await self.complain(error.message)
                raise ExitShell(2) from None
            if node is None:
                return self.status
            self.status = await self.run(node, tail and parser.at_end)

    # --- running ---------------------------------------------------------------------------------------------

    def run(self, node: Node, tail: bool = False) -> Awaitable[int]:
        """Run a command. `tail` where nothing comes after it in this process, so that it may be replaced."""
        return _HANDLERS[type(node)](self, node, tail)

    async def _run_sequence(self, node: Sequence, tail: bool) -> int:
        last = len(node.items) - 1
        status = 0
        for index, item in enumerate(node.items):
            status = self.status = await self.run(item, tail and index == last)
        return status

    async def _run_and_or(self, node: AndOr, tail: bool) -> int:
        self._unchecked += 1
        try:
            status = self.status = await self.run(node.left)
        finally:
            self._unchecked -= 1
        if (status == 0) == (node.operator == "&&"):
            return await self.run(node.right, tail)
        return status

    async def _run_background(self, node: Background, tail: bool) -> int:
        table = copied(self.process.fds)
        if not self.interactive and 0 in table:
            table.pop(0).release()
            table[0] = NullFile()
        try:
            child = self.fork(node.body, table, group=0 if self.interactive else None)
        except OSError as error:
            return await self._cannot_fork(error)
        finally:
            dropped(table)
        self.last_background = child.pid
        number = max((job.number for job in self.jobs), default=0) + 1
        self.jobs.append(Job(number, child, quoting.command_text(node.body)))
        if self.interactive:
            await self.process.error(f"[{number}] {child.pid}\n")
        return 0

    async def _cannot_fork(self, error: OSError) -> int:
        texts = {"dash": "Cannot fork", "busybox": f"can't fork: {error.strerror}"}
        await self.complain(texts.get(self.dialect.name, f"fork: retry: {error.strerror}"))
        raise ExitShell(2 if self.dialect.name != "bash" else 254)

    async def _run_pipeline(self, node: Pipeline, tail: bool) -> int:
        started = self.process.clock.now
        if node.negated:
            self._unchecked += 1
        try:
            if len(node.commands) == 1:
                status = await self.run(node.commands[0])
            else:
                status = await self._run_stages(node)
        finally:
            if node.negated:
                self._unchecked -= 1
        if node.timed:
            await self._report_time(self.process.clock.now - started)
        if node.negated:
            return int(status == 0)
        return status if len(node.commands) == 1 else self.checked(status)

    async def _report_time(self, seconds: float) -> None:
        minutes, rest = divmod(seconds, 60)
        rows = (("real", minutes, rest), ("user", 0, 0.0), ("sys", 0, 0.0))
        digits = 3 if self.dialect.name == "bash" else 2
        await self.process.error("\n" if self.dialect.name == "bash" else "")
        await self.process.error("".join(f"{name}\t{int(m)}m{s:.{digits}f}s\n" for name, m, s in rows))

    async def _run_stages(self, node: Pipeline) -> int:
        children: list[Process] = []
        upstream: OpenFile | None = None
        group = 0 if self.interactive else None
        for index, command in enumerate(node.commands):
            table = copied(self.process.fds)
            if upstream is not None:
                if 0 in table:
                    table.pop(0).release()
                table[0] = upstream
                upstream = None
            if index < len(node.commands) - 1:
                reader, writer = Pipe(self.process.clock).ends()
                if 1 in table:
                    table.pop(1).release()
                table[1] = writer
                upstream = reader
            try:
                child = self.fork(command, table, group=group)
            except OSError as error:
                if upstream is not None:
                    upstream.release()
                return await self._cannot_fork(error)
            finally:
                dropped(table)
            if self.interactive and not children:
                group = child.pid
            children.append(child)
        return await self._wait_for(children)

    async def _wait_for(self, children: list[Process]) -> int:
        """Wait for what runs in the foreground; the status is that of the last."""
        if self.terminal is not None:
            self.terminal.foreground = children[0]
        statuses = [await self.process.wait(child) for child in children]
        if self.terminal is not None:
            self.terminal.foreground = self.process
            if children[-1].exit_signal == Signals.SIGINT:
                raise Interrupt
        await self.report_death(children[-1])
        if "pipefail" in self.options:
            return next((status for status in reversed(statuses) if status), 0)
        return statuses[-1]

    async def report_death(self, child: Process) -> None:
        text = _DEATHS.get(Signals(child.exit_signal)) if child.exit_signal else None
        if text is None or self._forked:
            return
        if self.dialect.name == "bash":
            await self.complain(f"{child.pid:5d} {text:<23} {' '.join(child.argv)}")
        else:
            await self.process.error(f"{text}\n")

    def checked(self, status: int) -> int:
        """A failure that nobody looks at ends the shell, if it was told so."""
        if status and "e" in self.options and not self._unchecked:
            self.status = status
            raise ExitShell(status)
        return status

    # --- compound commands -----------------------------------------------------------------------------------

    async def _condition(self, node: Node) -> bool:
        self._unchecked += 1
        try:
            self.status = await self.run(node)
        finally:
            self._unchecked -= 1
        return self.status == 0

    async def _run_if(self, node: If, tail: bool) -> int:
        for condition, body in node.branches:
            if await self._condition(condition):
                return await self.run(body, tail)
        return 0 if node.otherwise is None else await self.run(node.otherwise, tail)

    async def _run_loop(self, node: Loop, tail: bool) -> int:
        status = 0
        self.loop_depth += 1
        try:
            while True:
                try:
                    if await self._condition(node.condition) is node.until:
                        return status
                    status = self.status = await self.run(node.body)
                except BreakLoop as leaving:
                    status = 0
                    if self._leaves_loop(leaving):
                        return status
        finally:
            self.loop_depth -= 1

    @staticmethod
    def _leaves_loop(leaving: BreakLoop) -> bool:
        """Whether this loop ends; outer ones get what is left of the break or continue."""
        if leaving.levels > 1:
            leaving.levels -= 1
            raise leaving
        return not isinstance(leaving, ContinueLoop)

    async def _run_for(self, node: For, tail: bool) -> int:
        self.line = node.line
        items = self.arguments if node.words is None else await self._expanded(self.expander.fields(node.words))
        status = 0
        self.loop_depth += 1
        try:
            for item in list(items):
                await self.step()
                self.assign(node.name, item)
                try:
                    status = self.status = await self.run(node.body)
                except BreakLoop as leaving:
                    status = 0
                    if self._leaves_loop(leaving):
                        break
            return status
        finally:
            self.loop_depth -= 1

    async def _run_for_arithmetic(self, node: ForArithmetic, tail: bool) -> int:
        status = 0
        empty = not "".join(getattr(part, "text", "x") for part in node.condition.parts).strip()
        await self._expanded(self.expander.arithmetic(node.start))
        self.loop_depth += 1
        try:
            while empty or await self._expanded(self.expander.arithmetic(node.condition)):
                await self.step()
                try:
                    status = self.status = await self.run(node.body)
                except BreakLoop as leaving:
                    status = 0
                    if self._leaves_loop(leaving):
                        break
                await self._expanded(self.expander.arithmetic(node.step))
            return status
        finally:
            self.loop_depth -= 1

    async def _run_case(self, node: Case, tail: bool) -> int:
        await self.step()
        subject = await self._expanded(self.expander.text(node.subject))
        falling = False
        status = 0
        for item in node.items:
            if not falling:
                for pattern in item.patterns:
                    text = await self._expanded(self.expander.pattern(pattern))
                    if patterns.compiled(text).matches(subject):
                        break
                else:
                    continue
            status = 0 if item.body is None else await self.run(item.body, tail and not item.falls_through)
            falling = item.falls_through
            if not falling:
                return status
        return status

    async def _run_subshell(self, node: Subshell, tail: bool) -> int:
        table = copied(self.process.fds)
        try:
            child = self.fork(node.body, table, group=0 if self.interactive else None)
        except OSError as error:
            return await self._cannot_fork(error)
        finally:
            dropped(table)
        return self.checked(await self._wait_for([child]))

    def _run_group(self, node: Group, tail: bool) -> Awaitable[int]:
        return self.run(node.body, tail)

    async def _run_function(self, node: Function, tail: bool) -> int:
        self.functions[node.name] = node.body
        return 0

    async def _run_conditional(self, node: Conditional, tail: bool) -> int:
        self.line = node.line
        await self.step()
        try:
            return self.checked(int(not await evaluate_conditional(self, node.words)))
        except ConditionError as error:
            await self.complain(error.message)
            return self.checked(2)

    async def _run_arithmetic(self, node: ArithmeticCommand, tail: bool) -> int:
        await self.step()
        return self.checked(int(await self._expanded(self.expander.arithmetic(node.expression)) == 0))

    async def _run_redirected(self, node: Redirected, tail: bool) -> int:
        try:
            table = await self._expanded(redirected(self, node.redirects))
        except RedirectionError as error:
            await self.complain(error.message)
            return self.checked(2 if self.dialect.name == "dash" else 1)
        saved, self.process.fds = self.process.fds, table
        try:
            return await self.run(node.body)
        finally:
            self.process.fds = saved
            dropped(table)

    # --- simple commands -------------------------------------------------------------------------------------

    async def step(self) -> None:
        """Account for a moment's work, and see what happened in the meantime."""
        await self.process.spend()
        if self.process.pending:
            await self.run_pending_traps()
        if self.interrupted:
            self.interrupted = False
            raise Interrupt

    async def _expanded(self, expansion: Awaitable[Any]) -> Any:
        """The result of an expansion; one that fails ends the shell, or brings an interactive one to its prompt."""
        try:
            return await expansion
        except ExpansionError as error:
            await self.complain(error.message)
            self.status = error.status
        except ReadOnlyVariable as error:
            await self._complain_readonly(error)
        if self.interactive:
            raise Interrupt
        raise ExitShell(self.status)

    async def _complain_readonly(self, error: ReadOnlyVariable) -> None:
        texts = {"dash": f"{error.name}: is read only", "busybox": f"{error.name}: is read only"}
        await self.complain(texts.get(self.dialect.name, f"{error.name}: readonly variable"))
        self.status = 2 if self.dialect.name != "bash" else 1

    async def _run_simple(self, node: Simple, tail: bool) -> int:
        self.line = node.line
        await self.step()
        self._substitution_status = None
        words: list[str] = await self._expanded(self.expander.fields(node.words))
        assigned: list[tuple[str, str]] = []
        for assignment in node.assignments:
            value = await self._expanded(self.expander.text(assignment.value, assignment=True))
            if assignment.append:
                value = (self.variables.get(assignment.name) or "") + value
            if not words:
                await self._expanded(self._assign(assignment.name, value))
            assigned.append((assignment.name, value))
        if "x" in self.options:
            await self._trace(words, assigned)
        function = self.functions.get(words[0]) if words else None
        builtin = builtin_named(words[0], self.dialect) if words and function is None else None
        try:
            table = None if not node.redirects else await self._expanded(redirected(self, node.redirects))
        except RedirectionError as error:
            await self.complain(error.message)
            status = 2 if self.dialect.name == "dash" else 1
            if (
                words
                and words[0] in SPECIAL
                and builtin is not None
                and not self.interactive
                and self.dialect.name != "bash"
            ):
                raise ExitShell(status) from None
            return self.checked(status)
        try:
            if not words:
                status = self._substitution_status or 0
            elif function is not None:
                status = await self._in_table(
                    table, self._with_assignments(assigned, lambda: self._call(words, function))
                )
            elif builtin is not None:
                if words[0] == "exec":
                    return await self.replace(words[1:], assigned, table)
                work = lambda: builtin(self, words[1:])  # noqa: E731
                if words[0] in SPECIAL and self.dialect.name != "bash":
                    # POSIX: assignments before a special builtin stay.
                    for name, value in assigned:
                        await self._expanded(self._assign(name, value))
                    assigned = []
                status = await self._in_table(table, self._with_assignments(assigned, work))
            else:
                status = await self.external(words, assigned, table, tail)
        finally:
            if table is not None:
                dropped(table)
        if self.process.pending:
            self.status = status
            await self.run_pending_traps()
        return self.checked(status)

    async def _assign(self, name: str, value: str) -> None:
        self.assign(name, value)

    async def _trace(self, words: list[str], assigned: list[tuple[str, str]]) -> None:
        quoted = str if self.dialect.name == "dash" else quoting.quoted
        shown = [f"{name}={quoted(value) if value else ''}" for name, value in assigned]
        shown += [quoted(word) for word in words]
        prefix = self.variables.get("PS4")
        await self.process.error(f"{'+ ' if prefix is None else prefix}{' '.join(shown)}\n")

    async def _in_table(self, table: Table | None, work: Awaitable[int]) -> int:
        """Run something of the shell's own with other descriptors."""
        if table is None:
            return await work
        saved, self.process.fds = self.process.fds, table
        try:
            return await work
        finally:
            self.process.fds = saved

    async def _with_assignments(self, assigned: list[tuple[str, str]], work: Callable[[], Awaitable[int]]) -> int:
        """Run something with variables set for its time only."""
        if not assigned:
            return await work()
        saved = [(name, self.variables.get(name), name in self.variables.exported) for name, _ in assigned]
        for name, value in assigned:
            await self._expanded(self._assign(name, value))
            self.variables.export(name)
        try:
            return await work()
        finally:
            for name, value_before, exported in saved:
                if value_before is None:
                    self.variables.unset(name)
                else:
                    self.variables.set(name, value_before)
                    self.variables.export(name, on=exported)

    async def _call(self, words: list[str], body: Node) -> int:
        if self._function_depth >= MAX_FUNCTION_DEPTH:
            await self.complain(f"{words[0]}: maximum function nesting level exceeded ({MAX_FUNCTION_DEPTH})")
            raise ExitShell(2)
        saved, self.arguments = self.arguments, words[1:]
        depth, self.loop_depth = self.loop_depth, 0
        self._function_depth += 1
        self.variables.enter_function()
        try:
            return await self.run(body)
        except ReturnFunction as leaving:
            return leaving.status
        finally:
            self.variables.leave_function()
            self._function_depth -= 1
            self.arguments = saved
            self.loop_depth = depth

    @property
    def in_function(self) -> bool:
        return self._function_depth > 0

    async def replace(self, words: list[str], assigned: list[tuple[str, str]], table: Table | None) -> int:
        """`exec`: become another program, or keep the redirections."""
        if table is not None:
            old, self.process.fds = self.process.fds, copied(table)
            dropped(old)
        if not words:
            return 0
        try:
            self.process.execute(words, {**self.variables.environment, **dict(assigned)})
        except ExecError as error:
            if error.number == errno.ENOEXEC:
                raise Replaced(self._script_entry(words, error.name)) from None
            await self.complain(self._exec_message(error, builtin="exec: "))
            raise ExitShell(error.status) from None
        return 0

    def _exec_message(self, error: ExecError, builtin: str = "") -> str:
        if error.number == errno.ENOENT and (error.searched or self.dialect.name != "bash"):
            return builtin + self.dialect.not_found.format(error.name)
        number = errno.EACCES if error.number == errno.EISDIR and self.dialect.name != "bash" else error.number
        return f"{builtin}{error.name}: {os.strerror(number)}"

    async def external(self, words: list[str], assigned: list[tuple[str, str]], table: Table | None, tail: bool) -> int:
        environment: Mapping[str, str] = self.variables.environment
        if assigned:
            environment = {**environment, **dict(assigned)}
        try:
            if tail and not self.traps and not self.interactive:
                if table is not None:
                    old, self.process.fds = self.process.fds, copied(table)
                    dropped(old)
                self.process.execute(words, environment)
            child = self.process.spawn(words, env=environment, fds=table)
        except ExecError as error:
            if error.number == errno.ENOEXEC:
                child = self.process.fork(self._script_entry(words, error.name), env=environment, fds=table)
            else:
                await self._in_table(table, self.complain(self._exec_message(error)))  # type: ignore[arg-type]
                await self.process.spend(COMMAND_COST)
                return error.status
        except OSError as error:
            return await self._cannot_fork(error)
        if self.interactive:
            child.group = child.pid
        # A child's violent end is reported where its errors went; bash alone says it on its own standard error.
        return await self._in_table(table if self.dialect.name != "bash" else None, self._wait_for([child]))

    def _script_entry(self, words: list[str], path: str) -> Callable[[Process], Any]:
        """A file without `#!` is taken for a script of this shell."""

        async def entry(process: Process) -> int:
            other = Shell(process, self.dialect, path, words[1:])
            other.is_script = True
            found = process.files.search(path, process.env.get("PATH", "")) or path
            text = process.files.read_text(found)
            return await other.run_to_end(lambda: other.run_text(text))

        return entry

    # --- substitution ----------------------------------------------------------------------------------------

    async def substitute(self, node: Node) -> str:
        """What a command prints, without its trailing newlines."""
        reader, writer = Pipe(self.process.clock).ends()
        table = copied(self.process.fds)
        if 1 in table:
            table.pop(1).release()
        table[1] = writer
        try:
            child = self.fork(node, table)
        except OSError as error:
            reader.release()
            await self._cannot_fork(error)
            return ""
        finally:
            dropped(table)
        chunks: list[bytes] = []
        size = 0
        while size < MAX_TEXT and (data := await reader.read()):
            chunks.append(data)
            size += len(data)
        reader.release()
        self._substitution_status = await self.process.wait(child)
        if self.dialect.name == "bash":
            self.status = self._substitution_status
        text = b"".join(chunks).replace(b"\0", b"").rstrip(b"\n")
        return text.decode(errors="surrogateescape")

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
    Sequence: Shell._run_sequence,
    AndOr: Shell._run_and_or,
    Background: Shell._run_background,
    Pipeline: Shell._run_pipeline,
    If: Shell._run_if,
    Loop: Shell._run_loop,
    For: Shell._run_for,
    ForArithmetic: Shell._run_for_arithmetic,
    Case: Shell._run_case,
    Subshell: Shell._run_subshell,
    Group: Shell._run_group,
    Function: Shell._run_function,
    Conditional: Shell._run_conditional,
    ArithmeticCommand: Shell._run_arithmetic,
    Redirected: Shell._run_redirected,
    Simple: Shell._run_simple,
}
