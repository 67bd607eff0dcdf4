"""The rule-based agent: no model, and the rights of any agent. Its rules are about Kubernetes in general.

`system` reads objects and alerts, `topology` finds the calls between workloads, `changes` judges edits and revisions,
`runbooks` turns them into hypotheses, `hypotheses` explains symptoms away, `commands` writes repairs, `agent` handles
the stages.
`recording` and `suspects` are the agent on recorded incidents.
"""

from clients.rules.agent import RulesAgent

__all__ = ["AGENT", "RulesAgent"]

AGENT = RulesAgent
