"""Images of language runtimes: they check that there is something to run, and then are servers like any other."""

from __future__ import annotations

import posixpath
from typing import ClassVar

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import PATH, Program
from srearena.cluster.embedded.programs.generic import run_unmodelled
from srearena.cluster.embedded.programs.registry import program


class Runtime(Program):
    """A program that runs files. `missing` is what it says where there is none."""

    idle_memory = 40 * 1024 * 1024
    missing: ClassVar[str] = "{name}: cannot open {path}\n"
    missing_status: ClassVar[int] = 1

    async def run(self, process: Process) -> int:
        args = process.argv[1:]
        if args and args[0] in ("--version", "-version", "-v", "version"):
            await process.write(f"{self.greeting()}\n")
            return 0
        target = self.target(args)
        if target is None:
            return await self.idle(process)
        path = posixpath.join(process.cwd, target)
        if not process.files.exists(path):
            await process.error(self.missing.format(name=process.name, path=path, given=target))
            return self.missing_status
        return await run_unmodelled(process, memory=self.idle_memory)

    def greeting(self) -> str:
        return f"v{self.version}"

    def target(self, args: list[str]) -> str | None:
        """The file that is to be run."""
        return next((arg for arg in args if not arg.startswith("-")), None)

    async def idle(self, process: Process) -> int:
        """Without a file it reads from standard input, of which there is none."""
        while await process.read():
            await process.spend()
        return 0


@program("node", "bitnami/node")
class Node(Runtime):
    entrypoint = ("docker-entrypoint.sh",)
    cmd = ("node",)
    binaries = (
        "/usr/local/bin/docker-entrypoint.sh",
        "/usr/local/bin/node",
        "/usr/local/bin/npm",
        "/usr/local/bin/npx",
    )
    default_version = "22.21.1"
    missing = (
        "node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module '{path}'\n"
        "    at Function._resolveFilename (node:internal/modules/cjs/loader:1225:15) {{\n"
        "  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}}\n\nNode.js v22.21.1\n"
    )

    async def run(self, process: Process) -> int:
        words = process.argv[1:]
        if process.binary == "docker-entrypoint.sh":
            known = words and process.files.search(words[0], process.env.get("PATH", PATH)) is not None
            process.execute(words if known and not words[0].startswith("-") else ["node", *words], process.env)
        if process.binary in ("npm", "npx"):
            if not process.files.is_file(posixpath.join(process.cwd, "package.json")):
                await process.error(
                    "npm error code ENOENT\nnpm error syscall open\n"
                    f"npm error path {process.cwd}/package.json\nnpm error errno -2\n"
                    "npm error enoent Could not read package.json: Error: ENOENT: no such file or directory\n"
                )
                return 254
            return await run_unmodelled(process, memory=self.idle_memory)
        return await super().run(process)


@program("openjdk", "eclipse-temurin", "amazoncorretto", "ibmjava", "azul/zulu-openjdk")
class Java(Runtime):
    cmd = ("java",)
    binaries = ("/opt/java/openjdk/bin/java",)
    env: ClassVar = {"PATH": f"/opt/java/openjdk/bin:{PATH}", "JAVA_HOME": "/opt/java/openjdk"}
    base = "ubuntu"
    idle_memory = 220 * 1024 * 1024
    default_version = "21"
    missing = "Error: Unable to access jarfile {given}\n"

    def greeting(self) -> str:
        return f'openjdk version "{self.version}" 2025-10-21'

    def target(self, args: list[str]) -> str | None:
        if "-jar" in args and args.index("-jar") + 1 < len(args):
            return args[args.index("-jar") + 1]
        return next(
            (arg for arg in args if arg.endswith((".jar", ".java"))), "/opt/java/openjdk/bin/java" if args else None
        )

    async def idle(self, process: Process) -> int:
        await process.error("Usage: java [options] <mainclass> [args...]\n           (to execute a class)\n")
        return 1


@program("golang")
class Go(Runtime):
    cmd = ("bash",)
    working_dir = "/go"
    binaries = ("/usr/local/go/bin/go",)
    env: ClassVar = {"PATH": f"/go/bin:/usr/local/go/bin:{PATH}", "GOPATH": "/go"}
    default_version = "1.25.4"
    missing = "stat {path}: no such file or directory\n"

    def greeting(self) -> str:
        return f"go version go{self.version} linux/amd64"

    def target(self, args: list[str]) -> str | None:
        return next((arg for arg in args if arg.endswith(".go")), "." if args else None)


@program("ruby")
class Ruby(Runtime):
    cmd = ("irb",)
    binaries = ("/usr/local/bin/ruby", "/usr/local/bin/irb")
    default_version = "3.4.7"
    missing = "{name}: No such file or directory -- {given} (LoadError)\n"


@program("php")
class Php(Runtime):
    cmd = ("php", "-a")
    binaries = ("/usr/local/bin/php",)
    default_version = "8.4.14"
    missing = "Could not open input file: {given}\n"


@program("dotnet/aspnet", "dotnet/runtime", "dotnet/sdk", "dotnet/samples")
class Dotnet(Runtime):
    cmd = ("bash",)
    binaries = ("/usr/share/dotnet/dotnet",)
    env: ClassVar = {"PATH": f"/usr/share/dotnet:{PATH}", "ASPNETCORE_HTTP_PORTS": "8080"}
    default_version = "9.0.10"
    missing_status = 145
    missing = (
        "The command could not be loaded, possibly because:\n  * You intended to execute a .NET application:\n"
        "      The application '{given}' does not exist.\n"
    )
