"""Where an agent's process runs, and what it can see of the machine.

| isolation | files | processes |
| --- | --- | --- |
| `bubblewrap` | system programs, Python packages, files that the agent's options name; all else is hidden | its own |
| `user` | what every user of the machine may read | sees others, cannot inspect them |
| `process` | what the user of the harness may read | may inspect those of the same user |

`process` protects only memory from accidents: it is what remains on a machine without bubblewrap. The network is the
machine's in all cases: agents call models and the Kubernetes API.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.machinery import PathFinder
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from srearena import bubblewrap
from srearena.conductor.agents import ENTRY_POINTS
from srearena.conductor.errors import ArenaError
from srearena.interpreters import python_module
from srearena.paths import results_directory
from srearena.temporary import make_folder

BUBBLEWRAP, USER, PROCESS = "bubblewrap", "user", "process"
NONE = "none"
"""The agent runs in the harness's process and can read the answer."""
EXTERNAL = "external"
"""The agent was started elsewhere: it came over HTTP or MCP, or is a person."""
AUTO = "auto"
CHOICES = (AUTO, BUBBLEWRAP, USER, PROCESS)
_UNPRIVILEGED = 65534
"""Number of the unprivileged user and group of Linux."""
_HOME = "/home/agent"
_PROGRAM = "srearena.conductor.agent_process.program"
_COMMANDS = ("kubectl", "helm")
_VARIABLES = (
    *("PATH", "LANG", "LC_*", "TZ", "TERM", "NO_COLOR", "SREARENA_MODEL", "SREARENA_MODEL_*"),
    *("*_API_KEY", "*_API_BASE", "*_API_VERSION", "*_BASE_URL", "*_ENDPOINT", "*_MASTER_KEY", "*_API_TOKEN"),
    *("OPENAI_*", "ANTHROPIC_*", "AZURE_*", "GOOGLE_*", "GEMINI_*", "VERTEX*", "AWS_*", "HF_*", "LITELLM_*"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
)
"""Variables that agents get: programs, languages, models with their keys, proxies, certificates."""


def agent_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that an agent gets."""
    return {
        name: value
        for name, value in variables.items()
        if any(fnmatchcase(name, pattern) for pattern in _VARIABLES) and not name.startswith("OTEL_")
    }


@dataclass(slots=True)
class Launch:
    """A started process, how it is isolated, and what to remove after it."""

    process: subprocess.Popen[bytes]
    isolation: str
    folders: list[Path] = field(default_factory=list)


def launch(agent: str, options: Mapping[str, Any], variables: Mapping[str, str], isolation: str = AUTO) -> Launch:
    """Start the process of an agent; ArenaError where the requested isolation does not work on this machine."""
    chosen = _choose(isolation)
    own = agent_variables(variables) | _compiled_modules()
    if chosen == BUBBLEWRAP:
        return Launch(_in_bubblewrap(agent, options, own), chosen)
    home = make_folder("agent")
    own |= {"HOME": str(home), "TMPDIR": str(home)}
    account: dict[str, Any] = {}
    if chosen == USER:
        os.chown(home, _UNPRIVILEGED, _UNPRIVILEGED)
        account = {"user": _UNPRIVILEGED, "group": _UNPRIVILEGED, "extra_groups": []}
    return Launch(_start(python_module(_PROGRAM), own, **account), chosen, [home])


def _compiled_modules() -> dict[str, str]:
    """Let the agent use modules that are compiled already; without them, its start takes three times as long."""
    return {"PYTHONPYCACHEPREFIX": sys.pycache_prefix} if sys.pycache_prefix else {}


def search_paths(agent: str) -> list[str]:
    """Folders in which modules of the user's agents are looked up, after all installed packages."""
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return [*paths, str(Path.cwd())] if ":" in agent else paths


def _choose(isolation: str) -> str:
    if isolation == PROCESS:
        return PROCESS
    reason = None
    if isolation in (AUTO, BUBBLEWRAP):
        reason = bubblewrap.unavailable_reason()
        if reason is None:
            return BUBBLEWRAP
    if isolation in (AUTO, USER):
        reason = _no_other_user()
        if reason is None:
            return USER
    if isolation == AUTO:
        return PROCESS
    raise ArenaError(f"agents cannot be isolated with {isolation!r}: {reason}")


def _no_other_user() -> str | None:
    """Why a process cannot run as another user; None if it can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "only root starts processes of another user"
    probe = [sys.executable, "-P", "-c", "import srearena.conductor.agents"]
    try:
        done = subprocess.run(
            probe,
            user=_UNPRIVILEGED,
            group=_UNPRIVILEGED,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            check=False,
            timeout=30,
        )
    except (OSError, subprocess.SubprocessError) as problem:
        return str(problem)
    return None if done.returncode == 0 else "an unprivileged user cannot read this installation"


def _start(command: list[str], variables: Mapping[str, str], **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        env=dict(variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        **options,
    )


def _in_bubblewrap(agent: str, options: Mapping[str, Any], variables: dict[str, str]) -> subprocess.Popen[bytes]:
    arguments = [*_mounts(agent, [*_texts(options), *variables.values()]), "--chdir", str(Path.cwd())]
    # Arguments on the command line would show other processes the paths of the machine.
    descriptor = os.memfd_create("arguments")
    try:
        os.write(descriptor, b"".join(os.fsencode(word) + b"\0" for word in arguments))
        os.lseek(descriptor, 0, os.SEEK_SET)
        command = ["bwrap", "--args", str(descriptor), "--", *python_module(_PROGRAM)]
        own = {**variables, "HOME": _HOME, "TMPDIR": "/tmp"}
        return _start(command, own, pass_fds=(descriptor,))
    finally:
        os.close(descriptor)


def _mounts(agent: str, texts: Iterable[str]) -> Iterator[str]:
    yield from ("--unshare-all", "--share-net", "--unshare-user", "--die-with-parent", "--hostname", "agent")
    yield from ("--cap-drop", "ALL")
    yield from bubblewrap.system_mounts()
    yield from ("--dir", _HOME, "--dir", str(Path.cwd()))
    resolver = Path("/etc/resolv.conf")
    if resolver.exists():
        yield from ("--ro-bind", str(resolver.resolve()), str(resolver))
    exposed = bubblewrap.outermost([*bubblewrap.interpreter_paths(), *_packages(agent), *_programs()])
    yield from bubblewrap.read_only([*exposed, *_compiled(exposed)])
    for path in _results_inside(exposed):
        yield from ("--tmpfs", str(path))
    named = [path for path in map(_file, texts) if path is not None]
    yield from bubblewrap.read_only(
        path for path in dict.fromkeys(named) if not any(path.is_relative_to(other) for other in exposed)
    )


def _packages(agent: str) -> Iterator[Path]:
    """Importable files and folders of the module path. Other files beside them stay hidden."""
    for entry in sys.path:
        folder = Path(entry)
        if entry and folder.is_dir() and not any(folder.is_relative_to(p) for p in bubblewrap.interpreter_paths()):
            yield from _importable(folder)
    module, colon, _ = agent.partition(":")
    if colon:
        spec = PathFinder.find_spec(module.partition(".")[0], search_paths(agent))
        if spec is not None and spec.origin is not None:
            file = Path(spec.origin)
            yield from _importable(file.parents[1] if file.name == "__init__.py" else file.parent)
    registered = {point.module.partition(".")[0] for point in entry_points(group=ENTRY_POINTS)}
    for package in sorted({__name__.partition(".")[0], *registered}):
        installed = importlib.util.find_spec(package)
        yield from map(Path, (installed.submodule_search_locations or ()) if installed is not None else ())


def _compiled(folders: Iterable[Path]) -> Iterator[Path]:
    """Where Python keeps the compiled modules of these folders, if it keeps them apart from the sources."""
    if sys.pycache_prefix:
        for folder in folders:
            place = Path(sys.pycache_prefix) / folder.relative_to(folder.anchor)
            if place.is_dir():
                yield place


def _importable(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.suffix in (".py", ".so") or (path / "__init__.py").is_file() or path.name.endswith("-info"):
            yield path


def _programs() -> Iterator[Path]:
    for name in _COMMANDS:
        program = shutil.which(name)
        if program is not None:
            yield from (Path(program), Path(program).resolve())


def _results_inside(exposed: Iterable[Path]) -> Iterator[Path]:
    """Folders of the harness that lie inside exposed ones."""
    root = results_directory().absolute()
    if root.is_dir() and any(root.is_relative_to(path) for path in exposed):
        yield root


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)


def _file(text: str) -> Path | None:
    """The file that an option or a variable names: the agent may read it."""
    if not text or len(text) > 4096 or "\n" in text or "\0" in text:
        return None
    try:
        path = Path(text).expanduser().absolute()
        return path if path.is_file() else None
    except (OSError, ValueError, RuntimeError):
        return None
