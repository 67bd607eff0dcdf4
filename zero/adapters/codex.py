"""OpenAI's Codex CLI (npm `@openai/codex`), including options of older versions.

Its home is the workspace: `config.toml` is written there, `AGENTS.md` is read from there. `codex exec --json` prints
events as JSON lines; their token counts accumulate over a session, including resumed ones. MCP servers are marked as
required, since otherwise the first turn may start before their tools are available.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import tomli_w

from zero.adapters.base import Adapter, Event, Invocation, Plan, result_text
from zero.adapters.registry import adapter
from zero.servers import Server
from zero.trajectory import Trajectory, Usage

_BUILT_IN = Path(__file__).parents[1] / "zero-config"
_TEMPLATE = _BUILT_IN / "config.toml"
_POLICIES = _BUILT_IN / "policy"


def _server_table(server: Server, approval: str) -> dict[str, Any]:
    table: dict[str, Any] = {"required": True, "startup_timeout_sec": 60, "tool_timeout_sec": 300}
    if approval == "never":
        # Except in danger-full-access, Codex refuses calls of MCP tools that need an approval, which no user can give.
        table["default_tools_approval_mode"] = "approve"
    if server.remote:
        table["url"] = server.url
        if server.bearer_token_env_var:
            table["bearer_token_env_var"] = server.bearer_token_env_var
        return table
    table |= {"command": server.command, "args": list(server.args)}
    if server.env:
        table["env"] = dict(server.env)
    if server.env_vars:
        table["env_vars"] = list(server.env_vars)
    return table


def _value(words: list[str]) -> str:
    return words[1] if len(words) > 1 else ""


@adapter
class Codex(Adapter):
    name = "codex"
    program = "codex"
    install = "npm install -g @openai/codex"
    default_provider = "litellm"
    value_options: ClassVar[frozenset[str]] = frozenset(
        "-c --config --enable --disable -i --image --local-provider -p --profile -s --sandbox -a --ask-for-approval "
        "--add-dir --output-schema --color -o --output-last-message --thread-source".split()
    )
    reserved_options: ClassVar[frozenset[str]] = frozenset({"-C", "--cd", "--json", "--worktree", "--ephemeral"})

    def __init__(self) -> None:
        self._thread_total = Usage()
        self._before_attempt = Usage()
        self._sandbox_mode = ""
        self._approval = "never"

    # --- the command line -----------------------------------------------------------------------------------------

    def parse(self, arguments: Sequence[str], version: str) -> Invocation:
        """Translate options of older versions to their present equivalents, with a note about each."""
        invocation = super().parse(arguments, version)
        passed: list[str] = []
        notes: list[str] = []
        words = list(invocation.extra)
        while words:
            option, _, joined = words[0].partition("=")
            takes = 2 if option in self.value_options and not joined and len(words) > 1 else 1
            group, words = words[:takes], words[takes:]
            value = joined or _value(group)
            if option == "--full-auto":
                self._sandbox_mode = "workspace-write"
                notes.append(
                    "--full-auto is set in config.toml as sandbox_mode=workspace-write, approval_policy=never: "
                    f"Codex today has no such option (installed: {version})"
                )
            elif option in ("-a", "--ask-for-approval"):
                self._approval = {"untrusted": "on-request", "on-failure": "on-request"}.get(value, value)
                notes.append(f"{option} {value} is set in config.toml as approval_policy={self._approval}")
            elif option in ("-s", "--sandbox"):
                self._sandbox_mode = value
            elif option in ("-c", "--config") and re.fullmatch(r"model_providers\.[\w-]+\.wire_api=\W?chat\W?", value):
                notes.append(
                    'wire_api="chat" is refused by Codex today: use --wire-api chat, which goes through LiteLLM'
                )
            else:
                passed += group
        return replace(invocation, extra=tuple(passed), notes=tuple(notes))

    def start(self, plan: Plan) -> list[str]:
        call = plan.invocation
        model = ["-m", call.model] if call.model else []
        if call.interactive:
            return [plan.program, *model, *call.extra, *([call.query] if call.query else [])]
        return [plan.program, "exec", "--json", "--skip-git-repo-check", *model, *call.extra, "--", plan.first_message]

    def resume(self, plan: Plan, session: str, message: str) -> list[str]:
        call = plan.invocation
        model = ["-m", call.model] if call.model else []
        # Options go before `resume`, which accepts only some of them.
        options = ["--json", "--skip-git-repo-check", *model, *call.extra]
        return [plan.program, "exec", *options, "resume", *([session] if session else ["--last"]), "--", message]

    # --- configuration --------------------------------------------------------------------------------------------

    def files(self, plan: Plan) -> Mapping[str, str]:
        policies = {
            f"rules/{path.name}": path.read_text(encoding="utf-8") for path in sorted(_POLICIES.glob("*.rules"))
        }
        return {"config.toml": tomli_w.dumps(self.config(plan)), **policies}

    def config(self, plan: Plan) -> dict[str, Any]:
        writable = [str(plan.workspace)]
        config: dict[str, Any] = {
            **tomllib.loads(_TEMPLATE.read_text(encoding="utf-8")),
            # Inside Zero's sandbox Codex's sandbox would be nested, which not every kernel allows.
            "sandbox_mode": "danger-full-access" if plan.sandboxed else self._sandbox_mode or "workspace-write",
            "approval_policy": self._approval,
            "sandbox_workspace_write": {"writable_roots": writable, "network_access": True},
            "projects": {str(plan.workspace): {"trust_level": "trusted"}},
        }
        if plan.servers:
            config["mcp_servers"] = {server.name: _server_table(server, self._approval) for server in plan.servers}
        if plan.provider is not None:
            table: dict[str, Any] = {"name": plan.provider.name, "base_url": plan.provider.base_url}
            table["wire_api"] = "responses"
            if plan.provider.key_variable:
                table["env_key"] = plan.provider.key_variable
            if plan.provider.query:
                table["query_params"] = dict(plan.provider.query)
            # Codex reserves names such as `openai`.
            name = f"zero_{re.sub('[^A-Za-z0-9_]', '_', plan.provider.name)}"
            config |= {"model_provider": name, "model_providers": {name: table}}
        if plan.otel_url:
            exporters = {
                kind: {"otlp-http": {"endpoint": f"{plan.otel_url}/v1/{path}", "protocol": "json"}}
                for kind, path in (("exporter", "logs"), ("trace_exporter", "traces"))
            }
            config["otel"] = {"environment": "zero", "log_user_prompt": True, **exporters}
        return config

    def environment(self, plan: Plan, host_environment: Mapping[str, str]) -> dict[str, str]:
        key = plan.provider.key_variable if plan.provider else ""
        return {"CODEX_HOME": str(plan.workspace), **(self.key(plan, host_environment, key) if key else {})}

    # --- events ---------------------------------------------------------------------------------------------------

    def read(self, line: str, trajectory: Trajectory) -> None:
        event = Event.parse(line)
        if event is None:
            return
        kind = event.text("type")
        if kind == "thread.started":
            trajectory.session = event.text("thread_id") or trajectory.session
            self._before_attempt = self._thread_total
        elif kind == "turn.completed":
            self._total(event.child("usage"), trajectory)
        elif kind in ("turn.failed", "error"):
            trajectory.add_error(event.child("error").text("message") or event.text("message"))
        elif kind in ("item.started", "item.completed"):
            self._item(event.child("item"), kind == "item.completed", trajectory)

    def _total(self, usage: Event, trajectory: Trajectory) -> None:
        total = Usage(usage.number("input_tokens"), usage.number("output_tokens"), usage.number("cached_input_tokens"))
        before = self._before_attempt if total.prompt >= self._before_attempt.prompt else Usage()
        self._thread_total = total
        trajectory.set_attempt_usage(
            Usage(total.prompt - before.prompt, total.completion - before.completion, total.cached - before.cached)
        )

    def _item(self, item: Event, complete: bool, trajectory: Trajectory) -> None:
        kind = item.text("type")
        call = f"{trajectory.attempt}.{item.text('id')}"
        if kind == "agent_message":
            trajectory.add_text(item.text("text"))
        elif kind == "reasoning":
            trajectory.add_reasoning(item.text("text"))
        elif kind == "error":
            trajectory.add_error(item.text("message"))
        elif kind:
            function, arguments = _tool_call(item, kind)
            if not trajectory.has_tool_call(call):
                trajectory.add_tool_call(call, function, arguments)
            if complete:
                failed = item.text("status") == "failed" or item.data.get("exit_code") not in (None, 0)
                trajectory.add_tool_result(call, _tool_result(item, kind), failed=failed)

    def usage_from_telemetry(self, attributes: Mapping[str, Any]) -> Usage | None:
        if attributes.get("event.name") != "codex.sse_event" or attributes.get("event.kind") != "response.completed":
            return None

        def count(name: str) -> int:
            try:
                return int(attributes.get(name) or 0)
            except (TypeError, ValueError):
                return 0

        return Usage(count("input_token_count"), count("output_token_count"), count("cached_token_count"))


def _tool_call(item: Event, kind: str) -> tuple[str, dict[str, Any]]:
    if kind == "mcp_tool_call":
        return f"{item.text('server')}.{item.text('tool')}", item.mapping("arguments")
    if kind == "command_execution":
        return "shell", {"command": item.text("command")}
    arguments = {key: value for key, value in item.data.items() if key not in ("id", "type", "status")}
    return kind, arguments


def _tool_result(item: Event, kind: str) -> str:
    if kind == "command_execution":
        return item.text("aggregated_output")
    if kind == "mcp_tool_call":
        error = item.data.get("error")
        return result_text(error) if error else result_text(item.child("result").data.get("content"))
    return item.text("status")
