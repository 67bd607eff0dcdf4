"""Which requests a load consists of, and how often each: written in the script that sends them.

A script for wrk or Locust is a program; what it sends can only be known by running it. So its first lines say it in
comments, for people and for whoever cannot run it:

    -- route: GET /hotels weight=60 name=search
    -- route: POST /user weight=0.5 name=login
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from srearena.service.errors import ApplicationError

_ROUTE = re.compile(r"^\s*(?:--|#)\s*route:\s*(?P<method>[A-Z]+)\s+(?P<path>/\S*)(?P<rest>.*)$", re.MULTILINE)
_SETTING = re.compile(r"(\w+)=(\S+)")


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: str
    weight: float = 1.0
    name: str = ""

    def __str__(self) -> str:
        name = f" name={self.name}" if self.name else ""
        return f"route: {self.method} {self.path} weight={self.weight:g}{name}"


def read_mix(script: str) -> tuple[Route, ...]:
    """The routes that a script's comments declare; ApplicationError where it declares none."""
    found = []
    for match in _ROUTE.finditer(script):
        settings = dict(_SETTING.findall(match["rest"]))
        try:
            weight = float(settings.get("weight", "1"))
        except ValueError:
            raise ApplicationError(f"a route's weight is a number, not {settings['weight']!r}") from None
        found.append(Route(match["method"], match["path"], weight, settings.get("name", "")))
    if not found or sum(route.weight for route in found) <= 0:
        raise ApplicationError("a load script declares what it sends in comments: `-- route: GET /path weight=60`")
    return tuple(found)


def write_mix(routes: Iterable[Route], comment: str = "--") -> str:
    """The comment lines that declare routes."""
    return "".join(f"{comment} {route}\n" for route in routes)
