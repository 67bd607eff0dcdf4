"""Any program of the user's: a command line with placeholders (`--cli command --command "..."`).

Placeholders: {model} {query} {workspace} {prompt_file} {output_file} {mcp_config} {attempt}. The line is split as a
shell would, before anything is filled in, so that no value is ever taken for an option or a second command. When the
output is not good the program is run again, with the complaint as its query. Its standard output is what it says.
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
        """Only `exec`, a model and a query have a meaning here; it is never interactive."""
        found = super().parse(arguments, version)
        if found.extra:
            raise RequestError(f"{found.extra[0]} means nothing to a command template: write it into --command")
        return Invocation(interactive=False, model=found.model, query=found.query)

    def files(self, plan: Plan) -> Mapping[str, str]:
        return {"mcp.json": json.dumps(mcp_document(plan), indent=2)}

    def _filled(self, plan: Plan, query: str, attempt: str) -> list[str]:
        places = {
            "model": plan.invocation.model,
            "query": query,
            "workspace": str(plan.workspace),
            "prompt_file": str(plan.workspace / self.instructions_file),
            "output_file": str(plan.output),
            "mcp_config": str(plan.workspace / "mcp.json"),
            "attempt": attempt,
        }

        def one(match: re.Match[str]) -> str:
            if match[1] not in places:
                raise RequestError(f"--command has an unknown placeholder {match[0]}: one of {', '.join(places)}")
            return places[match[1]]

        first, *rest = split(plan.template)
        return [plan.program if plan.program else first, *(_PLACEHOLDER.sub(one, word) for word in rest)]

    def environment(self, plan: Plan, given: Mapping[str, str]) -> dict[str, str]:
        names = {"ZERO_OUTPUT_FILE": str(plan.output), "ZERO_PROMPT_FILE": str(plan.workspace / self.instructions_file)}
        key = plan.provider.key_variable if plan.provider else ""
        if plan.provider is not None:
            names["ZERO_BASE_URL"] = plan.provider.base_url
        return {**names, **(self.key(plan, given, key) if key else {})}

    def start(self, plan: Plan) -> list[str]:
        self._attempts += 1
        return self._filled(plan, plan.first_message, str(self._attempts))

    def resume(self, plan: Plan, session: str, message: str) -> list[str]:
        self._attempts += 1
        return self._filled(plan, message, str(self._attempts))

    def read(self, line: str, trajectory: Trajectory) -> None:
        if line.strip():
            trajectory.said(line)
