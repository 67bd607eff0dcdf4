"""The loop of the LLM agent. One tool call is one action of the episode.

Invariants: every call of the model gets exactly one result, in order, before the next request; tokens and cost are
counted even if the request fails; a model that makes no call is reminded a few times, and then the trial ends with an
error of the agent.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from clients.llm.compaction import compact, estimate_tokens
from clients.llm.settings import Settings, make_client
from clients.llm.text_protocol import action_in, with_actions
from clients.llm.transcript import Transcript
from clients.llm.variants import read_prompt, variant
from srearena.llm.client import CallStats, OnText
from srearena.llm.errors import ContextTooLong, ModelError, ToolsUnsupported
from srearena.llm.messages import Message, ModelRequest, Reply, Tool, ToolCall, Usage
from srearena.llm.prices import price_of
from srearena.llm.tools import BadArguments, action_of, tools_from

_MAX_CALLS = 16  # chosen: more calls in one reply than any useful plan has
Note = Callable[..., None]


class Model(Protocol):
    """The part of `ModelClient` that the agent uses; tests replace it."""

    async def complete(self, request: ModelRequest, stats: CallStats, on_text: OnText = ...) -> Reply: ...

    async def preflight(self) -> None: ...

    async def aclose(self) -> None: ...


class ModelDoesNotAct(ModelError):
    """The model made no usable call in several replies."""


class LlmAgent:
    """An agent that lets a model choose every action."""

    def __init__(self, settings: Settings | None = None, model_client: Model | None = None, **options: Any) -> None:
        self.settings = settings or Settings.from_options(options)
        self.spent = Usage()
        self.cost = 0.0
        self.model_calls = 0
        self._variant = variant(self.settings.variant, self.settings.tools, self.settings.prompt)
        self._model: Model = model_client or make_client(self.settings)
        self._price = self.settings.price or price_of(self.settings.model)
        self._native = self.settings.protocol != "text"
        self._transcript = Transcript(sys.stderr if self.settings.transcript else None)
        self._messages: list[Message] = []
        self._pending_calls: list[tuple[ToolCall, str]] = []
        """Calls without a result yet, each with its action; the first is being executed."""
        self._note: Note = lambda what, **facts: None
        self._context: tuple[str, str, Mapping[str, str]] = ("", "", {})
        self._tools: tuple[Tool, ...] = ()
        self._system = ""
        self._checked_stage = ""
        self._question = ""
        self._steps = 0

    # Interface of the conductor

    def init_context(self, description: str, instructions: str, actions: Mapping[str, str]) -> None:
        offered = {name: text for name, text in actions.items() if name in self._variant.tools}
        self._context = (description, instructions, offered)
        self._tools = tools_from(offered)
        self._write_system()

    def keep_record(self, note: Note) -> None:
        """Set the function that writes to the trial's record: `note(what, **facts)`."""
        self._note = note

    def usage(self) -> dict[str, float]:
        return {"tokens_in": self.spent.tokens_in, "tokens_out": self.spent.tokens_out, "cost": self.cost}

    @property
    def priceless(self) -> bool:
        """Whether the model has no price: its cost is then only known if the endpoint reports it."""
        return self._price is None

    async def preflight(self) -> None:
        """Raise a `ModelError` where the model cannot be reached, before an incident is staged."""
        if self.settings.preflight:
            await self._model.preflight()

    async def aclose(self) -> None:
        await self._model.aclose()

    async def get_action(self, state: str) -> str:
        self._receive(state)
        mistakes = 0
        while not self._pending_calls:
            if self._variant.plan and not self.model_calls:
                await self._plan()
            reply = await self._request_reply(with_tools=True)
            if not self._queue_calls(reply):
                mistakes += 1
                if mistakes > self.settings.mistakes:
                    raise ModelDoesNotAct(f"the model made no usable call in {mistakes} answers ({reply.stop})")
        self._steps += 1
        action = self._pending_calls[0][1]
        self._transcript.call(self._steps, action)
        return action

    # The conversation

    def _receive(self, state: str) -> None:
        if state.startswith("Stage "):
            self._question = state
        self._transcript.result(state)
        if self._pending_calls:
            call, _ = self._pending_calls.pop(0)
            self._messages.append(self._result(call, state))
        else:
            self._messages.append(Message("user", state))

    def _result(self, call: ToolCall, text: str) -> Message:
        return Message("tool", text, call_id=call.id) if self._native else Message("user", text)

    def _queue_calls(self, reply: Reply) -> bool:
        """Queue the actions in a reply; returns False if there are none."""
        self._messages.append(reply.as_message())
        if not self._native:
            return self._queue_text_action(reply)
        refused_valid_call = False
        for place, call in enumerate(reply.calls):
            try:
                if reply.stop == "length":
                    raise BadArguments("your answer was cut off before its end: call again, and be brief")
                if place >= _MAX_CALLS:
                    raise BadArguments(f"at most {_MAX_CALLS} calls at once: make this one again later")
                action = action_of(call)
            except BadArguments as problem:
                self._refuse(call, f"Error: {problem}")
                continue
            if self._must_verify(call.name):
                self._refuse(call, self._variant.verify)
                refused_valid_call = True
                continue
            self._pending_calls.append((call, action))
        if not reply.calls:
            self._messages.append(Message("user", read_prompt("act.md")))
        return bool(self._pending_calls) or refused_valid_call

    def _queue_text_action(self, reply: Reply) -> bool:
        action = action_in(reply.text, tuple(self._context[2]))
        if action is None:
            self._messages.append(Message("user", read_prompt("act.md")))
            return False
        name = action.partition("(")[0].strip()
        if self._must_verify(name):
            self._messages.append(Message("user", self._variant.verify))
            return True
        self._pending_calls.append((ToolCall("", name, ""), action))
        return True

    def _refuse(self, call: ToolCall, text: str) -> None:
        self._transcript.result(text)
        self._note("tool refused", name=call.name, arguments=call.arguments, text=text)
        # Results may come out of order: endpoints match them by the call's id.
        self._messages.append(self._result(call, text))

    def _must_verify(self, name: str) -> bool:
        if not self._variant.verify or name != "submit" or self._checked_stage == self._question:
            return False
        self._checked_stage = self._question
        return True

    async def _plan(self) -> None:
        self._messages.append(Message("user", self._variant.plan))
        reply = await self._request_reply(with_tools=False)
        self._messages += [reply.as_message(), Message("user", "Now act on your plan.")]

    async def _request_reply(self, *, with_tools: bool) -> Reply:
        """Get one reply; shorten the conversation or switch to the text protocol if the endpoint requires it."""
        if estimate_tokens(self._messages) > self.settings.context_tokens:
            self._compact(self.settings.context_tokens // 2)
        for _ in range(4):
            try:
                return await self._call_model(with_tools)
            except ContextTooLong:
                before = estimate_tokens(self._messages)
                self._compact(before // 2)
                if estimate_tokens(self._messages) >= before:
                    raise
            except ToolsUnsupported:
                if not self._native or self.settings.protocol == "tools":
                    raise
                self._switch_to_text()
        return await self._call_model(with_tools)

    async def _call_model(self, with_tools: bool) -> Reply:
        tools = self._tools if self._native and with_tools else ()
        request = ModelRequest(
            self.settings.route.model,
            self._system,
            tuple(self._messages),
            tools,
            max_tokens=self.settings.max_tokens,
            temperature=self.settings.temperature,
            effort=self.settings.effort,
            stream=self.settings.stream,
            cache_key=f"srearena-{id(self):x}",
        )
        stats = CallStats()
        reply: Reply | None = None
        try:
            reply = await self._model.complete(request, stats, self._transcript.text)
            return reply
        finally:
            self._count(reply, stats)

    def _count(self, reply: Reply | None, stats: CallStats) -> None:
        usage = Usage()
        usage.add(stats.lost)
        if reply is not None:
            usage.add(reply.usage)
        cost = self._cost_of(usage)
        self.model_calls += 1
        self.spent.add(usage)
        self.cost += cost
        self._transcript.spent(self.spent.tokens_in, self.spent.tokens_out, self.cost)
        self._note(
            "model call",
            number=self.model_calls,
            model=self.settings.model,
            seconds=round(stats.seconds, 3),
            tries=stats.tries,
            failures=stats.failures,
            tokens_in=usage.tokens_in,
            tokens_out=usage.tokens_out,
            tokens_cached=usage.cached,
            cost=round(cost, 6),
            stop=reply.stop if reply else "failed",
            text=reply.text if reply else "",
            calls=[{"name": call.name, "arguments": call.arguments} for call in reply.calls] if reply else [],
        )

    def _cost_of(self, usage: Usage) -> float:
        """Cost by the user's prices; else as the endpoint reports it; else by default prices."""
        if usage.cost is not None and self.settings.price is None:
            return usage.cost
        return self._price.cost(usage) if self._price else 0.0

    def _compact(self, goal: int) -> None:
        before = estimate_tokens(self._messages)
        self._messages = compact(self._messages, goal)
        self._note("compaction", tokens_before=before, tokens_after=estimate_tokens(self._messages))

    # Prompts and protocols

    def _write_system(self) -> None:
        description, instructions, actions = self._context
        protocol = read_prompt("tools.md") if self._native else with_actions(read_prompt("text.md"), actions)
        if self._native:
            # What the episode says about fenced blocks applies to the text protocol only.
            _, marker, question = instructions.partition("You are asked")
            instructions = f"{marker}{question}" if question else instructions
        self._system = (
            self._variant.prompt.replace("{description}", description)
            .replace("{protocol}", protocol)
            .replace("{instructions}", instructions)
        )
        self._note("prompt", system=self._system, tools=list(actions), variant=self._variant.name)

    def _switch_to_text(self) -> None:
        """Continue without tools; the conversation so far becomes plain text."""
        self._native = False
        self._messages = [Message("user" if m.role == "tool" else m.role, m.text or "(a call)") for m in self._messages]
        self._write_system()
        self._note("protocol", now="text")
