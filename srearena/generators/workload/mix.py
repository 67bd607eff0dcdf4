"""The mix of requests of a load script, declared in its comments.

A script for wrk or Locust is a program, so its requests are known only by running it. Comments declare them for readers
and for the simulator, which does not run scripts:

    -- route: GET /hotels weight=60 name=search
    -- route: POST /user weight=0.5 name=login
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from srearena.service.errors import ApplicationError

_ROUTE = re.compile(r"^\s*(?:--|#)\s*route:\s*(?P<method>[A-Z]+)\s+(?P<path>/\S*)(?P<settings>.*)$", re.MULTILINE)
_SETTING = re.compile(r"(\w+)=(\S+)")


@dataclass(frozen=True, slots=True)
class Route:
    """A request with its relative frequency."""

    method: str
    path: str
    weight: float = 1.0
    name: str = ""

    def __str__(self) -> str:
        name = f" name={self.name}" if self.name else ""
        return f"route: {self.method} {self.path} weight={self.weight:g}{name}"


def read_mix(script: str) -> tuple[Route, ...]:
    """Parse the routes that a script's comments declare; ApplicationError where it declares none."""
    routes = []
    for match in _ROUTE.finditer(script):
        settings = dict(_SETTING.findall(match["settings"]))
        try:
            weight = float(settings.get("weight", "1"))
        except ValueError:
            raise ApplicationError(f"a route's weight is a number, not {settings['weight']!r}") from None
        routes.append(Route(match["method"], match["path"], weight, settings.get("name", "")))
    if not routes or sum(route.weight for route in routes) <= 0:
        raise ApplicationError("a load script must declare its requests in comments: `-- route: GET /path weight=60`")
    return tuple(routes)


def write_mix(routes: Iterable[Route], comment: str = "--") -> str:
    """The comment lines that declare routes."""
    return "".join(f"{comment} {route}\n" for route in routes)
