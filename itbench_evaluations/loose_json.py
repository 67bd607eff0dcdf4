"""A lenient JSON parser for the output of language models, which reports its repairs.

Strict JSON is tried first. The lenient parser accepts fences and prose around the object, trailing commas, comments,
single quotes, Python's `True` and `None`, raw line breaks within strings, unquoted keys, and truncated text. Each kind
of repair is named once, in `repairs`. The parser never evaluates anything, never recurses deeper than `MAX_DEPTH`, and
runs in linear time, because agents write its input. docs/dependencies.md says why no library does this.
"""

from __future__ import annotations

import json
import re

from itbench_evaluations.errors import UnreadableSubmission

MAX_DEPTH = 64  # chosen: a diagnosis has fewer than ten levels
MAX_CHARS = 8_000_000  # chosen: bounds memory; real outputs have some ten thousand characters
_MISSING = object()

_FENCE = re.compile(r"```[ \t]*([A-Za-z0-9_-]*)[ \t]*\r?\n?(.*?)(?:```|\Z)", re.DOTALL)
_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_BARE = re.compile(r"[A-Za-z_$][\w$.-]*")
_SPACE = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*|/\*.*?\*/)+", re.DOTALL)
_WORDS: dict[str, object] = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
    "NaN": None,
    "Infinity": None,
    "undefined": None,
}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'"}
_CLOSERS = {"{": "}", "[": "]"}


