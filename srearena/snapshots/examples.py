"""The recorded incidents that come with the package: six problems, recorded on the embedded cluster.

They are one compressed file (`scripts/record-examples` makes it), which is unpacked in the directories of the public
data set, so that commands for one work on the other.
"""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from pathlib import Path

from srearena.errors import InputError, one_line

ARCHIVE = Path(__file__).parent / "examples.tar.xz"
PLACE = Path("snapshots") / "sre" / "v0.1-srearena"
"""Where the scenarios are in the data set."""


def unpack(directory: Path) -> list[Path]:
    """Unpack the recordings that are not there yet, and return the directories of all."""
    place = directory / PLACE
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".examples-", dir=place) as folder:
            with tarfile.open(ARCHIVE) as archive:
                archive.extractall(folder, filter="data")
            scenarios = sorted(Path(folder).iterdir())
            for scenario in scenarios:
                if not (place / scenario.name).exists():
                    shutil.move(scenario, place / scenario.name)
    except OSError as problem:
        raise InputError(f"cannot unpack the recordings in {directory}: {one_line(problem)}") from problem
    return [place / scenario.name for scenario in scenarios]


def complete_directory(path: Path) -> Path:
    """A path with a part that ends with `...` (`v0.1-.../Scenario-3`), as documents of the data set abbreviate it.

    The part stands for the only directory that begins so; InputError names them where there are several or none.
    """
    if path.exists():
        return path
    completed = Path(path.anchor)
    for part in path.parts[1:] if path.anchor else path.parts:
        completed /= part
        if part.endswith("...") and not completed.exists():
            found = sorted(each for each in completed.parent.glob(f"{part.removesuffix('...')}*/"))
            if len(found) != 1:
                names = ", ".join(each.name for each in found) or "none (`srearena snapshot examples` makes one)"
                raise InputError(f"{completed} must stand for one directory, and there are: {names}")
            completed = found[0]
    return completed
