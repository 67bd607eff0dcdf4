"""Two more wire formats of the scripted model, which only LiteLLM uses: Gemini's own and Bedrock's Converse.

LiteLLM is asked for whole answers, so there are no streams here.
"""

from __future__ import annotations

from typing import Any, Protocol

TOKENS_IN, TOKENS_OUT = 1000, 50


class Said(Protocol):
    """What a turn of the script holds (`model_server.Turn`)."""

    @property
    def text(self) -> str: ...

    @property
    def calls(self) -> tuple[tuple[str, Any], ...]: ...

    @property
    def short(self) -> bool: ...


def gemini(turn: Said, model: str) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": turn.text}] if turn.text else []
    parts += [{"functionCall": {"name": name, "args": given}} for name, given in turn.calls]
    reason = "MAX_TOKENS" if turn.short else "STOP"
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": reason, "index": 0}
    used = {
        "promptTokenCount": TOKENS_IN,
        "candidatesTokenCount": TOKENS_OUT,
        "totalTokenCount": TOKENS_IN + TOKENS_OUT,
    }
    return {"candidates": [candidate], "usageMetadata": used, "modelVersion": model or "gemini"}


def converse(turn: Said, model: str) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"text": turn.text}] if turn.text else []
    for number, (name, given) in enumerate(turn.calls):
        content.append({"toolUse": {"toolUseId": f"tooluse_{number}", "name": name, "input": given}})
    reason = "max_tokens" if turn.short else "tool_use" if turn.calls else "end_turn"
    used = {"inputTokens": TOKENS_IN, "outputTokens": TOKENS_OUT, "totalTokens": TOKENS_IN + TOKENS_OUT}
    message = {"role": "assistant", "content": content}
    return {"output": {"message": message}, "stopReason": reason, "usage": used, "metrics": {"latencyMs": 1}}


def results_of_part(part: dict[str, Any]) -> list[str]:
    """What tools answered, in a part of a message of either tongue."""
    function_response = part.get("function_response") or part.get("functionResponse")
    if function_response:
        answer = function_response["response"]
        return [str(answer.get("content", answer.get("result", answer)))]
    result = part.get("toolResult")
    return [piece.get("text", "") for piece in result["content"]] if result else []
