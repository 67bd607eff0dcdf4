"""The values of awk's expressions. They are finite, and computed at once."""

from __future__ import annotations

from srearena.cluster.embedded.userland.awk.functions import call
from srearena.cluster.embedded.userland.awk.memory import Memory, compiled
from srearena.cluster.embedded.userland.awk.outputs import Outputs
from srearena.cluster.embedded.userland.awk.syntax import (
    Assign,
    Binary,
    Call,
    Contains,
    Element,
    Expression,
    FieldOf,
    Number,
    RegexLiteral,
    Step,
    Target,
    Ternary,
    Text,
    Unary,
    Variable,
)
from srearena.cluster.embedded.userland.awk.values import (
    Input,
    Value,
    arithmetic,
    is_numeric,
    number_of,
    truth,
    whole,
)
from srearena.cluster.embedded.userland.posix_regex import Regex


class Evaluator:
    def __init__(self, memory: Memory, outputs: Outputs) -> None:
        self.memory = memory
        self.outputs = outputs

    def value(self, expression: Expression) -> Value:
        match expression:
            case Number(number):
                return number
            case Text(text):
                return text
            case RegexLiteral(pattern):
                return float(compiled(pattern).search(self.memory.record) is not None)
            case Variable(name):
                return self.memory.variable(name)
            case Element(array, subscripts):
                return self.memory.array(array).setdefault(self.subscript(subscripts), Input(""))
            case FieldOf(index):
                return self.memory.field(whole(self.value(index)))
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
                return self.store(target, assigned)
            case Step(target, amount, before):
                old = number_of(self.value(target))
                self.store(target, old + amount)
                return old + amount if before else old
            case Contains(subscripts, array):
                return float(self.subscript(subscripts) in self.memory.arrays.get(array, {}))
            case Call(name, arguments):
                return call(self, name, arguments)

    def store(self, target: Target, value: Value) -> Value:
        if isinstance(target, FieldOf):
            self.memory.set_field(whole(self.value(target.number)), value)
        elif isinstance(target, Element):
            self.memory.array(target.array)[self.subscript(target.subscripts)] = value
        else:
            self.memory.set_variable(target.name, value)
        return value

    def subscript(self, subscripts: tuple[Expression, ...]) -> str:
        separator = self.memory.text(self.memory.variables["SUBSEP"])
        return separator.join(self.memory.text(self.value(part)) for part in subscripts)

    def regex(self, expression: Expression) -> Regex:
        pattern = (
            expression.pattern if isinstance(expression, RegexLiteral) else self.memory.text(self.value(expression))
        )
        return compiled(pattern)

    def _binary(self, expression: Binary) -> Value:
        operator = expression.operator
        if operator == "&&":
            return float(truth(self.value(expression.left)) and truth(self.value(expression.right)))
        if operator == "||":
            return float(truth(self.value(expression.left)) or truth(self.value(expression.right)))
        if operator in ("~", "!~"):
            text = self.memory.text(self.value(expression.left))
            found = self.regex(expression.right).search(text) is not None
            return float(found is (operator == "~"))
        left, right = self.value(expression.left), self.value(expression.right)
        if operator == " ":
            return self.memory.bounded(self.memory.text(left) + self.memory.text(right))
        if operator in ("<", "<=", "==", "!=", ">", ">="):
            return float(self._compare(operator, left, right))
        return arithmetic(operator, number_of(left), number_of(right))

    def _compare(self, operator: str, left: Value, right: Value) -> bool:
        if is_numeric(left) and is_numeric(right):
            first, second = number_of(left), number_of(right)
            order = (first > second) - (first < second)
        else:
            one, two = self.memory.text(left), self.memory.text(right)
            order = (one > two) - (one < two)
        return {"<": order < 0, "<=": order <= 0, "==": order == 0, "!=": order != 0, ">": order > 0, ">=": order >= 0}[
            operator
        ]
