"""Where an awk program prints to: standard output, in larger pieces, and files that stay open."""

from __future__ import annotations

from srearena.cluster.embedded.machine.files.streams import OpenFile
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.awk.lexer import AwkError


class Outputs:
    def __init__(self, process: Process) -> None:
        self.process = process
        self.files: dict[str, OpenFile] = {}
        self._pending: list[str] = []

    @property
    def is_much(self) -> bool:
        """Whether it is time to write what is pending."""
        return len(self._pending) > 256

    def write(self, text: str) -> None:
        self._pending.append(text)

    async def write_to(self, path: str, text: str, redirect: str) -> None:
        if redirect == "|":
            raise AwkError("fatal: redirection not allowed in sandbox mode")
        if path in ("/dev/stderr", "/dev/fd/2"):
            await self.flush()
            await self.process.error(text)
            return
        if path in ("/dev/stdout", "-"):
            self.write(text)
            return
        file = self.files.get(path)
        if file is None:
            try:
                file = self.files[path] = self.process.open(path, "a" if redirect == ">>" else "w")
            except OSError as error:
                raise AwkError(f"cannot open {path} ({error.strerror})") from None
        await file.write(text.encode(errors="surrogateescape"))

    async def flush(self) -> None:
        if self._pending:
            text, self._pending = "".join(self._pending), []
            await self.process.write(text)

    def close_file(self, path: str) -> None:
        file = self.files.pop(path, None)
        if file is not None:
            file.release()

    def close(self) -> None:
        for path in list(self.files):
            self.close_file(path)
