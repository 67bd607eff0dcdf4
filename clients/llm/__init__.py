"""The agent with a large language model inside (`--agent llm --model NAME`).

`wires` speak with endpoints, `endpoint` asks until there is an answer, `providers` knows who serves which model, and
`agent` is the loop. Nothing here knows a problem or an application.
"""

from clients.llm.agent import LlmAgent
from clients.llm.settings import Settings

__all__ = ["LlmAgent", "Settings"]
