"""Python images: the built-in web server for real, scripts as far as one can tell what they do."""

from __future__ import annotations

import html
import posixpath
import re
from signal import Signals
from typing import ClassVar

from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import PATH, Program
from srearena.cluster.embedded.programs.generic import run_unmodelled
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.timestamps import stamp
from srearena.cluster.embedded.programs.web.web_root import Webroot

_PRINT = re.compile(r"""print\(\s*(?:"([^"\\]*)"|'([^'\\]*)')\s*(?:,\s*(?:flush|file)\s*=\s*[\w.]+)?\s*\)""")
_SLEEP = re.compile(r"(?:time\.)?sleep\(\s*(\d+(?:\.\d+)?)\s*\)")
_EXIT = re.compile(r"(?:sys\.)?exit\(\s*(\d*)\s*\)")
_RAISE = re.compile(r"""raise\s+(\w+)(?:\(\s*(?:"([^"]*)"|'([^']*)')?\s*\))?""")


_IMPORT = re.compile(r"(?:import|from)\s.*")
_PIP = "25.3"
_RETRIES = 5
_RETRY_SECONDS = 2.0


@program("python", "bitnami/python", "jupyter/base-notebook", "tiangolo/uvicorn-gunicorn-fastapi")
class Python(Program):
    cmd = ("python3",)
    env: ClassVar = {"PATH": PATH, "LANG": "C.UTF-8"}
    tools = ("ps", "curl", "wget", "kill", "pgrep", "pkill", "top", "free", "uptime")
    binaries = ("/usr/local/bin/python", "/usr/local/bin/python3", "/usr/local/bin/pip")
    idle_cpu = 0.0
    idle_memory = 12 * 1024 * 1024
    default_version = "3.14.0"

    async def run(self, process: Process) -> int:
        args = process.argv[1:]
        process.set_memory(self.idle_memory)
        process.handle(Signals.SIGINT, lambda number: process.end(0))
        while args and args[0] in ("-u", "-B", "-E", "-s", "-S", "-O", "-I"):
            args = args[1:]
        if process.binary == "pip":
            return await self._pip(process, args)
        if not args:
            return await self._from_stdin(process)
        if args[0] in ("-V", "--version"):
            await process.write(f"Python {self.version}\n")
            return 0
        if args[0] == "-m":
            return await self._module(process, args[1:])
        if args[0] == "-c":
            return await self._text(process, args[1] if len(args) > 1 else "", "<string>")
        return await self._script(process, args[0])

    async def _from_stdin(self, process: Process) -> int:
        data = b""
        while chunk := await process.read():
            data += chunk
        return await self._text(process, data.decode(errors="replace"), "<stdin>")

    async def _script(self, process: Process, path: str) -> int:
        full = posixpath.join(process.cwd, path)
        if process.files.is_dir(full):
            full = posixpath.join(full, "__main__.py")
        try:
            text = process.files.read_text(full)
        except OSError as error:
            await process.error(f"{process.name}: can't open file '{full}': [Errno {error.errno}] {error.strerror}\n")
            return 2
        return await self._text(process, text, full)

    async def _text(self, process: Process, text: str, name: str) -> int:
        """Do what can be read off a simple script; what else there is in it is not modelled."""
        statements = [
            s.strip()
            for line in text.splitlines()
            for s in line.split(";")
            if s.strip() and not s.strip().startswith("#")
        ]
        if not all(_is_modelled(statement) for statement in statements):
            return await run_unmodelled(process, memory=self.idle_memory * 2)
        for index, statement in enumerate(statements, 1):
            await process.spend()
            printed, slept = _PRINT.fullmatch(statement), _SLEEP.fullmatch(statement)
            ended, raised = _EXIT.fullmatch(statement), _RAISE.fullmatch(statement)
            if printed is not None:
                await process.write(f"{printed.group(1) if printed.group(1) is not None else printed.group(2)}\n")
            elif slept is not None:
                await process.sleep(float(slept.group(1)))
            elif ended is not None:
                return int(ended.group(1) or 0) & 0xFF
            elif raised is not None:
                message = raised.group(2) or raised.group(3) or ""
                await process.error(
                    f'Traceback (most recent call last):\n  File "{name}", line {index}, in <module>\n'
                    f"{raised.group(1)}{': ' + message if message else ''}\n"
                )
                return 1
        return 0

    async def _module(self, process: Process, words: list[str]) -> int:
        name = words[0] if words else ""
        if name == "pip":
            return await self._pip(process, words[1:])
        if name != "http.server":
            if name in ("flask", "uvicorn", "gunicorn", "hypercorn", "celery", "pytest", "jupyter"):
                return await run_unmodelled(process, memory=self.idle_memory * 3)
            await process.error(f"/usr/local/bin/{process.name}: No module named {name}\n")
            return 1
        port, address, folder = 8000, "0.0.0.0", process.cwd
        rest = words[1:]
        while rest:
            word = rest.pop(0)
            if word in ("-b", "--bind") and rest:
                address = rest.pop(0)
            elif word in ("-d", "--directory") and rest:
                folder = rest.pop(0)
            elif word.isdigit():
                port = int(word)
        return await self._http_server(process, port, address, folder)

    async def _pip(self, process: Process, words: list[str]) -> int:
        """Nothing leads out of the cluster, and so to no package index."""
        command, wanted = words[0] if words else "", [word for word in words[1:] if not word.startswith("-")]
        if command in ("-V", "--version"):
            release = ".".join(self.version.split(".")[:2])
            folder = f"/usr/local/lib/python{release}/site-packages/pip"
            await process.write(f"pip {_PIP} from {folder} (python {release})\n")
            return 0
        if command in ("list", "freeze"):
            await process.write(f"Package Version\n------- -------\npip     {_PIP}\n" if command == "list" else "")
            return 0
        if command not in ("install", "download") or not wanted:
            what = f'unknown command "{command}"' if command else "You must give a command (see 'pip --help')"
            await process.error(f"ERROR: {what}\n")
            return 1
        cause = "Failed to establish a new connection: [Errno -3] Temporary failure in name resolution"
        for left in reversed(range(_RETRIES)):
            await process.sleep(_RETRY_SECONDS)
            await process.error(
                f"WARNING: Retrying (Retry(total={left}, connect=None, read=None, redirect=None, status=None)) after "
                f"connection broken by 'NewConnectionError('{cause}')': /simple/{wanted[0]}/\n"
            )
        await process.error(
            f"ERROR: Could not find a version that satisfies the requirement {wanted[0]} (from versions: none)\n"
            f"ERROR: No matching distribution found for {wanted[0]}\n"
        )
        return 1

    async def _http_server(self, process: Process, port: int, address: str, folder: str) -> int:
        files = Webroot(process)

        async def answer(request: HttpRequest) -> HttpResponse:
            await process.spend(0.0005)
            response = _served(process, files, folder, request)
            when = stamp(process, "%d/%b/%Y %H:%M:%S")
            if response.status == 404:
                await process.error(f"{request.peer} - - [{when}] code 404, message File not found\n")
            line = f'"{request.method} {request.target} {request.version}"'
            await process.error(f"{request.peer} - - [{when}] {line} {response.status} -\n")
            response.headers = {"Server": f"SimpleHTTP/0.6 Python/{self.version}", **response.headers}
            return response

        try:
            process.container.namespace.listen(process, port, address=address, http=answer)
        except OSError as error:
            await process.error(
                f"Traceback (most recent call last):\nOSError: [Errno {error.errno}] {error.strerror}\n"
            )
            return 1
        # As process 1 it has no handler for SIGTERM, so only SIGKILL (or ^C) ends it.
        await process.write(f"Serving HTTP on {address} port {port} (http://{address}:{port}/) ...\n")
        await process.catch(Signals.SIGINT).wait()
        await process.write("\nKeyboard interrupt received, exiting.\n")
        return 0


