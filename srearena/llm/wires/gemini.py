"""Google's own format (`generateContent`): text only, not streamed. The connection test of coding CLIs uses it."""

from __future__ import annotations

from typing import Any

from srearena.llm.errors import InvalidResponse
from srearena.llm.messages import ModelRequest, Reply, Usage
from srearena.llm.wires.base import StreamReader, count


class GeminiWire:
    """`generateContent`."""

    name = "gemini"
    path = "/v1beta/models/{model}:generateContent"
    models_path = "/v1beta/models"

    def headers(self, key: str) -> dict[str, str]:
        return {"x-goog-api-key": key} if key else {}

    def body(self, request: ModelRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "contents": [
                {"role": "model" if message.role == "assistant" else "user", "parts": [{"text": message.text}]}
                for message in request.messages
            ]
        }
        if request.system:
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        return body

    def whole(self, document: Any) -> Reply:
        try:
            parts = document["candidates"][0]["content"]["parts"]
            text = "".join(part.get("text", "") for part in parts)
        except (LookupError, TypeError) as problem:
            raise InvalidResponse("the answer is no generated content", status=200) from problem
        used = document.get("usageMetadata")
        return Reply(text, (), "end", Usage(count(used, "promptTokenCount"), count(used, "candidatesTokenCount")))

    def reader(self) -> StreamReader:
        raise InvalidResponse("the answer is streamed, and that was not requested", status=200)
