"""Google's Gemini CLI (npm `@google/gemini-cli`), headless with its stream of JSON.

Its home directory is in the workspace, so that the user's settings and sessions have no effect.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from zero.adapters.base import Adapter, Event, Plan, result_text
from zero.adapters.registry import adapter
from zero.trajectory import Trajectory, Usage


@adapter
class Gemini(Adapter):
    name = "gemini"
    program = "gemini"
    install = "npm install -g @google/gemini-cli"
    default_provider = "google"
    api_root = ""
    value_options: ClassVar[frozenset[str]] = frozenset(
        "--policy --admin-policy --allowed-mcp-server-names --allowed-tools -e --extensions --include-directories "
        "--approval-mode".split()
    )
    reserved_options: ClassVar[frozenset[str]] = frozenset(
        "-p --prompt -o --output-format -r --resume --session-id --session-file -w --worktree".split()
    )

    def settings(self, plan: Plan) -> dict[str, Any]:
        servers: dict[str, Any] = {}
        for server in plan.servers:
            if server.remote:
                table: dict[str, Any] = {"httpUrl": server.url, "trust": True}
                if server.bearer_token_env_var:
                    table["headers"] = {"Authorization": f"Bearer ${server.bearer_token_env_var}"}
            else:
                passed = {name: f"${name}" for name in server.env_vars}
                table = {"command": server.command, "args": list(server.args), "trust": True, "timeout": 300_000}
                table["env"] = {**dict(server.env), **passed}
            servers[server.name] = table
        settings: dict[str, Any] = {
            "mcpServers": servers,
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "context": {"fileName": ["AGENTS.md"]},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "tools": {"exclude": ["google_web_search", "web_fetch"]},
        }
        if plan.max_turns is not None:
            settings["model"] = {"maxSessionTurns": plan.max_turns}
        if plan.otel_url:
            settings["telemetry"] = {"enabled": True, "target": "local", "otlpProtocol": "http"}
            settings["telemetry"] |= {"otlpEndpoint": plan.otel_url, "logPrompts": True}
        return settings

    def files(self, plan: Plan) -> Mapping[str, str]:
        return {".gemini/settings.json": json.dumps(self.settings(plan), indent=2)}

    def environment(self, plan: Plan, host_environment: Mapping[str, str]) -> dict[str, str]:
        variables = {
            "HOME": str(plan.workspace),
            "GEMINI_CLI_NO_RELAUNCH": "1",
            **self.key(plan, host_environment, "GEMINI_API_KEY"),
        }
        if plan.provider is not None and plan.provider.base_url:
            variables["GOOGLE_GEMINI_BASE_URL"] = plan.provider.base_url
        return variables

    def _options(self, plan: Plan) -> list[str]:
        call = plan.invocation
        options = ["--skip-trust", "--approval-mode", "yolo"]
        if call.model:
            options += ["-m", call.model]
        for place in plan.evidence:
            options += ["--include-directories", str(place)]
        return [*options, *call.extra]

    def start(self, plan: Plan) -> list[str]:
        if plan.invocation.interactive:
            query = ["-i", plan.invocation.query] if plan.invocation.query else []
            return [plan.program, *self._options(plan), *query]
        return [plan.program, *self._options(plan), "-o", "stream-json", "-p", plan.first_message]

    def resume(self, plan: Plan, session: str, message: str) -> list[str]:
        options = [*self._options(plan), "-o", "stream-json", "--resume", session or "latest"]
        return [plan.program, *options, "-p", message]

    def read(self, line: str, trajectory: Trajectory) -> None:
        event = Event.parse(line)
        if event is None:
            return
        kind = event.text("type")
        if kind == "init":
            trajectory.session = event.text("session_id") or trajectory.session
            trajectory.model = event.text("model") or trajectory.model
        elif kind == "message" and event.text("role") == "assistant":
            trajectory.append_text(event.text("content"))
        elif kind == "tool_use":
            trajectory.add_tool_call(event.text("tool_id"), event.text("tool_name"), event.mapping("parameters"))
        elif kind == "tool_result":
            failed = event.text("status") == "error"
            trajectory.add_tool_result(event.text("tool_id"), result_text(event.data.get("output")), failed=failed)
        elif kind == "error":
            trajectory.add_error(event.text("message"))
        elif kind == "result":
            stats = event.child("stats")
            trajectory.set_attempt_usage(
                Usage(stats.number("input_tokens"), stats.number("output_tokens"), stats.number("cached"))
            )
            if event.text("status") == "error":
                trajectory.add_error(event.child("error").text("message") or "the CLI reports an error")
