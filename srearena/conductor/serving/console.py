"""The interactive console: choose a problem, investigate with kubectl, submit, and see the verdicts.

A person works like an agent: the same episode, the same identity in the cluster, the same verdicts. Lines that are not
a command of the console are run by the user's shell, with KUBECONFIG set to the on-call engineer's; what they print is
part of the transcript.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from time import monotonic
from typing import Any

from srearena.conductor.actions.parsing import parse
from srearena.conductor.actions.toolbox import Toolbox
from srearena.conductor.conductor import Conductor
from srearena.conductor.episode.episode import Episode, public_facts
from srearena.conductor.episode.limits import Limits
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.errors import ArenaError, BadAction
from srearena.conductor.results.store import folder_of
from srearena.conductor.serving.console_words import kubectl_completions, suggestion
from srearena.conductor.serving.shell_commands import run_line
from srearena.config import Config
from srearena.errors import SreArenaError
from srearena.utils.columns import columns

PROMPT = "(srearena) $ "
_HELP = """\
start ID      prepare a problem                    list [WORD]   list problems
status        question, time and actions so far    submit(...)   answer the current question
kubectl ...   investigate and repair               help          this text
exit          end the console                      Tab           completes ids, names and objects
Also get_logs("ns", "service"), get_metrics("promql"), get_traces("service"), get_alerts(), wait(60).
Anything else is run by your shell; KUBECONFIG is set to the on-call engineer's."""
_COMMANDS = ("start", "list", "status", "help", "exit", "quit", "kubectl", "submit(")


class Console:
    """One conductor, driven by lines of text."""

    def __init__(
        self,
        say: Callable[[str], None] = print,
        *,
        seed: int = 0,
        in_process: bool = True,
        config: Config | None = None,
    ) -> None:
        self._say = say
        limits = Limits(steps=None, wall_seconds=None, virtual_seconds=None)
        spec = EpisodeSpec(seed=seed, limits=limits, in_process=in_process, config=config)
        self._conductor = Conductor(spec, say=lambda text: say(f"... {text}"))
        self._conductor.agent_name = "human"

    @property
    def episode(self) -> Episode | None:
        return self._conductor.episode

    def loop(self, read: Callable[[str], str] = input) -> None:
        """Read and handle lines until the end of input."""
        self._say("SREArena. `list` lists problems, `start ID` starts one, `help` lists the commands.")
        self._complete()
        try:
            while True:
                try:
                    line = read(PROMPT)
                except EOFError:
                    return
                except KeyboardInterrupt:
                    self._say("")
                    continue
                if not self.handle(line):
                    return
        finally:
            self._conductor.abandon()

    def handle(self, line: str) -> bool:
        """Handle one line; False when it ends the console."""
        words = line.split()
        if not words:
            return True
        command = words[0]
        try:
            if command in ("exit", "quit"):
                return False
            if command == "help":
                self._say(_HELP)
            elif command == "list":
                self._list(words[1] if len(words) > 1 else "")
            elif command == "start":
                self._start(words[1:])
            elif command == "status":
                self._status()
            elif any(line.strip().startswith(f"{name}(") for name in Toolbox.names()):
                self._act(line.strip())
            else:
                self._shell(line)
        except SreArenaError as problem:
            self._say(f"Error: {problem}")
        except KeyboardInterrupt:
            self._say("(interrupted)")
        return True

    def _list(self, word: str) -> None:
        problems = self._conductor.problems
        rows = [("ID", "APPLICATION", "LEVEL", "DIFFICULTY")]
        for name in problems.get_problem_ids():
            if word in name:
                summary = problems.get_problem(name).summary()
                rows.append((name, summary.application, summary.level, summary.difficulty))
        self._say("\n".join(columns(rows)) if len(rows) > 1 else f"no problem id contains {word!r}")

    def _start(self, words: list[str]) -> None:
        if len(words) != 1:
            raise ArenaError("start takes one id: start k8s_target_port-misconfig")
        began = monotonic()
        self._conductor.init_problem(words[0])
        episode = self._current()
        facts = columns([(name, _readable(value)) for name, value in public_facts(episode.problem.app).items()])
        self._say("\n".join([*facts, "", f"Ready after {monotonic() - began:.1f} s.", episode.question]))

    def _current(self) -> Episode:
        if self.episode is None:
            raise ArenaError("no problem is running: `start ID` starts one")
        return self.episode

    def _status(self) -> None:
        episode = self._current()
        episode.within_limits()
        self._say(f"{episode.question}\n{episode.usage.wall_seconds:.0f} s, {episode.usage.steps} actions so far")

    def _act(self, line: str) -> None:
        episode = self._current()
        with contextlib.suppress(BadAction):
            parse(line, Toolbox.names())  # the episode reports the error
        self._say(episode.act(line))
        if episode.finished:
            self._grade(episode)

    def _grade(self, episode: Episode) -> None:
        self._say("Grading ...")
        ending = episode.grade()
        for record in episode.records:
            verdict = record.verdict
            if verdict is not None:
                self._say(
                    f"  {record.name}: {'passed' if verdict.passed else 'failed'} after {record.wall_seconds:.0f} s"
                )
                for reason in verdict.reasons:
                    self._say(f"      {reason}")
        self._say(f"Outcome: {ending.outcome}")
        document = self._conductor.finish(episode)
        self._conductor.close()
        run = self._conductor.run_folder(document["session"])
        self._say(f"Result: {folder_of(run, document['problem'], document['trial'])}")
        self._say(f"View it with `srearena view {run.name}`.")

    def _shell(self, line: str) -> None:
        environment = self._environment()
        if environment is None and line.split()[0] == "kubectl":
            raise ArenaError("no problem is running: `start ID` starts one")
        meant = suggestion(line, _COMMANDS + tuple(Toolbox.names()))
        if meant:
            raise ArenaError(f"there is no command {line.split()[0].partition('(')[0]!r}: did you mean {meant}?")
        began = monotonic()
        # The line is what the person at this terminal typed; no agent and no file reaches it.
        status, output = run_line(line, environment or os.environ, self._say)
        if self.episode is not None:
            seconds = round(monotonic() - began, 3)
            self.episode.session.note("command", text=line, status=status, output=output, seconds=seconds)
            if line.startswith("kubectl "):
                self.episode.requests.performed(
                    f"exec_shell({json.dumps(line)})", self.episode.session.lines - 1, seconds
                )

    def _environment(self) -> dict[str, str] | None:
        """The environment of commands on the running system."""
        if self.episode is None or self.episode.kubeconfig is None:
            return None
        return {**os.environ, "KUBECONFIG": str(self.episode.kubeconfig)}

    # Completion

    def completions(self, line: str) -> list[str]:
        """Completions for the last word of a line."""
        words = line.split(" ")
        last = words[-1]
        if len(words) == 1:
            choices = [*_COMMANDS, *(f"{name}(" for name in Toolbox.names())]
        elif words[0] == "start":
            choices = self._conductor.problems.get_problem_ids()
        elif words[0] == "kubectl":
            choices = kubectl_completions(line, self._environment())
        else:
            choices = []
        return sorted({choice for choice in choices if choice.startswith(last)})

    def _complete(self) -> None:
        try:
            import readline
        except ImportError:
            return
        readline.set_completer_delims(" ")
        readline.set_completer(lambda text, state: [*self.completions(readline.get_line_buffer()), None][state])
        readline.parse_and_bind("tab: complete")


def _readable(value: Any) -> str:
    """A fact of an application in one line."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_readable(one)}" for key, one in value.items())
    return "; ".join(map(_readable, value)) if isinstance(value, list | tuple) else str(value)
