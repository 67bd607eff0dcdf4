"""The interactive console: choose a problem, investigate with kubectl, submit, and see the verdicts.

A person works like an agent: the same episode, the same identity in the cluster, the same verdicts. Lines that are not
a command of the console are run by the user's shell, with KUBECONFIG set to the on-call engineer's.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable
from time import monotonic

from srearena.conductor.actions.parsing import parse
from srearena.conductor.actions.toolbox import Toolbox
from srearena.conductor.conductor import Conductor
from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.limits import Limits
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.errors import ArenaError, BadAction
from srearena.config import Config
from srearena.errors import SreArenaError

PROMPT = "(srearena) $ "
_HELP = """\
start ID      prepare a problem                    list [WORD]   list problems
status        question, time and actions so far    submit(...)   answer the current question
kubectl ...   investigate and repair               help          this text
exit          end the console
Also get_logs("ns", "service"), get_metrics("promql"), get_traces("service"), get_alerts(), wait(60).
Anything else is run by your shell; KUBECONFIG is set to the on-call engineer's."""
_COMMANDS = ("start", "list", "status", "help", "exit", "quit", "kubectl", "submit(")
_KUBECTL_VERBS = ("get", "describe", "logs", "exec", "patch", "scale", "rollout", "delete", "apply", "edit", "top")


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
        names = [name for name in self._conductor.problems.get_problem_ids() if word in name]
        self._say("\n".join(names) or f"no problem id contains {word!r}")

    def _start(self, words: list[str]) -> None:
        if len(words) != 1:
            raise ArenaError("start takes one id: start k8s_target_port-misconfig")
        began = monotonic()
        description, _, _ = self._conductor.init_problem(words[0])
        assert self.episode is not None
        self._say(f"{description}\n\nReady after {monotonic() - began:.1f} s.\n{self.episode.question}")

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
        self._conductor.finish(episode)
        self._conductor.close()

    def _shell(self, line: str) -> None:
        environment = dict(os.environ)
        if self.episode is not None and self.episode.kubeconfig is not None:
            environment["KUBECONFIG"] = str(self.episode.kubeconfig)
        elif line.split()[0] == "kubectl":
            raise ArenaError("no problem is running: `start ID` starts one")
        # The line is what the person at this terminal typed; no agent and no file reaches it.
        done = subprocess.run(line, shell=True, env=environment, capture_output=True, text=True, check=False)
        self._say((done.stdout + done.stderr).rstrip())
        if self.episode is not None:
            self.episode.session.note("command", text=line, status=done.returncode)

    # Completion

    def completions(self, line: str) -> list[str]:
        """Completions for the last word of a line."""
        words = line.split(" ")
        last = words[-1]
        if len(words) == 1:
            choices = [*_COMMANDS, *(f"{name}(" for name in Toolbox.names())]
        elif words[0] == "start":
            choices = self._conductor.problems.get_problem_ids()
        elif words[0] == "kubectl" and len(words) == 2:
            choices = list(_KUBECTL_VERBS)
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
