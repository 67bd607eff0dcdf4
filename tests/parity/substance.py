"""What of a view an operator acts on: exit codes, phases, reasons, conditions, reasons of events.

Two views are the same in substance when this much is equal; wording, drawn names and unasked-for detail may differ.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from tests.parity.transcripts import View

Substance = tuple[int, tuple[str, ...]]

_ACTED_ON = ("phase", "reason", "exitCode", "restartCount", "ready", "readyReplicas", "availableReplicas", "code")
_REFUSAL = re.compile(r"^(?:Error from server|Warning|error:|Error:)(?: \((\w+)\))?", re.MULTILINE)
_DESCRIBED = re.compile(
    r"^ *(?:(?:Status|State|Last State|Reason|Exit Code|Ready|Restart Count|Phase|Pods Status|Replicas):.*"
    r"|(?:Initialized|ContainersReady|PodScheduled|PodReadyToStartContainers|Available|Progressing) .*)$",
    re.MULTILINE,
)


def substance(view: View) -> Substance:
    """What an operator would act on, in an order that does not matter."""
    return view.exit, tuple(sorted((*_shown(view), *_refused(view.errors))))


def _shown(view: View) -> list[str]:
    command, output = view.command, view.output
    if command.startswith("events"):
        # Type, reason and object; the message is wording.
        return sorted({line.partition(": ")[0] for line in output.splitlines()})
    if "jsonpath=" in command:
        return [] if command.rstrip("}").endswith("message") else [output]
    if output.startswith(("apiVersion:", "kind:", "items:")):
        return [found for document in yaml.safe_load_all(output) for found in _parts(document)]
    if command.startswith("describe"):
        return [" ".join(line.split()) for line in _DESCRIBED.findall(output)]
    if command.startswith(("get", "helm list", "helm history")):
        return [line for line in output.splitlines() if " | " in line] or _refused(output)
    return _refused(output)


def _refused(text: str) -> list[str]:
    return [match.group() for match in _REFUSAL.finditer(text)]


def _parts(value: Any) -> list[str]:
    """Phases, reasons and conditions anywhere inside an object."""
    found: list[str] = []
    if isinstance(value, dict):
        if "type" in value and "status" in value and isinstance(value["status"], str):
            found.append(f"condition {value['type']}={value['status']}")
        for key, item in value.items():
            if key in _ACTED_ON and not isinstance(item, dict | list):
                found.append(f"{key}={item}")
            else:
                found += _parts(item)
    elif isinstance(value, list):
        for item in value:
            found += _parts(item)
    return found
