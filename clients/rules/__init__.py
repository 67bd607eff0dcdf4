"""The rule-based agent: no model, and the same actions as any agent. Its rules are about Kubernetes in general.

`observations` has the queries and parses their output, `findings` has the rules, `agent` handles the stages.
"""

from clients.rules.agent import RulesAgent

__all__ = ["AGENT", "RulesAgent"]

AGENT = RulesAgent
