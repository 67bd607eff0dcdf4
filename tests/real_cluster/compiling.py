"""Programs compiled from published Go modules, or from a folder of source, once, into the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.real_cluster.layout import CACHE
from tests.real_cluster.machines import RealClusterError

SOURCES = Path(__file__).parent / "sources"
"""Programs of our own: a folder with a `main.go` each."""
CLUSTER = Path(__file__).parent / "binaries"
"""The module of the cluster's own programs, where Kubernetes' modules have their versions."""
_UNFINISHED = CACHE / "unfinished"


@dataclass(frozen=True)
class Program:
    """A program compiled from its module; `image` is what it is called on the cluster, if it runs there."""

    name: str
    package: str
    version: str
    image: str = ""

    @property
    def path(self) -> Path:
        return CACHE / f"{self.name}-{self.version}"

    @property
    def inside(self) -> str:
        return f"/usr/bin/{self.name}"

    def build(self) -> None:
        """Compile it, once, into the cache."""
        if not self.path.exists():
            self._compile()
            (_UNFINISHED / self.name).rename(self.path)

    def _compile(self) -> None:
        package = f"{self.package}@{self.version}"
        _go("install", "-ldflags", "-s -w", package, environment={"GOBIN": str(_UNFINISHED)}, what=package)


@dataclass(frozen=True)
class Dependency(Program):
    """A program whose module has `replace` lines, which `go install` refuses: built as a dependency of an empty module.

    `main` names a folder of `sources` where the module has no program of its own, or where there is no module at all;
    it needs the modules `also` at that version, too. `fork` is the module that really has the source, at that version.
    """

    main: str = ""
    also: tuple[str, ...] = ()
    tags: str = ""
    module: str = ""
    fork: str = ""

    def _compile(self) -> None:
        folder = CACHE / "modules" / f"{self.name}-{self.version}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _go("mod", "init", f"srearena/{self.name}", folder=folder, what=self.name)
        package = self.package
        if self.fork:
            edits = (f"-require={self.module}@{self.version}", f"-replace={self.module}={self.fork}@{self.version}")
            _go("mod", "edit", *edits, folder=folder, what=self.name)
        elif package:
            wanted = [f"{one}@{self.version}" for one in (package, *self.also)]
            _go("get", *wanted, folder=folder, what=self.name)
        if self.main:
            shutil.copy(SOURCES / self.main / "main.go", folder)
            package = "."
            _go("mod", "tidy", folder=folder, what=self.name)
        output = str(_UNFINISHED / self.name)
        options = ("-mod=mod", "-tags", self.tags, "-ldflags", "-s -w", "-o", output)
        _go("build", *options, package, folder=folder, what=self.name)


@dataclass(frozen=True)
class Part(Program):
    """A program of a module that the cluster's own programs are built from."""

    def _compile(self) -> None:
        options = ("-ldflags", "-s -w", "-o", str(_UNFINISHED / self.name))
        _go("build", *options, self.package, folder=CLUSTER, what=self.name)


@dataclass(frozen=True)
class SourceFolder:
    """The programs below `cmd` of a folder of source, which belongs to somebody else and is only read."""

    name: str
    folder: Path

    @property
    def path(self) -> Path:
        """A folder of programs, named after what is in the source."""
        return CACHE / f"{self.name}-{self.digest()}"

    def digest(self) -> str:
        """Of the names and contents of all Go files and of what pins their dependencies."""
        found = hashlib.sha256()
        files = sorted(path for pattern in ("*.go", "go.mod", "go.sum") for path in self.folder.rglob(pattern))
        for path in files:
            found.update(f"{path.relative_to(self.folder)}\n".encode())
            found.update(hashlib.sha256(path.read_bytes()).digest())
        return found.hexdigest()[:12]

    def build(self) -> None:
        if not (self.folder / "go.mod").is_file():
            raise RealClusterError(f"{self.folder} is not the source of {self.name}: it has no go.mod")
        if self.path.exists():
            return
        unfinished = _UNFINISHED / self.name
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        options = ("-trimpath", "-ldflags", "-s -w", "-o", f"{unfinished}/")
        _go("build", *options, "./cmd/...", folder=self.folder, what=self.name)
        unfinished.rename(self.path)

    def programs(self) -> Mapping[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted(self.path.iterdir())}


def _go(
    *arguments: str,
    what: str,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> None:
    command: Sequence[str] = ("nice", "-n", "5", "go", *arguments)
    variables = {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOFLAGS": os.environ.get("GOFLAGS", "-p=1"),
        **(environment or {}),
    }
    _UNFINISHED.mkdir(parents=True, exist_ok=True)
    if subprocess.run(command, cwd=folder, env=variables, check=False).returncode:
        raise RealClusterError(f"{what} does not compile (go {arguments[0]}); see above")
