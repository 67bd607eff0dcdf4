"""What an awk program remembers: variables, arrays, and a record that follows its fields as they follow it."""

from __future__ import annotations

from collections.abc import Mapping

from srearena.cluster.embedded.userland.awk.lexer import AwkError
from srearena.cluster.embedded.userland.awk.values import Input, Value, number_text, whole
from srearena.cluster.embedded.userland.posix_regex import Regex, RegexError, compile_regex

MAX_FIELD = 10_000
MAX_TEXT = 1024 * 1024
"""Characters of one value; a program that builds a longer one is out of memory, as in life a little later."""
MAX_ELEMENTS = 200_000
"""Elements of one array, likewise."""


class Memory:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self.variables: dict[str, Value] = {
            "FS": " ",
            "OFS": " ",
            "ORS": "\n",
            "RS": "\n",
            "NR": 0.0,
            "FNR": 0.0,
            "FILENAME": "",
            "SUBSEP": "\x1c",
            "RSTART": 0.0,
            "RLENGTH": -1.0,
            "CONVFMT": "%.6g",
            "OFMT": "%.6g",
        }
        """All but NF, which is the number of fields."""
        self.arrays: dict[str, dict[str, Value]] = {"ENVIRON": {k: Input(v) for k, v in environment.items()}}
        self.record = ""
        self.fields: list[str] = []

    def text(self, value: Value) -> str:
        return number_text(value, str(self.variables["CONVFMT"])) if isinstance(value, float) else str(value)

    def output_text(self, value: Value) -> str:
        return number_text(value, str(self.variables["OFMT"])) if isinstance(value, float) else str(value)

    @staticmethod
    def bounded(text: str) -> str:
        if len(text) > MAX_TEXT:
            raise AwkError("out of memory")
        return text

    def array(self, name: str) -> dict[str, Value]:
        """An array to read from or add to."""
        array = self.arrays.setdefault(name, {})
        if len(array) >= MAX_ELEMENTS:
            raise AwkError("out of memory")
        return array

    def variable(self, name: str) -> Value:
        return float(len(self.fields)) if name == "NF" else self.variables.get(name, Input(""))

    def set_variable(self, name: str, value: Value) -> None:
        if name == "NF":
            count = min(MAX_FIELD, max(0, whole(value)))
            self.fields = (self.fields + [""] * count)[:count]
            self._rebuild()
        else:
            self.variables[name] = value

    # --- the record ------------------------------------------------------------------------------------------

    def set_record(self, text: str) -> None:
        self.record = text
        self.fields = self.split(text, self.text(self.variables["FS"]))

    @staticmethod
    def split(text: str, separator: str) -> list[str]:
        if separator == " ":
            return [Input(part) for part in text.split()]
        if not text:
            return []
        if separator == "":
            return [Input(char) for char in text]
        if len(separator) == 1 and separator != "\\":
            return [Input(part) for part in text.split(separator)]
        regex = compiled(separator)
        parts: list[str] = []
        position = start = 0
        while start <= len(text) and (found := regex.search(text, start)) is not None:
            if found.end == found.start:
                start = found.end + 1
                continue
            parts.append(Input(text[position : found.start]))
            position = start = found.end
        parts.append(Input(text[position:]))
        return parts

    def field(self, index: int) -> Value:
        if index < 0 or index > MAX_FIELD:
            raise AwkError(f"attempt to access field {index}")
        if index == 0:
            return Input(self.record)
        return self.fields[index - 1] if index <= len(self.fields) else ""

    def set_field(self, index: int, value: Value) -> None:
        if index < 0 or index > MAX_FIELD:
            raise AwkError(f"attempt to access field {index}")
        text = self.text(value)
        if index == 0:
            self.set_record(text)
            return
        while len(self.fields) < index:
            self.fields.append("")
        self.fields[index - 1] = Input(text)
        self._rebuild()

    def _rebuild(self) -> None:
        self.record = self.text(self.variables["OFS"]).join(self.fields)


def compiled(pattern: str) -> Regex:
    try:
        return compile_regex(pattern, extended=True)
    except RegexError as error:
        raise AwkError(f"regular expression compile failed ({error})") from None
