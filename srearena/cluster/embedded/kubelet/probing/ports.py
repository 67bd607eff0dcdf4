"""Ports of a container by number or by name."""

from __future__ import annotations

from typing import Any

from srearena.cluster.embedded.objects import Obj


def port_number(container: Obj, port: Any) -> int | None:
    """What an IntOrString port means for a container; None where it has no port of that name."""
    if isinstance(port, int):
        return port
    text = str(port or "")
    for declared in container.get("ports") or ():
        if declared.get("name") == text:
            return int(declared["containerPort"])
    return int(text) if text.isdigit() else None
