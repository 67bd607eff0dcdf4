"""Small images of Kubernetes' own tests: nautilus and kitten (web pages), nonewprivs (a set-user-ID program)."""

from __future__ import annotations

from typing import ClassVar

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.agnhost.program import Agnhost
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program

_JPEG = "\ufffd\ufffdJFIF"


@program("nautilus")
class Nautilus(Agnhost):
    cmd = ("test-webserver",)
    files: ClassVar = {"/data.json": '{\n  "image": "nautilus.jpg"\n}\n', "/nautilus.jpg": _JPEG}


@program("kitten")
class Kitten(Agnhost):
    cmd = ("test-webserver",)
    files: ClassVar = {"/data.json": '{\n  "image": "kitten.jpg"\n}\n', "/kitten.jpg": _JPEG}


@program("nonewprivs")
class NoNewPrivileges(Program):
    """Tells its effective user: root, by the set-user-ID bit of its file, unless the container forbids that."""

    cmd = ("nnp",)
    base = "alpine"
    follows_tag = False
    binaries = ("/usr/local/bin/nnp",)

    async def run(self, process: Process) -> int:
        uid = process.credentials.uid if process.container.config.no_new_privileges else 0
        await process.write(f"Effective uid: {uid}\n")
        return 0
