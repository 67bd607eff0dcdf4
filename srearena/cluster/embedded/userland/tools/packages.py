"""apt-get, apk and others: package managers, whose repositories a cluster without a way to the internet cannot reach.

They resolve the names of their repositories in the pod's network, and fail with the errors of the real programs.
"""

from __future__ import annotations

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.registry import tool

_DEBIAN = (
    ("deb.debian.org", "debian", "bookworm"),
    ("deb.debian.org", "debian", "bookworm-updates"),
    ("deb.debian.org", "debian-security", "bookworm-security"),
)
_UBUNTU = (
    ("security.ubuntu.com", "ubuntu", "noble-security"),
    ("archive.ubuntu.com", "ubuntu", "noble"),
    ("archive.ubuntu.com", "ubuntu", "noble-updates"),
    ("archive.ubuntu.com", "ubuntu", "noble-backports"),
)
_ALPINE = "https://dl-cdn.alpinelinux.org/alpine/v3.20/"
_TIMEOUT = 30.0
_REFUSED = 100
"""The exit status of apt for errors."""
_HELP = "apt 2.6.1 (amd64)\nUsage: apt-get [options] command\n       apt-get [options] install|remove pkg1 [pkg2 ...]\n"


async def _unreachable(process: Process, host: str, port: int) -> str:
    """Why a repository cannot be reached, in the words of apt."""
    result = await process.container.network.connect(host, port, timeout=_TIMEOUT)
    if result.connection is not None:
        result.connection.close()
        return f"Connection failed [IP: {result.address} {port}]"
    if result.outcome is Outcome.NXDOMAIN:
        return f"Could not resolve '{host}'"
    if result.outcome is Outcome.DNS_FAILURE:
        return f"Temporary failure resolving '{host}'"
    return f"Could not connect to {host}:{port} ({result.address}), connection timed out"


@tool("apt-get", "apt")
async def apt(process: Process, args: list[str]) -> int:
    words = [arg for arg in args if not arg.startswith("-")]
    command, packages = (words[0] if words else ""), words[1:]
    if command == "update":
        return await _update(process)
    if command in ("install", "upgrade", "dist-upgrade", "remove", "purge", "download"):
        if process.credentials.uid != 0 and command != "download":
            await process.error(
                "E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)\n"
                "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are you root?\n"
            )
            return _REFUSED
        lists = "Reading package lists... Done\nBuilding dependency tree... Done\nReading state information... Done\n"
        await process.write(lists)
        if not packages:
            await process.write("0 upgraded, 0 newly installed, 0 to remove and 0 not upgraded.\n")
            return 0
        for package in packages:
            await process.error(f"E: Unable to locate package {package}\n")
        return _REFUSED
    if command in ("clean", "autoclean", "autoremove"):
        return 0
    if command:
        await process.error(f"E: Invalid operation {command}\n")
        return _REFUSED
    await process.write(_HELP)
    return 0


async def _update(process: Process) -> int:
    if process.credentials.uid != 0:
        await process.error(
            "Reading package lists... Done\nE: Could not open lock file /var/lib/apt/lists/lock - open (13: Permission "
            "denied)\nE: Unable to lock directory /var/lib/apt/lists/\n"
        )
        return _REFUSED
    repositories = _UBUNTU if process.container.program.family.name == "ubuntu" else _DEBIAN
    reasons: dict[str, str] = {}
    for number, (host, folder, suite) in enumerate(repositories, 1):
        if host not in reasons:
            reasons[host] = await _unreachable(process, host, 80)
        await process.write(f"Err:{number} http://{host}/{folder} {suite} InRelease\n  {reasons[host]}\n")
    await process.write("Reading package lists... Done\n")
    for host, folder, suite in repositories:
        place = f"http://{host}/{folder}/dists/{suite}/InRelease"
        await process.error(f"W: Failed to fetch {place}  {reasons[host]}\n")
    await process.error("W: Some index files failed to download. They have been ignored, or old ones used instead.\n")
    return 0


@tool("apk")
async def apk(process: Process, args: list[str]) -> int:
    words = [arg for arg in args if not arg.startswith("-")]
    command, packages = (words[0] if words else ""), words[1:]
    if command not in ("update", "add", "upgrade"):
        if command in ("info", "list", "search", "version"):
            return 0
        await process.write("apk-tools 2.14.4, compiled for x86_64.\n\nusage: apk [<OPTIONS>...] COMMAND\n")
        return 1
    if process.credentials.uid != 0:
        await process.error("ERROR: Unable to lock database: Permission denied\nERROR: Failed to open apk database\n")
        return 99
    host = _ALPINE.split("/")[2]
    reason = await _unreachable(process, host, 443)
    error = "DNS lookup error" if reason.startswith("Could not resolve") else "temporary error (try again later)"
    for branch in ("main", "community"):
        await process.error(f"fetch {_ALPINE}{branch}/x86_64/APKINDEX.tar.gz\n")
        await process.error(f"WARNING: updating and opening {_ALPINE}{branch}: {error}\n")
    if command == "update":
        await process.write("2 unavailable, 0 stale; 14 distinct packages available\n")
        return 2
    if not packages:
        return 0
    wanted = "".join(f"  {package} (no such package):\n    required by: world[{package}]\n" for package in packages)
    await process.error(f"ERROR: unable to select packages:\n{wanted}")
    return len(packages)
