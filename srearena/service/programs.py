"""Programs and images of the applications, for the embedded cluster.

The embedded cluster loads this module through the entry-point groups `srearena.programs` and `srearena.images`.
Importing it imports the package `programs` of every application and all of `products`, whose modules register
themselves, and registers the images that an application lists in `images.json`. An application or product is added as
a new folder, without an edit here.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import pkgutil
from importlib.resources import files

from srearena.cluster.program_models import register_image_table
from srearena.service import apps, products


def _import_all(package: str) -> None:
    path = importlib.import_module(package).__path__
    for module in pkgutil.walk_packages(path, f"{package}."):
        importlib.import_module(module.name)


def _load_application(package: str) -> None:
    if importlib.util.find_spec(f"{package}.programs") is not None:
        _import_all(f"{package}.programs")
    table = files(package).joinpath("images.json")
    if table.is_file():
        register_image_table(json.loads(table.read_text(encoding="utf-8")))


_import_all(products.__name__)
for _application in pkgutil.iter_modules(apps.__path__, f"{apps.__name__}."):
    if _application.ispkg:
        _load_application(_application.name)
