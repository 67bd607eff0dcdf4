"""`python -m tests.operators [FOLDER]`: build the operators that the tests run."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.conformance.building import compiled, module_folder

SUITE = Path(__file__).parent / "suite"
JOBSET = "sigs.k8s.io/jobset"
CACHE = Path("~/.cache/srearena/operators").expanduser()


def build(cache: Path) -> None:
    """Compile JobSet's controller, and put its manifests beside it."""
    cache.mkdir(parents=True, exist_ok=True)
    compiled(SUITE, cache, "jobset", JOBSET, command=("build",))
    shutil.copytree(module_folder(cache, JOBSET) / "config" / "components", cache / "jobset-config", dirs_exist_ok=True)


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else CACHE)
