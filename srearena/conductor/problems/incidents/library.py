"""The library: a copy of every incident file that was used, under its id.

So results, journals and child processes name an incident by its id, as any problem, and it is found again later. The id
is a digest of the content, so a copy is never another incident. Ids from anywhere are safe: they contain no path.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from srearena.conductor.errors import ProblemError, UnknownProblem
from srearena.conductor.problems.incidents.document import Incident, read_incident
from srearena.paths import incidents_directory

_ID = re.compile(r"incident-[0-9a-f]{12}")


def is_incident_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def keep(incident: Incident) -> str:
    """Put an incident into the library and return its id."""
    path = _path(incident.id)
    if not path.exists():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(f".{os.getpid()}")
            incident.write(draft)
            draft.replace(path)
        except OSError as problem:
            raise ProblemError(f"{path} cannot be written: {problem.strerror}") from problem
    return incident.id


def find(identity: str) -> Incident:
    """The incident of that id; UnknownProblem where the library has none."""
    path = _path(identity)
    if not path.exists():
        raise UnknownProblem(f"{path.parent} has no incident {identity!r}: name its file, which puts it there")
    incident = read_incident(path)
    if incident.id != identity:
        raise ProblemError(f"{path} was edited: it is {incident.id} now. Name that file, and remove this one")
    return incident


def _path(identity: str) -> Path:
    return incidents_directory() / f"{identity}.yaml"