def _is_modelled(statement: str) -> bool:
    return any(pattern.fullmatch(statement) for pattern in (_PRINT, _SLEEP, _EXIT, _RAISE, _IMPORT))


def _served(process: Process, files: Webroot, folder: str, request: HttpRequest) -> HttpResponse:
    found = files.find(folder, request.path, ("index.html", "index.htm"))
    if found.response is not None:
        return found.response
    if process.files.is_dir(found.path):
        try:
            names = process.files.listdir(found.path)
        except OSError:
            return HttpResponse.text("No permission to list directory\n", 404)
        items = "".join(f'<li><a href="{html.escape(name)}">{html.escape(name)}</a></li>\n' for name in names)
        title = f"Directory listing for {html.escape(request.path)}"
        head = f"<!DOCTYPE HTML>\n<html>\n<head><title>{title}</title></head>\n<body>\n<h1>{title}</h1>\n"
        body = f"{head}<ul>\n{items}</ul>\n</body>\n</html>\n"
        return HttpResponse(200, body.encode(), {"Content-Type": "text/html; charset=utf-8"})
    return HttpResponse(
        404,
        b"<h1>Error response</h1><p>Error code: 404</p><p>Message: File not found.</p>\n",
        {"Content-Type": "text/html;charset=utf-8"},
    )
