"""Searches everything an agent can read for words that disclose the injection.

With the agent's identity it reads every object that the agent may list, with managed fields and events, the logs of the
pods, the kubeconfig, and the texts of the task. None may contain the problem's id, its family, or a word that only
fault injection uses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from srearena.conductor.episode.episode import Episode
from srearena.conductor.validity.readable import readable_logs, readable_objects
from srearena.service.kubernetes import Kubernetes

_REVEALING = re.compile(
    r"(?<![A-Za-z])(srearena|aiopslab|fault(?:y|s)?|fault[-_ ]inject\w*|inject(?:ed|or|ion)|chaos\w*|sabotage\w*"
    r"|oracle|benchmark\w*|ground[-_ ]?truth|misconfig\w*|broken|mitigat\w*)(?![A-Za-z])",
    re.IGNORECASE,
)
_CONTEXT = 60
"""Characters shown around a match."""


def leaks(episode: Episode) -> list[str]:
    """Describe each disclosing word with its place and context; empty where there is none."""
    assert episode.kubeconfig is not None
    names = {episode.problem.id, episode.problem.family} - {""}
    of_problem = re.compile("|".join(re.escape(name) for name in sorted(names)) or r"(?!)")
    matches: list[str] = []
    for source, text in _readable_texts(episode):
        for pattern in (of_problem, _REVEALING):
            for match in pattern.finditer(text):
                near = text[max(0, match.start() - _CONTEXT) : match.end() + _CONTEXT].replace("\n", " ")
                matches.append(f"{source}: {match.group()!r} in ...{near}...")
    return matches


def _readable_texts(episode: Episode) -> Iterator[tuple[str, str]]:
    assert episode.kubeconfig is not None
    yield "the kubeconfig", episode.kubeconfig.read_text()
    yield "the path of the kubeconfig", str(episode.kubeconfig)
    yield "the description", episode.description
    with Kubernetes(episode.kubeconfig) as api:
        for resource, obj in readable_objects(api):
            yield f"{resource.plural}/{obj.get('metadata', {}).get('name')}", json.dumps(obj)
        for log in readable_logs(api):
            yield f"logs of {log.pod}", log.text
