"""What the tests may touch of the machine: their own temporary folders, and caches named here.

Every test has a home folder of its own. In-process writes elsewhere fail the test that made them; files that child
processes leave in the working tree are found when the session ends.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
REAL_HOME = Path.home()
"""The user's home, as it was before any test got its own."""
DOWNLOADS = Path(
    os.environ.get("SREARENA_TEST_CLIS")
    or Path(os.environ.get("XDG_CACHE_HOME") or REAL_HOME / ".cache") / "srearena-test-clis"
)
"""Where programs from npm are kept between runs."""
_CACHES = ("__pycache__", ".pyc", ".hypothesis", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".import_linter_cache")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CREATING = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate"}


def real_environment() -> dict[str, str]:
    """The environment for programs that need the user's own settings, such as npm's registry."""
    return {**os.environ, "HOME": str(REAL_HOME)}


class WriteGuard:
    """Notes every path that this process writes to outside of the temporary folders."""

    def __init__(self) -> None:
        self.violations: list[str] = []
        self._allowed = (
            *{f"{Path(place).resolve()}/" for place in (tempfile.gettempdir(), "/tmp", "/var/tmp", DOWNLOADS)},
            "/dev/",
            "/proc/",
        )
        self._tree = f"{ROOT}/"
        self.active = True
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.active:
            return
        if event == "open":
            path, mode, flags = arguments[:3]
            writes = flags & _WRITING if isinstance(flags, int) else bool(set(str(mode or "")) & set("wax+"))
            if not writes:
                return
        elif event in _CREATING:
            path = arguments[1] if event in ("os.rename", "os.link", "os.symlink") else arguments[0]
            if isinstance(path, str) and not path.startswith("/") and arguments[-1] != -1:
                return  # relative to an open folder, whose own opening was seen
        else:
            return
        if not isinstance(path, str | bytes | os.PathLike):
            return  # a file descriptor that is open already
        name = os.path.abspath(os.fsdecode(path))
        if any(cache in name for cache in _CACHES) or name.startswith(f"{sys.pycache_prefix}/"):
            return
        # A nameless temporary file is opened by the name of its folder.
        if name.startswith(self._tree) or not f"{name}/".startswith(self._allowed):
            self.violations.append(f"{event} {name}")

    def take(self) -> list[str]:
        """The violations since the last call."""
        taken, self.violations = self.violations, []
        return taken


def working_tree() -> set[str] | None:
    """What git reports as changed or new in the working tree; None where there is no git."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        return None
    command = ["git", "-c", "safe.directory=*", "status", "--porcelain", "--untracked-files=all"]
    done = subprocess.run(command, cwd=ROOT, env=real_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    return {f"{line} {_stamp(ROOT / line[3:])}" for line in done.stdout.splitlines()}


def _stamp(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
