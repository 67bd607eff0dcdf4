"""Programs of the applications' images on simulated machines.

The embedded cluster loads this module through the entry-point group `srearena.programs`; importing it imports the
package `programs` of every application and all of `products`, whose modules register themselves. An application or
product is added as a new folder, without an edit here.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil

from srearena.service import apps, products


def _import_all(package: str, path: list[str]) -> None:
    for module in pkgutil.walk_packages(path, f"{package}."):
        importlib.import_module(module.name)


_import_all(products.__name__, list(products.__path__))
for _application in pkgutil.iter_modules(apps.__path__, f"{apps.__name__}."):
    if _application.ispkg and importlib.util.find_spec(f"{_application.name}.programs") is not None:
        _programs = importlib.import_module(f"{_application.name}.programs")
        _import_all(_programs.__name__, list(_programs.__path__))