class _Reader:
    """A recursive-descent parser."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.repairs: list[str] = []

    def note(self, repair: str) -> None:
        if repair not in self.repairs:
            self.repairs.append(repair)

    def _space(self) -> None:
        match = _SPACE.match(self.text, self.at)
        if match:
            if match[0].strip():
                self.note("comments removed")
            self.at = match.end()

    def _peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def value(self, depth: int = 0) -> object:
        if depth > MAX_DEPTH:
            raise UnreadableSubmission(f"JSON nested deeper than {MAX_DEPTH} levels")
        self._space()
        character = self._peek()
        if character == "{":
            return self._object(depth)
        if character == "[":
            return self._array(depth)
        if character in "\"'" and character:
            return self._string()
        number = _NUMBER.match(self.text, self.at)
        if number and not _BARE.match(self.text, number.end()):
            self.at = number.end()
            whole = len(number[0]) < 300 and not any(c in ".eE" for c in number[0])
            return int(number[0]) if whole else float(number[0])
        word = _BARE.match(self.text, self.at)
        if word:
            self.at = word.end()
            if word[0] in _WORDS:
                if word[0] not in ("true", "false", "null"):
                    self.note("Python or JavaScript literals read as JSON")
                return _WORDS[word[0]]
            self.note("unquoted strings read as strings")
            return word[0]
        if not character:
            self.note("truncated: the text ended early")
            return _MISSING
        raise UnreadableSubmission(f"not JSON: unexpected {character!r} at character {self.at}")

    def _closed(self, opener: str) -> bool:
        """Whether the collection ends here: at a closing bracket, or at the end of the text."""
        self._space()
        character = self._peek()
        if not character:
            self.note("truncated: the text ended early")
            return True
        if character in "}]":
            if character == _CLOSERS[opener]:
                self.at += 1
            else:
                self.note("mismatched brackets closed")
            return True
        return False

    def _comma(self, opener: str) -> bool:
        """Skip one separator; False at the end of the collection."""
        self._space()
        if self._peek() == ",":
            self.at += 1
            self._space()
            while self._peek() == ",":
                self.at += 1
                self._space()
                self.note("repeated commas removed")
            if self._peek() in ("}", "]"):
                self.note("trailing commas removed")
            return not self._closed(opener)
        if self._closed(opener):
            return False
        self.note("missing commas added")
        return True

    def _array(self, depth: int) -> list[object]:
        self.at += 1
        items: list[object] = []
        more = not self._closed("[")
        while more:
            before = self.at
            item = self.value(depth + 1)
            if item is not _MISSING:
                items.append(item)
            more = self._comma("[")
            if more and self.at == before:
                raise UnreadableSubmission(f"not JSON: stuck at character {self.at}")
        return items

    def _object(self, depth: int) -> dict[str, object]:
        self.at += 1
        members: dict[str, object] = {}
        more = not self._closed("{")
        while more:
            before = self.at
            key = self._key()
            self._space()
            if self._peek() in (":", "="):
                self.at += 1
                value = self.value(depth + 1)
                if value is not _MISSING:
                    members[key] = value
            elif self._peek():
                raise UnreadableSubmission(f"not JSON: no value for key {key[:40]!r}")
            more = self._comma("{")
            if more and self.at == before:
                raise UnreadableSubmission(f"not JSON: stuck at character {self.at}")
        return members

    def _key(self) -> str:
        if self._peek() in "\"'":
            return self._string()
        bare = _BARE.match(self.text, self.at)
        if not bare:
            raise UnreadableSubmission(f"not JSON: expected a key at character {self.at}")
        self.at = bare.end()
        self.note("unquoted keys quoted")
        return bare[0]

    def _string(self) -> str:
        quote = self._peek()
        if quote == "'":
            self.note("single quotes read as double")
        self.at += 1
        pieces: list[str] = []
        stop = re.compile(rf"[^{re.escape(quote)}\\]*")
        while True:
            run = stop.match(self.text, self.at)
            assert run is not None  # the pattern also matches nothing
            pieces.append(run[0])
            if "\n" in run[0]:
                self.note("raw line breaks within strings kept")
            self.at = run.end()
            character = self._peek()
            if not character:
                self.note("truncated: the text ended early")
                return "".join(pieces)
            self.at += 1
            if character == quote:
                return "".join(pieces)
            pieces.append(self._escaped())

    def _escaped(self) -> str:
        character = self._peek()
        self.at += 1
        if character == "u":
            digits = self.text[self.at : self.at + 4]
            if re.fullmatch(r"[0-9a-fA-F]{4}", digits):
                self.at += 4
                point = int(digits, 16)
                return chr(point) if not 0xD800 <= point <= 0xDFFF else "�"
        if character in _ESCAPES:
            return _ESCAPES[character]
        self.note("invalid escapes kept as written")
        return "\\" + character


def _candidates(text: str) -> list[tuple[str, str]]:
    """Parts of the text that may be the object, most likely first, each with the repair it implies."""
    candidates: list[tuple[str, str]] = []
    fences = [match for match in _FENCE.finditer(text) if match[2].lstrip()[:1] in ("{", "[", '"')]
    for match in sorted(fences, key=lambda each: len(each[2]), reverse=True)[:3]:
        candidates.append((match[2].strip(), "code fence removed"))
    stripped = text.strip()
    if stripped[:1] in ("{", "["):
        candidates.append((stripped, ""))
    else:
        starts = [place for place in (stripped.find("{"), stripped.find("[")) if place >= 0]
        if starts:
            candidates.append((stripped[min(starts) :], "prose before the JSON skipped"))
            brace = stripped.find("{")
            if brace > min(starts):
                candidates.append((stripped[brace:], "prose before the JSON skipped"))
    if "\\n" in stripped and '\\"' in stripped:
        candidates.append((stripped.strip('"').replace("\\n", "\n").replace('\\"', '"'), "escaped JSON unescaped"))
    return candidates


def loads(text: str) -> tuple[object, list[str]]:
    """The value in the text, and the repairs; raises `UnreadableSubmission` if there is none."""
    if len(text) > MAX_CHARS:
        raise UnreadableSubmission(f"the text is {len(text):,} characters long; the limit is {MAX_CHARS:,}")
    repairs: list[str] = []
    if text.startswith("\ufeff"):
        text = text[1:]
        repairs.append("byte order mark removed")
    if not text.strip("\x00 \t\r\n"):
        raise UnreadableSubmission("the file is empty")
    try:
        return json.loads(text), repairs
    except (ValueError, RecursionError):
        pass
    problem = UnreadableSubmission("no JSON object in the text")
    for candidate, repair in _candidates(text.replace("\x00", "")):
        noted = [*repairs, repair] if repair else list(repairs)
        try:
            return json.loads(candidate), noted
        except (ValueError, RecursionError):
            reader = _Reader(candidate)
        try:
            value = reader.value()
        except UnreadableSubmission as failure:
            problem = failure
            continue
        if not isinstance(value, dict | list | str):
            continue
        if candidate[reader.at :].strip(" \t\r\n`;"):
            reader.note("text after the JSON ignored")
        return value, noted + reader.repairs
    raise problem
