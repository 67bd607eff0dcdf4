"""The registry of applications: built-in folders, installed packages, and folders of the user.

A built-in application is a folder here with manifests and a JSON file of the same name in `paths.METADATA`; one of a
user is a folder with a `metadata.json`. A class in it (`__init__.py`, or `app.py`) is optional, and a built-in one may
also be a module beside its folder (`hotelres.py`). Packages add
applications with the entry-point group `srearena.applications` (a class), users with `SREARENA_APPS`, a list of folders
that are applications or contain some. A broken application of a package or user warns; a broken built-in one raises.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import warnings
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from srearena.errors import SreArenaError
from srearena.paths import METADATA
from srearena.service.apps.base import Application
from srearena.service.errors import ApplicationError

ENTRY_POINTS = "srearena.applications"
VARIABLE = "SREARENA_APPS"
_FOLDER = Path(__file__).parent
_NOT_APPLICATIONS = frozenset({"base", "registry"})


def all_applications() -> list[Application]:
    """All applications, by name. Of one name, the user's takes precedence, then a package's, then the built-in."""
    by_name: dict[str, Application] = {}
    for application in (*_user_applications(), *_installed(), *_built_in()):
        by_name.setdefault(_normalised(application.name), application)
    return sorted(by_name.values(), key=lambda application: application.name)


def find_application(name: str) -> Application:
    """Find an application by name, namespace, folder name (`hotel-reservation`) or path of its folder."""
    if os.sep in name and (Path(name) / "metadata.json").is_file():
        return load_folder(Path(name))
    normalised = _normalised(name)
    folder = _FOLDER / normalised.replace("-", "_")
    if not os.environ.get(VARIABLE) and _metadata_of(folder) is not None:
        return load_folder(folder)
    applications = all_applications()
    for application in applications:
        if normalised in names_of(application):
            return application
    near = get_close_matches(normalised, sorted({other for app in applications for other in names_of(app)}), 3, 0.5)
    hint = (
        f"did you mean {' or '.join(near)}?"
        if near
        else f"there are {', '.join(_normalised(a.name) for a in applications)}"
    )
    raise ApplicationError(f"there is no application {name!r}: {hint}")


def names_of(application: Application) -> set[str]:
    return {_normalised(name) for name in (application.name, application.namespace, application.folder.name)}


def load_folder(folder: Path) -> Application:
    """Load the application in a folder: its own class, or the base class."""
    module = _module(folder)
    kind = _class_in(module) if module is not None else None
    kind = kind or _classes_beside_folders().get(folder.resolve())
    if kind is not None:
        return kind()
    return Application(_metadata_of(folder) or folder / "metadata.json")


def _metadata_of(folder: Path) -> Path | None:
    """The metadata file of an application's folder."""
    inside = folder / "metadata.json"
    if inside.is_file():
        return inside
    named = METADATA / f"{folder.name.replace('_', '-')}.json"
    return named if folder.parent == _FOLDER and folder.is_dir() and named.is_file() else None


@cache
def _classes_beside_folders() -> dict[Path, type[Application]]:
    """The classes in modules of this package, by the folder of the application."""
    classes: dict[Path, type[Application]] = {}
    for file in sorted(_FOLDER.glob("*.py")):
        if file.stem not in _NOT_APPLICATIONS and not file.stem.startswith("_"):
            kind = _class_in(import_module(f"{__package__}.{file.stem}"))
            if kind is not None:
                classes[kind().folder.resolve()] = kind
    return classes


def _built_in() -> Iterator[Application]:
    folders = [entry for entry in sorted(_FOLDER.iterdir()) if _metadata_of(entry) is not None]
    for folder in folders:
        yield load_folder(folder)
    for place, kind in _classes_beside_folders().items():
        if place not in folders:
            yield kind()
    for path in sorted(METADATA.glob("*.json")):
        if not (_FOLDER / path.stem.replace("-", "_")).is_dir():
            yield Application(path)


def _installed() -> Iterator[Application]:
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            yield entry.load()()
        except Exception as problem:
            warnings.warn(f"the application {entry.name} ({entry.value}) cannot be loaded: {problem}", stacklevel=3)


def _user_applications() -> Iterator[Application]:
    for name in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        path = Path(name).expanduser()
        folders = [path] if (path / "metadata.json").is_file() else sorted(path.glob("*/"))
        if not path.is_dir():
            warnings.warn(f"{VARIABLE} names {path}, which is not a folder", stacklevel=3)
        for folder in folders:
            if not (folder / "metadata.json").is_file():
                continue
            try:
                yield load_folder(folder)
            except (SreArenaError, ImportError, SyntaxError) as problem:
                warnings.warn(f"the application in {folder} cannot be loaded: {problem}", stacklevel=3)


def _module(folder: Path) -> ModuleType | None:
    """Import the code of an application; a folder outside of this package gets a unique module name."""
    if folder.resolve().parent == _FOLDER:
        return import_module(f"{__package__}.{folder.name}") if (folder / "__init__.py").is_file() else None
    for file in (folder / "__init__.py", folder / "app.py"):
        if file.is_file():
            name = f"srearena_application_{re.sub('[^a-z0-9]', '_', str(folder.resolve()).lower())}"
            spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=[str(folder)])
            if spec is None or spec.loader is None:
                continue
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            spec.loader.exec_module(module)
            return module
    return None


def _class_in(module: ModuleType) -> type[Application] | None:
    """The application class that a module defines."""
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, Application) and value.__module__ == module.__name__:
            return value
    return None


def _normalised(name: str) -> str:
    return re.sub(r"[\s_]+", "-", name.strip().lower())
