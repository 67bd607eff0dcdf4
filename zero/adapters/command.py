"""Any other program: a command line with placeholders (`--cli command --command "..."`).

Placeholders: {model} {query} {workspace} {prompt_file} {output_file} {mcp_config} {attempt}. The line is split like in
a shell before placeholders are substituted, so that a value can never become an option or a second command. If the
output is invalid, the program runs again with the complaints as its query. Its standard output is the agent's text.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence

from zero.adapters.base import Adapter, Invocation, Plan
from zero.adapters.claude import mcp_document
from zero.adapters.registry import adapter
from zero.errors import RequestError
from zero.trajectory import Trajectory

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def split(template: str) -> list[str]:
    """The words of a command template."""
    try:
        words = shlex.split(template)
    except ValueError as problem:
        raise RequestError(f"--command cannot be split into words: {problem}") from problem
    if not words:
        raise RequestError("--cli command needs --command: the command line to run")
    return words


@adapter
class Command(Adapter):
    name = "command"
    program = ""

    def __init__(self) -> None:
        self._attempts = 0

    def parse(self, arguments: Sequence[str], version: str) -> Invocation:
        """Accept only `exec`, a model and a query; the program is never interactive."""
        invocation = super().parse(arguments, version)
        if invocation.extra:
            raise RequestError(f"{invocation.extra[0]} has no meaning for a command template: write it into --command")
        return Invocation(interactive=False, model=invocation.model, query=invocation.query)

    def files(self, plan: Plan) -> Mapping[str, str]:
        return {"mcp.json": json.dumps(mcp_document(plan), indent=2)}

    def _filled(self, plan: Plan, query: str, attempt: str) -> list[str]:
        values = {
            "model": plan.invocation.model,
            "query": query,
            "workspace": str(plan.workspace),
            "prompt_file": str(plan.workspace / self.instructions_file),
            "output_file": str(plan.output),
            "mcp_config": str(plan.workspace / "mcp.json"),
            "attempt": attempt,
        }

        def substitute(match: re.Match[str]) -> str:
            if match[1] not in values:
                raise RequestError(f"--command has an unknown placeholder {match[0]}: one of {', '.join(values)}")
            return values[match[1]]

        first, *words = split(plan.template)
        return [plan.program if plan.program else first, *(_PLACEHOLDER.sub(substitute, word) for word in words)]

    def environment(self, plan: Plan, host_environment: Mapping[str, str]) -> dict[str, str]:
        names = {"ZERO_OUTPUT_FILE": str(plan.output), "ZERO_PROMPT_FILE": str(plan.workspace / self.instructions_file)}
        key = plan.provider.key_variable if plan.provider else ""
        if plan.provider is not None:
            names["ZERO_BASE_URL"] = plan.provider.base_url
        return {**names, **(self.key(plan, host_environment, key) if key else {})}

    def start(self, plan: Plan) -> list[str]:
        self._attempts += 1
        return self._filled(plan, plan.first_message, str(self._attempts))

    def resume(self, plan: Plan, session: str, message: str) -> list[str]:
        self._attempts += 1
        return self._filled(plan, message, str(self._attempts))

    def read(self, line: str, trajectory: Trajectory) -> None:
        if line.strip():
            trajectory.add_text(line)
