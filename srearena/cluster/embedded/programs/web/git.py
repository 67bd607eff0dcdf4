"""git, as far as pods use it: `git clone` of a repository that the simulated internet holds.

The way there is the pod's own: its DNS, its policies, its links decide whether a clone succeeds, and how it fails.
What arrives is the part of the repository that applications copy out of it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from srearena.cluster.embedded.machine.networking.reachability import HttpResult, Outcome
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.userland.tools.urls import Url, parse_url

_ROUTES = ("post/compose", "home-timeline/read", "user-timeline/read", "user/register", "user/follow", "user/unfollow")
_LUA = "-- Calls the Thrift services behind nginx.\nlocal _M = {}\nreturn _M\n"
REPOSITORIES: dict[str, Mapping[str, str]] = {
    "github.com/delimitrou/DeathStarBench": {
        "README.md": "# DeathStarBench\n",
        **{
            f"socialNetwork/nginx-web-server/lua-scripts/{api}/{route}.lua": _LUA
            for api in ("wrk2-api", "api")
            for route in _ROUTES
        },
        "socialNetwork/nginx-web-server/pages/main.html": "<html><body>Social Network</body></html>\n",
        "socialNetwork/docker/openresty-thrift/lua-thrift/Thrift.lua": _LUA,
        "socialNetwork/gen-lua/social_network_ComposePostService.lua": _LUA,
        "socialNetwork/keys/CA.pem": "",
        "socialNetwork/media-frontend/lua-scripts/upload-media.lua": _LUA,
        "socialNetwork/media-frontend/lua-scripts/get-media.lua": _LUA,
    },
}
"""Host and path of a repository, without `.git`, to its files."""
_NEEDS_REPOSITORY = frozenset(
    "add am bisect branch checkout cherry-pick commit diff fetch log merge pull push rebase reset restore revert show "
    "stash status switch tag".split()
)
CLONE_SECONDS = 12.0
_VALUED = frozenset({"--depth", "--branch", "-b", "--origin", "-o", "-C", "-c", "--config", "--filter", "--jobs", "-j"})
_FAILURES = {
    Outcome.NXDOMAIN: "Could not resolve host: {host}",
    Outcome.DNS_FAILURE: "Could not resolve host: {host}",
    Outcome.TIMEOUT: "Failed to connect to {host} port {port} after 134000 ms: Could not connect to server",
    Outcome.TLS_ERROR: "SSL certificate problem: unable to get local issuer certificate",
}
_UNCONNECTED = "Failed to connect to {host} port {port} after {took} ms: Could not connect to server"


@program("alpine/git", "bitnami/git")
class Git(Program):
    entrypoint = ("git",)
    cmd = ("--help",)
    base = "alpine"
    follows_tag = False
    binaries = ("/usr/bin/git",)
    working_dir = "/git"
    idle_cpu = 0.0
    idle_memory = 4 * 1024 * 1024
    default_version = "2.49.1"

    async def run(self, process: Process) -> int:
        words = process.argv[1:]
        match words:
            case ["--version" | "version", *_]:
                await process.write(f"git version {self.version}\n")
                return 0
            case ["clone", *rest]:
                return await self._clone(process, rest)
            case [] | ["--help" | "help", *_]:
                await process.write("usage: git [-v | --version] [-h | --help] <command> [<args>]\n")
                return 0 if words else 1
        if words[0] in _NEEDS_REPOSITORY:
            await process.error("fatal: not a git repository (or any of the parent directories): .git\n")
            return 128
        await process.error(f"git: '{words[0]}' is not a git command. See 'git --help'.\n")
        return 1

    async def _clone(self, process: Process, words: list[str]) -> int:
        operands = _operands(words)
        url = parse_url(operands[0]) if operands else None
        if url is None or url.scheme not in ("http", "https"):
            wrong = operands[0] if operands else ""
            await process.error(f"fatal: repository '{wrong}' does not exist\n" if wrong else _USAGE)
            return 128 if wrong else 129
        name = url.target.strip("/").removesuffix(".git")
        place = operands[1] if len(operands) > 1 else posixpath.basename(name)
        if process.files.exists(place) and (not process.files.is_dir(place) or process.files.listdir(place)):
            await process.error(f"fatal: destination path '{place}' already exists and is not an empty directory.\n")
            return 128
        await process.error(f"Cloning into '{place}'...\n")
        result = await _ask(process, url)
        if result.outcome is not Outcome.CONNECTED or result.response is None:
            await process.error(f"fatal: unable to access '{operands[0]}/': {_reason(url, result)}\n")
            return 128
        files = REPOSITORIES.get(f"{url.host}/{name}")
        if files is None:
            await process.error(f"remote: Repository not found.\nfatal: repository '{operands[0]}/' not found\n")
            return 128
        await process.sleep(CLONE_SECONDS)
        try:
            self._check_out(process, place, files)
        except OSError as problem:
            await process.error(f"fatal: could not create work tree dir '{place}': {problem.strerror}\n")
            return 128
        return 0

    def _check_out(self, process: Process, place: str, files: Mapping[str, str]) -> None:
        process.files.mkdir(posixpath.join(place, ".git"), parents=True)
        process.files.write_bytes(posixpath.join(place, ".git", "HEAD"), b"ref: refs/heads/master\n")
        for path, text in files.items():
            target = posixpath.join(place, path)
            process.files.mkdir(posixpath.dirname(target), parents=True)
            process.files.write_bytes(target, text.encode())


_USAGE = "fatal: You must specify a repository to clone.\n"


def _operands(words: list[str]) -> list[str]:
    found: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in _VALUED:
            next(rest, None)
        elif not word.startswith("-"):
            found.append(word)
    return found


async def _ask(process: Process, url: Url) -> HttpResult:
    request = HttpRequest(
        "GET",
        f"{url.target}/info/refs?service=git-upload-pack",
        {"Host": url.authority, "User-Agent": "git/2"},
        tls=url.tls,
    )
    return await process.container.network.http(url.host, url.port, request)


def _reason(url: Url, result: HttpResult) -> str:
    text = _FAILURES.get(result.outcome, _UNCONNECTED)
    return text.format(host=url.host, port=url.port, took=round(result.seconds * 1000))
