"""What awk's functions do; those that change a variable or take an array are given the expressions."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from srearena.cluster.embedded.userland.awk.lexer import AwkError
from srearena.cluster.embedded.userland.awk.memory import Memory
from srearena.cluster.embedded.userland.awk.syntax import Element, Expression, FieldOf, Number, RegexLiteral, Variable
from srearena.cluster.embedded.userland.awk.values import Value, number_of, whole
from srearena.cluster.embedded.userland.sed.substitution import substituted
from srearena.cluster.embedded.userland.tools.dates import formatted
from srearena.cluster.embedded.userland.tools.printing import format_text

if TYPE_CHECKING:
    from srearena.cluster.embedded.userland.awk.evaluator import Evaluator


def call(evaluator: Evaluator, name: str, arguments: tuple[Expression, ...]) -> Value:
    memory = evaluator.memory
    if name in ("sub", "gsub"):
        return _substitute(evaluator, name, arguments)
    if name == "split":
        return _split_into(evaluator, arguments)
    if name == "length":
        if arguments and isinstance(arguments[0], Variable) and arguments[0].name in memory.arrays:
            return float(len(memory.arrays[arguments[0].name]))
        return float(len(memory.text(evaluator.value(arguments[0])) if arguments else memory.record))
    if name == "match":
        text = memory.text(evaluator.value(arguments[0]))
        found = evaluator.regex(arguments[1]).search(text)
        memory.variables["RSTART"] = float(found.start + 1) if found else 0.0
        memory.variables["RLENGTH"] = float(found.end - found.start) if found else -1.0
        return memory.variables["RSTART"]
    values = [evaluator.value(argument) for argument in arguments]
    texts = [memory.text(value) for value in values]
    numbers = [number_of(value) for value in values]
    try:
        return _plain(evaluator, name, values, texts, numbers)
    except IndexError:
        raise AwkError(f"not enough arguments passed to function {name}") from None


def _plain(evaluator: Evaluator, name: str, values: list[Value], texts: list[str], numbers: list[float]) -> Value:
    process = evaluator.outputs.process
    match name:
        case "substr":
            start = round(numbers[1]) if math.isfinite(numbers[1]) else 0
            end = start + round(numbers[2]) if len(numbers) > 2 and math.isfinite(numbers[2]) else len(texts[0]) + 1
            return texts[0][max(0, start - 1) : max(0, end - 1)]
        case "index":
            return float(texts[0].find(texts[1]) + 1)
        case "sprintf":
            return format_values(evaluator.memory, values)
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
            return process.container.random.uniform(0, 1)
        case "systime":
            return float(int(process.clock.now))
        case "strftime":
            return formatted(numbers[1] if len(numbers) > 1 else process.clock.now, texts[0])
        case "system":
            raise AwkError("fatal: 'system' function not allowed in sandbox mode")
        case "close":
            evaluator.outputs.close_file(texts[0])
    return 0.0


def _substitute(evaluator: Evaluator, name: str, arguments: tuple[Expression, ...]) -> Value:
    memory = evaluator.memory
    target = arguments[2] if len(arguments) > 2 else FieldOf(Number(0.0))
    if not isinstance(target, Variable | Element | FieldOf):
        raise AwkError(f"third argument of {name} is no variable")
    text = memory.text(evaluator.value(target))
    # awk knows & and \\& in a replacement but no groups.
    template = re.sub(r"\\(?!&)", r"\\\\", memory.text(evaluator.value(arguments[1])))
    changed, count = substituted(text, evaluator.regex(arguments[0]), template, everywhere=name == "gsub", number=1)
    changed = evaluator.memory.bounded(changed)
    if count:
        evaluator.store(target, changed)
    return float(count)


def _split_into(evaluator: Evaluator, arguments: tuple[Expression, ...]) -> Value:
    memory = evaluator.memory
    text = memory.text(evaluator.value(arguments[0]))
    array = arguments[1]
    if not isinstance(array, Variable):
        raise AwkError("second argument of split is no array")
    separator = memory.text(memory.variables["FS"])
    if len(arguments) > 2:
        third = arguments[2]
        separator = third.pattern if isinstance(third, RegexLiteral) else memory.text(evaluator.value(third))
    parts = memory.split(text, separator)
    memory.arrays[array.name] = {str(index): part for index, part in enumerate(parts, 1)}
    return float(len(parts))


def format_values(memory: Memory, values: list[Value]) -> str:
    words = [value if isinstance(value, str) else repr(value) for value in values]
    template = memory.text(values[0])
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
            words[index] = memory.text(value)
    escaped = template.replace("\\", "\\\\")
    words = words[: len(kinds) + 1]
    return format_text([escaped, *words[1:]])[0].decode(errors="surrogateescape")
