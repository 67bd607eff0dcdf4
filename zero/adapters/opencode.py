"""OpenCode (npm `opencode-ai`), with its JSON events.

The provider is configured as an OpenAI-compatible one with chat completions; models are named `provider/model` on the
command line. Its directories are in the workspace.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from zero.adapters.base import Adapter, Event, Plan, result_text
from zero.adapters.registry import adapter
from zero.trajectory import Trajectory, Usage

_PROVIDER = "zero"


@adapter
class OpenCode(Adapter):
    name = "opencode"
    program = "opencode"
    install = "npm install -g opencode-ai"
    default_provider = "litellm"
    value_options: ClassVar[frozenset[str]] = frozenset(
        "--agent --variant --log-level --command -f --file --title".split()
    )
    reserved_options: ClassVar[frozenset[str]] = frozenset(
        "--format -s --session -c --continue --dir --attach --port".split()
    )

    def config(self, plan: Plan) -> dict[str, Any]:
        servers: dict[str, Any] = {}
        for server in plan.servers:
            if server.remote:
                table: dict[str, Any] = {"type": "remote", "url": server.url, "enabled": True}
                if server.bearer_token_env_var:
                    table["headers"] = {"Authorization": f"Bearer {{env:{server.bearer_token_env_var}}}"}
            else:
                passed = {name: f"{{env:{name}}}" for name in server.env_vars}
                table = {"type": "local", "command": [server.command, *server.args], "enabled": True}
                table |= {"environment": {**dict(server.env), **passed}, "timeout": 60_000}
            servers[server.name] = table
        config: dict[str, Any] = {
            "autoupdate": False,
            "share": "disabled",
            "snapshot": False,
            "mcp": servers,
            "permission": {"webfetch": "deny", "external_directory": "allow"},
        }
        if plan.provider is not None:
            options: dict[str, Any] = {"baseURL": plan.provider.base_url}
            if plan.provider.key_variable:
                options["apiKey"] = f"{{env:{plan.provider.key_variable}}}"
            models = {plan.invocation.model: {"name": plan.invocation.model}} if plan.invocation.model else {}
            provider = {"npm": "@ai-sdk/openai-compatible", "name": plan.provider.name, "options": options}
            config["provider"] = {_PROVIDER: {**provider, "models": models}}
        return config

    def files(self, plan: Plan) -> Mapping[str, str]:
        return {"opencode.json": json.dumps(self.config(plan), indent=2)}

    def environment(self, plan: Plan, host_environment: Mapping[str, str]) -> dict[str, str]:
        home = plan.workspace / ".opencode-home"
        variables = {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("DATA", "CONFIG", "STATE", "CACHE")}
        variables |= {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
        key = plan.provider.key_variable if plan.provider else ""
        return {**variables, **(self.key(plan, host_environment, key) if key else {})}

    def _model(self, plan: Plan) -> list[str]:
        model = plan.invocation.model
        return ["-m", f"{_PROVIDER}/{model}" if plan.provider is not None else model] if model else []

    def start(self, plan: Plan) -> list[str]:
        call = plan.invocation
        if call.interactive:
            query = ["--prompt", call.query] if call.query else []
            return [plan.program, *self._model(plan), *call.extra, *query]
        return [*self._headless(plan), "--", plan.first_message]

    def _headless(self, plan: Plan) -> list[str]:
        return [plan.program, "run", "--format", "json", "--auto", *self._model(plan), *plan.invocation.extra]

    def resume(self, plan: Plan, session: str, message: str) -> list[str]:
        how = ["--session", session] if session else ["--continue"]
        return [*self._headless(plan), *how, "--", message]

    def read(self, line: str, trajectory: Trajectory) -> None:
        event = Event.parse(line)
        if event is None:
            return
        trajectory.session = event.text("sessionID") or trajectory.session
        part = event.child("part")
        kind = event.text("type")
        if kind == "text":
            trajectory.add_text(part.text("text"), part.text("messageID"))
        elif kind == "reasoning":
            trajectory.add_reasoning(part.text("text"), part.text("messageID"))
        elif kind == "tool_use":
            state = part.child("state")
            call = part.text("callID")
            trajectory.add_tool_call(call, part.text("tool"), state.mapping("input"), part.text("messageID"))
            failed = state.text("status") == "error"
            trajectory.add_tool_result(
                call, result_text(state.data.get("error" if failed else "output")), failed=failed
            )
        elif kind == "step_finish":
            tokens = part.child("tokens")
            cached = tokens.child("cache").number("read")
            fresh = tokens.number("input") + tokens.child("cache").number("write")
            cost = part.data.get("cost")
            # The CLI reports 0 for models without a known price.
            cost_usd = float(cost) if isinstance(cost, int | float) and cost > 0 else None
            trajectory.add_usage(
                Usage(fresh + cached, tokens.number("output"), cached, cost_usd), part.text("messageID")
            )
        elif kind == "error":
            error = event.child("error")
            trajectory.add_error(error.child("data").text("message") or error.text("name"))
