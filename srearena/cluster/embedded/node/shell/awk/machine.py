"""Runs an awk program over records.

Expressions are finite and evaluated at once; statements are coroutines that let virtual time pass, so that an endless
loop in a program is only an endless process.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from srearena.cluster.embedded.node.process import Process
from srearena.cluster.embedded.node.shell.awk.lexer import AwkError
from srearena.cluster.embedded.node.shell.awk.syntax import (
    Assign,
    Binary,
    Block,
    Call,
    Contains,
    Delete,
    Element,
    Evaluate,
    Expression,
    FieldOf,
    ForIn,
    If,
    Leave,
    Number,
    Print,
    RegexLiteral,
    Rule,
    Statement,
    Step,
    Target,
    Ternary,
    Text,
    Unary,
    Variable,
    While,
)
from srearena.cluster.embedded.node.shell.awk.values import (
    Input,
    Value,
    arithmetic,
    is_numeric,
    number_of,
    number_text,
    truth,
    whole,
)
from srearena.cluster.embedded.node.shell.regex import Regex, RegexError, compile_regex
from srearena.cluster.embedded.node.shell.sed.substitution import substituted
from srearena.cluster.embedded.node.shell.tools.dates import formatted
from srearena.cluster.embedded.node.shell.tools.printing import format_text
from srearena.cluster.embedded.node.streams import OpenFile

MAX_FIELD = 10_000
STEPS_PER_BREATH = 200


class LeaveRule(Exception):
    def __init__(self, kind: str, status: int = 0) -> None:
        super().__init__(kind)
        self.kind = kind
        self.status = status


class Machine:
    def __init__(self, process: Process, rules: list[Rule], environment: Mapping[str, str]) -> None:
        self.process = process
        self.rules = rules
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
        self.arrays: dict[str, dict[str, Value]] = {"ENVIRON": {k: Input(v) for k, v in environment.items()}}
        self.record = ""
        self.fields: list[str] = []
        self.output: list[str] = []
        self.files: dict[str, OpenFile] = {}
        self.exit_status = 0
        self.next_record: Callable[[], object] | None = None
        self._steps = 0
        self._in_range: set[int] = set()

    # --- records ---------------------------------------------------------------------------------------------

    def set_record(self, text: str) -> None:
        self.record = text
        self.fields = self._split(text, str(self._text(self.variables["FS"])))

    @staticmethod
    def _split(text: str, separator: str) -> list[str]:
        if separator == " ":
            return [Input(part) for part in text.split()]
        if not text:
            return []
        if separator == "":
            return [Input(char) for char in text]
        if len(separator) == 1 and separator != "\\":
            return [Input(part) for part in text.split(separator)]
        regex = _compiled(separator)
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

    def _field(self, index: int) -> Value:
        if index < 0 or index > MAX_FIELD:
            raise AwkError(f"attempt to access field {index}")
        if index == 0:
            return Input(self.record)
        return self.fields[index - 1] if index <= len(self.fields) else ""

    def _set_field(self, index: int, value: Value) -> None:
        if index < 0 or index > MAX_FIELD:
            raise AwkError(f"attempt to access field {index}")
        text = self._text(value)
        if index == 0:
            self.set_record(text)
            return
        while len(self.fields) < index:
            self.fields.append("")
        self.fields[index - 1] = Input(text)
        self._rebuild()

    def _rebuild(self) -> None:
        self.record = self._text(self.variables["OFS"]).join(self.fields)

    # --- running ---------------------------------------------------------------------------------------------

    async def begin(self) -> bool:
        """Run the BEGIN rules; False where one of them ended it all."""
        return await self._run_rules("BEGIN")

    async def end(self) -> None:
        await self._run_rules("END")

    async def _run_rules(self, kind: str) -> bool:
        for rule in self.rules:
            if rule.kind == kind and rule.action is not None:
                try:
                    await self.execute(rule.action)
                except LeaveRule as leaving:
                    if leaving.kind == "exit":
                        self.exit_status = leaving.status
                        return False
        return True

    async def handle(self, text: str) -> bool:
        """Run the rules on a record; False where the program wants no more of them."""
        self.set_record(text)
        self.variables["NR"] = number_of(self.variables["NR"]) + 1
        self.variables["FNR"] = number_of(self.variables["FNR"]) + 1
        try:
            for index, rule in enumerate(self.rules):
                if rule.kind or not self._selected(index, rule):
                    continue
                if rule.action is None:
                    await self._print(Print((), False))
                else:
                    await self.execute(rule.action)
        except LeaveRule as leaving:
            if leaving.kind == "exit":
                self.exit_status = leaving.status
                return False
        await self.breathe()
        return True

    def _selected(self, index: int, rule: Rule) -> bool:
        if rule.pattern is None:
            return True
        if rule.until is None:
            return truth(self.value(rule.pattern))
        if index not in self._in_range:
            if not truth(self.value(rule.pattern)):
                return False
            self._in_range.add(index)
        if truth(self.value(rule.until)):
            self._in_range.discard(index)
        return True

    async def breathe(self) -> None:
        self._steps += 1
        if self._steps >= STEPS_PER_BREATH or len(self.output) > 256:
            self._steps = 0
            await self.flush()
            await self.process.spend(STEPS_PER_BREATH * 5e-6)

    async def flush(self) -> None:
        if self.output:
            text, self.output = "".join(self.output), []
            await self.process.write(text)

    def close(self) -> None:
        for file in self.files.values():
            file.release()
        self.files = {}

    # --- statements ------------------------------------------------------------------------------------------

    async def execute(self, statement: Statement) -> None:
        await self.breathe()
        match statement:
            case Evaluate(expression):
                self.value(expression)
            case Print():
                await self._print(statement)
            case Block(statements):
                for inner in statements:
                    await self.execute(inner)
            case If(condition, yes, no):
                if truth(self.value(condition)):
                    await self.execute(yes)
                elif no is not None:
                    await self.execute(no)
            case While():
                await self._loop(statement)
            case ForIn(name, array, body):
                for key in list(self.arrays.get(array, {})):
                    self.variables[name] = Input(key)
                    if not await self._iteration(body):
                        break
            case Leave(kind, status):
                raise LeaveRule(kind, self.exit_status if status is None else whole(self.value(status)) & 0xFF)
            case Delete(array, subscripts):
                if subscripts is None:
                    self.arrays.pop(array, None)
                else:
                    self.arrays.get(array, {}).pop(self._subscript(subscripts), None)

    async def _loop(self, statement: While) -> None:
        first = statement.body_first
        while first or statement.condition is None or truth(self.value(statement.condition)):
            first = False
            if not await self._iteration(statement.body):
                return
            if statement.step is not None:
                await self.execute(statement.step)
            await self.breathe()

    async def _iteration(self, body: Statement) -> bool:
        try:
            await self.execute(body)
        except LeaveRule as leaving:
            if leaving.kind == "break":
                return False
            if leaving.kind != "continue":
                raise
        return True

    async def _print(self, statement: Print) -> None:
        if statement.formatted:
            values = [self.value(argument) for argument in statement.arguments]
            text = self._format(values)
        elif statement.arguments:
            separator = self._text(self.variables["OFS"])
            shown = (self._output_text(self.value(argument)) for argument in statement.arguments)
            text = separator.join(shown) + self._text(self.variables["ORS"])
        else:
            text = self.record + self._text(self.variables["ORS"])
        if not statement.redirect or statement.target is None:
            self.output.append(text)
            return
        await self._print_to(self._text(self.value(statement.target)), statement.redirect, text)

    async def _print_to(self, path: str, redirect: str, text: str) -> None:
        if redirect == "|":
            raise AwkError("pipes are not supported here")
        if path in ("/dev/stderr", "/dev/fd/2"):
            await self.flush()
            await self.process.error(text)
            return
        if path in ("/dev/stdout", "-"):
            self.output.append(text)
            return
        file = self.files.get(path)
        if file is None:
            try:
                file = self.files[path] = self.process.open(path, "a" if redirect == ">>" else "w")
            except OSError as error:
                raise AwkError(f"cannot open {path} ({error.strerror})") from None
        await file.write(text.encode(errors="surrogateescape"))

    def _format(self, values: list[Value]) -> str:
        words = [value if isinstance(value, str) else repr(value) for value in values]
        template = self._text(values[0])
        kinds = re.findall(r"%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?([a-zA-Z%])", template)
        kinds = [kind for kind in kinds if kind != "%"]
        for index, kind in enumerate(kinds[: len(values) - 1], 1):
            value = values[index]
            if kind in "diouxX":
                number = number_of(value)
                words[index] = str(int(number)) if math.isfinite(number) else "0"
            elif kind in "feEgG":
                words[index] = repr(number_of(value))
            elif kind == "c" and isinstance(value, float):
                words[index] = chr(whole(value) & 0xFF)
            else:
                words[index] = self._text(value)
        escaped = template.replace("\\", "\\\\")
        words = words[: len(kinds) + 1]
        return format_text([escaped, *words[1:]])[0].decode(errors="surrogateescape")

    # --- expressions -----------------------------------------------------------------------------------------

    def _text(self, value: Value) -> str:
        return number_text(value, str(self.variables["CONVFMT"])) if isinstance(value, float) else str(value)

    def _output_text(self, value: Value) -> str:
        return number_text(value, str(self.variables["OFMT"])) if isinstance(value, float) else str(value)

    def _subscript(self, subscripts: tuple[Expression, ...]) -> str:
        separator = self._text(self.variables["SUBSEP"])
        return separator.join(self._text(self.value(part)) for part in subscripts)

    def value(self, expression: Expression) -> Value:
        match expression:
            case Number(number):
                return number
            case Text(text):
                return text
            case RegexLiteral(pattern):
                return float(_compiled(pattern).search(self.record) is not None)
            case Variable(name):
                return float(len(self.fields)) if name == "NF" else self.variables.get(name, Input(""))
            case Element(array, subscripts):
                return self.arrays.setdefault(array, {}).setdefault(self._subscript(subscripts), Input(""))
            case FieldOf(index):
                return self._field(whole(self.value(index)))
            case Unary(operator, operand):
                inner = self.value(operand)
                if operator == "!":
                    return float(not truth(inner))
                return -number_of(inner) if operator == "-" else number_of(inner)
            case Binary():
                return self._binary(expression)
            case Ternary(condition, yes, no):
                return self.value(yes) if truth(self.value(condition)) else self.value(no)
            case Assign(operator, target, operand):
                assigned = self.value(operand)
                if operator != "=":
                    assigned = arithmetic(operator[0], number_of(self.value(target)), number_of(assigned))
                return self._store(target, assigned)
            case Step(target, amount, before):
                old = number_of(self.value(target))
                self._store(target, old + amount)
                return old + amount if before else old
            case Contains(subscripts, array):
                return float(self._subscript(subscripts) in self.arrays.get(array, {}))
            case Call(name, arguments):
                return self._call(name, arguments)

    def _store(self, target: Target, value: Value) -> Value:
        if isinstance(target, FieldOf):
            self._set_field(whole(self.value(target.number)), value)
        elif isinstance(target, Element):
            self.arrays.setdefault(target.array, {})[self._subscript(target.subscripts)] = value
        elif target.name == "NF":
            count = min(MAX_FIELD, max(0, whole(value)))
            self.fields = (self.fields + [""] * count)[:count]
            self._rebuild()
        else:
            self.variables[target.name] = value
        return value

    def _binary(self, expression: Binary) -> Value:
        operator = expression.operator
        if operator == "&&":
            return float(truth(self.value(expression.left)) and truth(self.value(expression.right)))
        if operator == "||":
            return float(truth(self.value(expression.left)) or truth(self.value(expression.right)))
        if operator in ("~", "!~"):
            text = self._text(self.value(expression.left))
            found = self._regex(expression.right).search(text) is not None
            return float(found is (operator == "~"))
        left, right = self.value(expression.left), self.value(expression.right)
        if operator == " ":
            return self._text(left) + self._text(right)
        if operator in ("<", "<=", "==", "!=", ">", ">="):
            return float(self._compare(operator, left, right))
        return arithmetic(operator, number_of(left), number_of(right))

    def _compare(self, operator: str, left: Value, right: Value) -> bool:
        if is_numeric(left) and is_numeric(right):
            first, second = number_of(left), number_of(right)
            order = (first > second) - (first < second)
        else:
            one, two = self._text(left), self._text(right)
            order = (one > two) - (one < two)
        return {"<": order < 0, "<=": order <= 0, "==": order == 0, "!=": order != 0, ">": order > 0, ">=": order >= 0}[
            operator
        ]

    def _regex(self, expression: Expression) -> Regex:
        pattern = expression.pattern if isinstance(expression, RegexLiteral) else self._text(self.value(expression))
        return _compiled(pattern)

    # --- functions -------------------------------------------------------------------------------------------

    def _call(self, name: str, arguments: tuple[Expression, ...]) -> Value:
        if name in ("sub", "gsub"):
            return self._substitute(name, arguments)
        if name == "split":
            return self._split_into(arguments)
        if name == "length":
            if arguments and isinstance(arguments[0], Variable) and arguments[0].name in self.arrays:
                return float(len(self.arrays[arguments[0].name]))
            return float(len(self._text(self.value(arguments[0])) if arguments else self.record))
        if name == "match":
            text = self._text(self.value(arguments[0]))
            found = self._regex(arguments[1]).search(text)
            self.variables["RSTART"] = float(found.start + 1) if found else 0.0
            self.variables["RLENGTH"] = float(found.end - found.start) if found else -1.0
            return self.variables["RSTART"]
        values = [self.value(argument) for argument in arguments]
        texts = [self._text(value) for value in values]
        numbers = [number_of(value) for value in values]
        try:
            return self._plain_call(name, values, texts, numbers)
        except IndexError:
            raise AwkError(f"not enough arguments passed to function {name}") from None

    def _plain_call(self, name: str, values: list[Value], texts: list[str], numbers: list[float]) -> Value:
        match name:
            case "substr":
                start = round(numbers[1]) if math.isfinite(numbers[1]) else 0
                end = start + round(numbers[2]) if len(numbers) > 2 and math.isfinite(numbers[2]) else len(texts[0]) + 1
                return texts[0][max(0, start - 1) : max(0, end - 1)]
            case "index":
                return float(texts[0].find(texts[1]) + 1)
            case "sprintf":
                return self._format(values)
            case "toupper":
                return texts[0].upper()
            case "tolower":
                return texts[0].lower()
            case "int":
                return float(math.trunc(numbers[0])) if math.isfinite(numbers[0]) else numbers[0]
            case "sqrt" | "exp" | "log" | "sin" | "cos":
                functions = {"sqrt": math.sqrt, "exp": math.exp, "log": math.log, "sin": math.sin, "cos": math.cos}
                try:
                    return functions[name](numbers[0])
                except (ValueError, OverflowError):
                    return math.nan
            case "atan2":
                return math.atan2(numbers[0], numbers[1])
            case "rand":
                return self.process.container.random.uniform(0, 1)
            case "systime":
                return float(int(self.process.clock.now))
            case "strftime":
                return formatted(numbers[1] if len(numbers) > 1 else self.process.clock.now, texts[0])
            case "system":
                raise AwkError("system() is not supported here")
            case "close":
                file = self.files.pop(texts[0], None)
                if file is not None:
                    file.release()
        return 0.0

    def _substitute(self, name: str, arguments: tuple[Expression, ...]) -> Value:
        target = arguments[2] if len(arguments) > 2 else FieldOf(Number(0.0))
        if not isinstance(target, Variable | Element | FieldOf):
            raise AwkError(f"third argument of {name} is no variable")
        text = self._text(self.value(target))
        # awk knows & and \\& in a replacement but no groups.
        template = re.sub(r"\\(?!&)", r"\\\\", self._text(self.value(arguments[1])))
        changed, count = substituted(text, self._regex(arguments[0]), template, everywhere=name == "gsub", number=1)
        if count:
            self._store(target, changed)
        return float(count)

    def _split_into(self, arguments: tuple[Expression, ...]) -> Value:
        text = self._text(self.value(arguments[0]))
        array = arguments[1]
        if not isinstance(array, Variable):
            raise AwkError("second argument of split is no array")
        separator = self._text(self.variables["FS"])
        if len(arguments) > 2:
            third = arguments[2]
            separator = third.pattern if isinstance(third, RegexLiteral) else self._text(self.value(third))
        parts = self._split(text, separator)
        self.arrays[array.name] = {str(index): part for index, part in enumerate(parts, 1)}
        return float(len(parts))


def _compiled(pattern: str) -> Regex:
    try:
        return compile_regex(pattern, extended=True)
    except RegexError as error:
        raise AwkError(f"regular expression compile failed ({error})") from None
