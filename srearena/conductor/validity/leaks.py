"""Does anything an agent can see give the injection away?

Everything readable is read, with the agent's identity: every object it may list, with managed fields and events, the
logs of the pods, its kubeconfig, and the texts it is given. None may hold the problem's id, its family,
or a word that only somebody who breaks things on purpose would use.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from srearena.conductor.episode.episode import Episode
from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes

_TELLING = re.compile(
    r"(?<![A-Za-z])(srearena|aiopslab|fault(?:y|s)?|fault[-_ ]inject\w*|inject(?:ed|or|ion)|chaos\w*|sabotage\w*"
    r"|oracle|benchmark\w*|ground[-_ ]?truth|misconfig\w*|broken|mitigat\w*)(?![A-Za-z])",
    re.IGNORECASE,
)
_LONGEST_LOG = 500
_CONTEXT = 60


def leaks(episode: Episode) -> list[str]:
    """What gives the answer away and where, in words; empty if nothing does."""
    assert episode.kubeconfig is not None
    names = {episode.problem.id, episode.problem.family} - {""}
    own = re.compile("|".join(re.escape(name) for name in sorted(names)) or r"(?!)")
    found: list[str] = []
    for place, text in _everything(episode):
        for pattern in (own, _TELLING):
            for match in pattern.finditer(text):
                near = text[max(0, match.start() - _CONTEXT) : match.end() + _CONTEXT].replace("\n", " ")
                found.append(f"{place}: {match.group()!r} in ...{near}...")
    return found


def _everything(episode: Episode) -> Iterator[tuple[str, str]]:
    assert episode.kubeconfig is not None
    yield "the kubeconfig", episode.kubeconfig.read_text()
    yield "the path of the kubeconfig", str(episode.kubeconfig)
    yield "the description", episode.description
    with Kubernetes(episode.kubeconfig) as api:
        for resource in api.resources():
            if "list" not in resource.verbs or resource.kind == "CustomResourceDefinition":
                continue
            try:
                objects = api.list(resource.name)
            except ServiceError:
                continue  # what the agent may not read gives nothing away
            for obj in objects:
                metadata = obj.get("metadata", {})
                yield f"{resource.plural}/{metadata.get('name')}", json.dumps(obj)
        for namespace in episode.problem.app.namespaces:
            for pod in api.list("pods", namespace):
                name = pod["metadata"]["name"]
                for container in pod["spec"]["containers"]:
                    try:
                        yield (
                            f"logs of {name}",
                            api.logs(name, namespace, container=container["name"], tail=_LONGEST_LOG),
                        )
                    except ServiceError:
                        continue
