"""The do-nothing agent: answers every stage as if all were well. The floor of every table."""

from __future__ import annotations

import re

from srearena.conductor.agents import agent

_ANSWERS = {"Yes or No": 'submit("No")', "Which components": "submit([])", "Repair": "submit()"}


@agent("nothing")
class NothingAgent:
    async def get_action(self, state: str) -> str:
        for words, answer in _ANSWERS.items():
            if words in state:
                return f"```\n{answer}\n```"
        example = re.search(r"Answer with (submit\(.*\))\.", state)
        return f"```\n{example.group(1) if example else 'submit()'}\n```"
