"""The agent with a model inside. One call of a tool is one action of the episode.

What always holds: every call that the model makes gets exactly one answer, in order, before the model is asked again;
whatever was spent is counted, also where the model then failed; a model that does not act is told so a few times, and
then the trial ends as the agent's error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from clients.llm.compaction import compacted, estimate
from clients.llm.endpoint import Account, Show
from clients.llm.errors import ContextTooLong, ModelError, ToolsUnsupported
from clients.llm.messages import Ask, Message, Reply, Tool, ToolCall, Usage
from clients.llm.prices import price_of
from clients.llm.settings import Settings, make_model
from clients.llm.text_protocol import action_in, described
from clients.llm.tools import BadArguments, action_of, tools_from
from clients.llm.transcript import Transcript
from clients.llm.variants import read_prompt, variant

_MOST_CALLS = 16
Note = Callable[..., None]


class Model(Protocol):
    async def ask(self, ask: Ask, account: Account, show: Show = ...) -> Reply: ...

    async def aclose(self) -> None: ...


class ModelDoesNotAct(ModelError):
    """Asked again and again, the model made no call that can be used."""


class LlmAgent:
    def __init__(self, settings: Settings | None = None, model_client: Model | None = None, **options: Any) -> None:
        self.settings = settings or Settings.from_options(options)
        self.spent = Usage()
        self.cost = 0.0
        self.model_calls = 0
        self._variant = variant(self.settings.variant, self.settings.tools, self.settings.prompt)
        self._model: Model = model_client or make_model(self.settings)
        self._price = self.settings.price or price_of(self.settings.model)
        self._native = self.settings.protocol != "text"
        self._transcript = Transcript(sys.stderr if self.settings.transcript else None)
        self._messages: list[Message] = []
        self._waiting: list[tuple[ToolCall, str]] = []
        """Calls that the episode has yet to answer, each with its action; the first is under way."""
        self._note: Note = lambda what, **facts: None
        self._context: tuple[str, str, Mapping[str, str]] = ("", "", {})
        self._tools: tuple[Tool, ...] = ()
        self._system = ""
        self._checked_stage = ""
        self._question = ""
        self._steps = 0

    # What the conductor tells and asks

    def init_context(self, description: str, instructions: str, actions: Mapping[str, str]) -> None:
        kept = {name: text for name, text in actions.items() if name in self._variant.tools}
        self._context = (description, instructions, kept)
        self._tools = tools_from(kept)
        self._write_system()

    def keep_record(self, note: Note) -> None:
        """`note(what, **facts)` writes to the trial's record."""
        self._note = note

    def usage(self) -> dict[str, float]:
        return {"tokens_in": self.spent.tokens_in, "tokens_out": self.spent.tokens_out, "cost": self.cost}

    @property
    def priceless(self) -> bool:
        """Nobody knows what its tokens cost: only an endpoint that says so itself can tell."""
        return self._price is None

    async def aclose(self) -> None:
        await self._model.aclose()

    async def get_action(self, state: str) -> str:
        self._receive(state)
        mistakes = 0
        while not self._waiting:
            if self._variant.plan and not self.model_calls:
                await self._plan()
            reply = await self._ask(with_tools=True)
            if not self._take(reply):
                mistakes += 1
                if mistakes > self.settings.mistakes:
                    raise ModelDoesNotAct(f"the model made no usable call in {mistakes} answers ({reply.stop})")
        self._steps += 1
        action = self._waiting[0][1]
        self._transcript.call(self._steps, action)
        return action

    # The conversation

    def _receive(self, state: str) -> None:
        if state.startswith("Stage "):
            self._question = state
        self._transcript.answer(state)
        if self._waiting:
            call, _ = self._waiting.pop(0)
            self._messages.append(self._result(call, state))
        else:
            self._messages.append(Message("user", state))

    def _result(self, call: ToolCall, text: str) -> Message:
        return Message("tool", text, call_id=call.id) if self._native else Message("user", text)

    def _take(self, reply: Reply) -> bool:
        """Line up what the model wants done; False where that is nothing."""
        self._messages.append(reply.as_message())
        if not self._native:
            return self._take_text(reply)
        answered = False
        for place, call in enumerate(reply.calls):
            try:
                if reply.stop == "length":
                    raise BadArguments("your answer was cut off before its end: call again, and be brief")
                if place >= _MOST_CALLS:
                    raise BadArguments(f"at most {_MOST_CALLS} calls at once: make this one again later")
                action = action_of(call)
            except BadArguments as problem:
                self._refuse(call, f"Error: {problem}")
                continue
            if self._must_verify(call.name):
                self._refuse(call, self._variant.verify)
                answered = True
                continue
            self._waiting.append((call, action))
        if not reply.calls:
            self._messages.append(Message("user", read_prompt("act.md")))
        return bool(self._waiting) or answered

    def _take_text(self, reply: Reply) -> bool:
        action = action_in(reply.text, tuple(self._context[2]))
        if action is None:
            self._messages.append(Message("user", read_prompt("act.md")))
            return False
        name = action.partition("(")[0].strip()
        if self._must_verify(name):
            self._messages.append(Message("user", self._variant.verify))
            return True
        self._waiting.append((ToolCall("", name, ""), action))
        return True

    def _refuse(self, call: ToolCall, text: str) -> None:
        self._transcript.answer(text)
        self._note("tool refused", name=call.name, arguments=call.arguments, text=text)
        # Answers must come in the order of the calls only for people; endpoints go by the call's id.
        self._messages.append(self._result(call, text))

    def _must_verify(self, name: str) -> bool:
        if not self._variant.verify or name != "submit" or self._checked_stage == self._question:
            return False
        self._checked_stage = self._question
        return True

    async def _plan(self) -> None:
        self._messages.append(Message("user", self._variant.plan))
        reply = await self._ask(with_tools=False)
        self._messages += [reply.as_message(), Message("user", "Now act on your plan.")]

    async def _ask(self, *, with_tools: bool) -> Reply:
        """One answer of the model, whatever has to be changed for it to come."""
        if estimate(self._messages) > self.settings.context_tokens:
            self._compact(self.settings.context_tokens // 2)
        for _ in range(4):
            try:
                return await self._call_model(with_tools)
            except ContextTooLong:
                before = estimate(self._messages)
                self._compact(before // 2)
                if estimate(self._messages) >= before:
                    raise
            except ToolsUnsupported:
                if not self._native or self.settings.protocol == "tools":
                    raise
                self._speak_text()
        return await self._call_model(with_tools)

    async def _call_model(self, with_tools: bool) -> Reply:
        tools = self._tools if self._native and with_tools else ()
        ask = Ask(
            self.settings.served.model,
            self._system,
            tuple(self._messages),
            tools,
            max_tokens=self.settings.max_tokens,
            temperature=self.settings.temperature,
            effort=self.settings.effort,
            stream=self.settings.stream,
            cache_key=f"srearena-{id(self):x}",
        )
        account = Account()
        reply: Reply | None = None
        try:
            reply = await self._model.ask(ask, account, self._transcript.piece)
            return reply
        finally:
            self._count(reply, account)

    def _count(self, reply: Reply | None, account: Account) -> None:
        used = Usage()
        used.add(account.lost)
        if reply is not None:
            used.add(reply.usage)
        cost = self._cost_of(used)
        self.model_calls += 1
        self.spent.add(used)
        self.cost += cost
        self._transcript.spent(self.spent.tokens_in, self.spent.tokens_out, self.cost)
        self._note(
            "model call",
            number=self.model_calls,
            model=self.settings.model,
            seconds=round(account.seconds, 3),
            tries=account.tries,
            failures=account.failures,
            tokens_in=used.tokens_in,
            tokens_out=used.tokens_out,
            tokens_cached=used.cached,
            cost=round(cost, 6),
            stop=reply.stop if reply else "failed",
            text=reply.text if reply else "",
            calls=[{"name": call.name, "arguments": call.arguments} for call in reply.calls] if reply else [],
        )

    def _cost_of(self, used: Usage) -> float:
        """By the user's prices; else as the endpoint says; else by default prices."""
        if used.cost is not None and self.settings.price is None:
            return used.cost
        return self._price.of(used) if self._price else 0.0

    def _compact(self, goal: int) -> None:
        before = estimate(self._messages)
        self._messages = compacted(self._messages, goal)
        self._note("compaction", tokens_before=before, tokens_after=estimate(self._messages))

    # Protocols

    def _write_system(self) -> None:
        description, instructions, actions = self._context
        protocol = read_prompt("tools.md") if self._native else described(read_prompt("text.md"), actions)
        # The episode's own words on fenced blocks are for the text protocol only.
        asked = instructions if not self._native else instructions.partition("You are asked")[2]
        if self._native:
            asked = f"You are asked{asked}" if asked else instructions
        self._system = (
            self._variant.prompt.replace("{description}", description)
            .replace("{protocol}", protocol)
            .replace("{instructions}", asked)
        )
        self._note("prompt", system=self._system, tools=list(actions), variant=self._variant.name)

    def _speak_text(self) -> None:
        """Go on without tools: what was said so far becomes plain text."""
        self._native = False
        self._messages = [Message("user" if m.role == "tool" else m.role, m.text or "(a call)") for m in self._messages]
        self._write_system()
        self._note("protocol", now="text")
