"""Small images of Kubernetes' own tests: nautilus, kitten (web pages), nonewprivs (set-user-ID), web servers."""

from __future__ import annotations

from typing import ClassVar

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.agnhost.program import Agnhost
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.web.httpd import Httpd
from srearena.cluster.embedded.programs.web.nginx import Nginx

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


@program("e2e-test-images/httpd")
class TestedHttpd(Httpd):
    """Their base images are those of Alpine, which their own tags do not say."""

    base = "alpine"
    follows_tag = False


@program("e2e-test-images/nginx")
class TestedNginx(Nginx):
    base = "alpine"
    follows_tag = False
