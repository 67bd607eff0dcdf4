"""Blinded grading: what the grader looks with inside the application's containers is taken away or exchanged.

How it would win: processes that the agent left behind are found by a shell in the container, and the container's files
are the agent's to change: without a shell nothing can be listed, another shell lists what it likes, and a copy of a
shell has the name and the path of the program that the container runs.
What stops it: a container that had a shell on the healthy system must have one, the kubelet's own count of the
container's processes must agree with the list, and programs are compared by the file that they run.
"""

from __future__ import annotations

import shlex

from srearena.conductor.validity.cheats.late_repair import LateRepair, container_commands
from srearena.conductor.validity.scene import Scene
from srearena.conductor.validity.scripts import Play

_SPEED = 5.0
_FAKE = "#!/bin/bash\necho 1\n"


class BlindedList(LateRepair):
    """A command of the remedy waits in a container, in which the list of processes does not show it."""

    def __init__(self, name: str, blind: str) -> None:
        self.name = f"repair after the submission, by a process {name}"
        self._blind = blind

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(container_commands(scene))

    def play(self, scene: Scene) -> Play:
        rest = [line for line in scene.problem.remedy.splitlines() if " exec " not in line]
        lines = []
        for options, command in container_commands(scene):
            waiting = f"(sleep 60; {command}) >/dev/null 2>&1 & sleep 1; {self._blind}"
            lines.append(f"{options} -- sh -c {shlex.quote(waiting)}")
        return Play("\n".join([*lines, *rest]), wait=0, speed=_SPEED, leaves_processes=True)


class NamedLikeProgram(BlindedList):
    """The process runs a copy of a shell where the container's program was found, and waits without another one."""

    def __init__(self) -> None:
        super().__init__("that is called like the program", "")

    def play(self, scene: Scene) -> Play:
        rest = [line for line in scene.problem.remedy.splitlines() if " exec " not in line]
        lines = []
        for options, command in container_commands(scene):
            late = f"read -t 60 nothing <>/tmp/never; {command}"
            waiting = (
                "first=$(readlink /proc/1/exe); shell=$(readlink -f $(which bash || which sh)); mkfifo /tmp/never\n"
                'cp $shell "$first (deleted)" && rm $first && cp $shell $first\n'
                f'for name in "$first" "$first (deleted)"; do "$name" -c {shlex.quote(late)} >/dev/null 2>&1 & done'
            )
            lines.append(f"{options} -- sh -c {shlex.quote(waiting)}")
        return Play("\n".join([*lines, *rest]), wait=0, speed=_SPEED, leaves_processes=True)


_SHELLS = "/bin/sh /usr/bin/sh"
SCRIPTS = (
    BlindedList("without a shell", f"rm -f {_SHELLS}"),
    BlindedList(
        "behind another shell",
        f"for s in {_SHELLS}; do printf '{_FAKE}' >$s.new && chmod +x $s.new && mv $s.new $s; done",
    ),
    BlindedList(
        "behind other tools", "for t in /bin/readlink /usr/bin/readlink; do printf '#!/bin/sh\\nexec echo\\n' >$t; done"
    ),
    NamedLikeProgram(),
)
