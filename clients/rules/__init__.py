"""The rule-based agent: no model, only what any agent may use. It knows Kubernetes, and no application and no problem.

`observations` says what to ask and reads the answers, `findings` draws conclusions, `agent` goes through the stages.
"""

from clients.rules.agent import RulesAgent

__all__ = ["RulesAgent"]
