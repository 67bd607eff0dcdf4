"""Python agents for tests: classes with `get_action`, as users write them."""

from __future__ import annotations

import json
import re
from typing import Any


class Finder:
    """Asks for warnings, then blames the workload of the pod they speak of."""

    def __init__(self, price: float = 0.0) -> None:
        self._price = price
        self._seen = ""

    async def get_action(self, state: str) -> str:
        found = re.search(r"shop/Pod/([a-z]+)-5d8f", state)
        if found is None:
            return "Let me look.\n```\nincident_timeline(limit=5)\n```"
        name = f"shop/Deployment/{found[1]}"
        entity = {"name": name, "contributing_factor": True, "reasoning": "image does not exist", "evidence": "event"}
        return f"submit({json.dumps({'entities': [entity], 'propagations': [], 'alerts_explained': []})!r})"

    def usage(self) -> dict[str, Any]:
        return {"tokens_in": 100, "tokens_out": 10, "cost": self._price}


class Babbler:
    async def get_action(self, state: str) -> str:
        return "I wonder."


class Crasher:
    async def get_action(self, state: str) -> str:
        raise RuntimeError("no credit left")


class Alarmist:
    """For live problems: something is wrong."""

    async def get_action(self, state: str) -> str:
        return 'submit("Yes")'
