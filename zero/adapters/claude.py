"""Anthropic's Claude Code (npm `@anthropic-ai/claude-code`), in print mode with its stream of JSON.

Only the MCP servers of the generated file are used; tools are allowed by name, so that no approval is needed. The CLI
reports the cost of each run and accepts a budget.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from zero.adapters.base import Adapter, Event, Plan, result_text
from zero.adapters.registry import adapter
from zero.trajectory import Trajectory, Usage

_TOOLS = ("Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "TodoWrite", "Write")
_SETTINGS = ".claude"


def mcp_document(plan: Plan) -> dict[str, Any]:
    """The `mcpServers` document; the CLI substitutes variables written as `${NAME}`."""
    servers: dict[str, Any] = {}
    for server in plan.servers:
        if server.remote:
            table: dict[str, Any] = {"type": "http", "url": server.url}
            if server.bearer_token_env_var:
                table["headers"] = {"Authorization": f"Bearer ${{{server.bearer_token_env_var}}}"}
        else:
            passed = {name: f"${{{name}}}" for name in server.env_vars}
            table = {"command": server.command, "args": list(server.args), "env": {**dict(server.env), **passed}}
        servers[server.name] = table
    return {"mcpServers": servers}


@adapter
class Claude(Adapter):
    name = "claude"
    program = "claude"
    install = "npm install -g @anthropic-ai/claude-code"
    default_provider = "anthropic"
    api_root = ""
    instructions_file = "CLAUDE.md"
    reports_cost = True
    value_options: ClassVar[frozenset[str]] = frozenset(
        "--add-dir --agent --agents --allowedTools --allowed-tools --append-system-prompt --betas --disallowedTools "
        "--disallowed-tools --effort --fallback-model --permission-mode --settings --system-prompt --tools".split()
    )
    reserved_options: ClassVar[frozenset[str]] = frozenset(
        "-p --print --output-format --mcp-config --strict-mcp-config --resume -r --continue -c --session-id".split()
    )

    def files(self, plan: Plan) -> Mapping[str, str]:
        return {"mcp.json": json.dumps(mcp_document(plan), indent=2)}

    def environment(self, plan: Plan, host_environment: Mapping[str, str]) -> dict[str, str]:
        variables = {
            "CLAUDE_CONFIG_DIR": str(plan.workspace / _SETTINGS),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            # Wait for the servers before the first turn; otherwise a slow machine starts without their tools.
            "MCP_CONNECTION_NONBLOCKING": "0",
            "MCP_CONNECT_TIMEOUT_MS": "60000",
            "MCP_TIMEOUT": "60000",
            **self.key(plan, host_environment, "ANTHROPIC_API_KEY"),
        }
        if plan.provider is not None and plan.provider.base_url:
            variables["ANTHROPIC_BASE_URL"] = plan.provider.base_url
        if plan.otel_url:
            variables |= {
                "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
                "OTEL_LOGS_EXPORTER": "otlp",
                "OTEL_METRICS_EXPORTER": "otlp",
            }
            variables |= {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_EXPORTER_OTLP_ENDPOINT": plan.otel_url}
            variables |= {"OTEL_LOGS_EXPORT_INTERVAL": "1000", "OTEL_METRIC_EXPORT_INTERVAL": "5000"}
        return variables

    def _options(self, plan: Plan) -> list[str]:
        call = plan.invocation
        allowed = [*_TOOLS, *(f"mcp__{server.name}" for server in plan.servers)]
        options = ["--mcp-config", "mcp.json", "--strict-mcp-config", "--allowed-tools", ",".join(allowed)]
        options += ["--disallowed-tools", "WebSearch,WebFetch"]
        if call.model:
            options += ["--model", call.model]
        if plan.max_cost is not None and not call.interactive:
            options += ["--max-budget-usd", f"{plan.max_cost:g}"]
        for place in plan.evidence:
            options += ["--add-dir", str(place)]
        return [*options, *call.extra]

    def start(self, plan: Plan) -> list[str]:
        if plan.invocation.interactive:
            query = [plan.invocation.query] if plan.invocation.query else []
            return [plan.program, *self._options(plan), *(["--", *query] if query else [])]
        return [*self._headless(plan), "--", plan.first_message]

    def _headless(self, plan: Plan) -> list[str]:
        return [plan.program, "-p", "--output-format", "stream-json", "--verbose", *self._options(plan)]

    def resume(self, plan: Plan, session: str, message: str) -> list[str]:
        how = ["--resume", session] if session else ["--continue"]
        return [*self._headless(plan), *how, "--", message]

    def read(self, line: str, trajectory: Trajectory) -> None:
        event = Event.parse(line)
        if event is None:
            return
        kind = event.text("type")
        if kind == "system" and event.text("subtype") == "init":
            trajectory.session = event.text("session_id") or trajectory.session
            trajectory.model = event.text("model") or trajectory.model
            for server in event.children("mcp_servers"):
                if server.text("status") == "failed":
                    trajectory.add_error(f"the MCP server {server.text('name')} did not start")
        elif kind == "assistant":
            self._assistant(event.child("message"), trajectory)
        elif kind == "user":
            for part in event.child("message").children("content"):
                if part.text("type") == "tool_result":
                    failed = part.data.get("is_error") is True
                    trajectory.add_tool_result(
                        part.text("tool_use_id"), result_text(part.data.get("content")), failed=failed
                    )
        elif kind == "result":
            self._result(event, trajectory)

    def _assistant(self, message: Event, trajectory: Trajectory) -> None:
        turn_id = message.text("id")
        for part in message.children("content"):
            kind = part.text("type")
            if kind == "text":
                trajectory.add_text(part.text("text"), turn_id)
            elif kind == "thinking":
                trajectory.add_reasoning(part.text("thinking"), turn_id)
            elif kind == "tool_use":
                trajectory.add_tool_call(part.text("id"), part.text("name"), part.mapping("input"), turn_id)
        if message.child("usage").data and trajectory.lacks_usage(turn_id):
            trajectory.add_usage(_usage(message.child("usage")), turn_id, partial=True)

    def _result(self, event: Event, trajectory: Trajectory) -> None:
        cost = event.data.get("total_cost_usd")
        usage = _usage(event.child("usage"))
        cost_usd = float(cost) if isinstance(cost, int | float) else None
        trajectory.set_attempt_usage(Usage(usage.prompt, usage.completion, usage.cached, cost_usd))
        if event.data.get("is_error") is True:
            trajectory.add_error(event.text("result") or event.text("subtype"))


def _usage(usage: Event) -> Usage:
    cached = usage.number("cache_read_input_tokens")
    fresh = usage.number("input_tokens") + usage.number("cache_creation_input_tokens")
    return Usage(fresh + cached, usage.number("output_tokens"), cached)
