"""The agent with a large language model (`--agent llm --model NAME`).

`agent` is the loop; the model client is `srearena.llm`. Nothing here depends on a problem or an application.
"""

from clients.llm.agent import LlmAgent
from clients.llm.settings import Settings

__all__ = ["AGENT", "LlmAgent", "Settings"]

AGENT = LlmAgent
