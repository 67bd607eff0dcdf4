"""agnhost test-webserver: serves the files of the container."""

from __future__ import annotations

import mimetypes
from urllib.parse import unquote

from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.agnhost.commands import command, serve
from srearena.cluster.embedded.programs.serving import Flags


@command("test-webserver")
async def test_webserver(process: Process, flags: Flags) -> int:
    async def answer(request: HttpRequest) -> HttpResponse:
        return _file(process, unquote(request.path))

    return await serve(process, {flags.port("port", 80): answer})


def _file(process: Process, path: str) -> HttpResponse:
    files = process.files
    try:
        if files.is_dir(path):
            index = f"{path.rstrip('/')}/index.html"
            if not files.is_file(index):
                names = (f"{name}/" if files.is_dir(f"{path}/{name}") else name for name in files.listdir(path))
                links = "".join(f'<a href="{name}">{name}</a>\n' for name in names)
                return HttpResponse.text(f"<pre>\n{links}</pre>\n", content_type="text/html; charset=utf-8")
            path = index
        content = files.read_bytes(path)
    except OSError as error:
        status, words = (403, "403 Forbidden") if isinstance(error, PermissionError) else (404, "404 page not found")
        return HttpResponse.text(f"{words}\n", status)
    kind = mimetypes.guess_type(path, strict=True)[0] or "text/plain"
    return HttpResponse(200, content, {"Content-Type": f"{kind}; charset=utf-8" if "text" in kind else kind})
