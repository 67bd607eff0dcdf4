"""The do-nothing agent: answers every stage as if the system were healthy. The baseline of every table."""

from __future__ import annotations

_ANSWERS = {
    "Yes or No": 'submit("No")',
    "Which components": "submit([])",
    "What kind of fault": 'submit({"system_level": "None", "fault_type": "None"})',
    "What happened": 'submit({"entities": []})',
    "Repair": "submit()",
}


class NothingAgent:
    """Submits the answers for a healthy system."""

    async def get_action(self, state: str) -> str:
        for words, answer in _ANSWERS.items():
            if words in state:
                return f"```\n{answer}\n```"
        return "```\nsubmit()\n```"


AGENT = NothingAgent
