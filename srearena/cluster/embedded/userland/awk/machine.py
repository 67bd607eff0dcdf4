"""Runs an awk program over records.

Statements are coroutines that let virtual time pass, so that an endless loop in a program is only an endless process.
"""

from __future__ import annotations

from collections.abc import Mapping

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.awk.evaluator import Evaluator
from srearena.cluster.embedded.userland.awk.functions import format_values
from srearena.cluster.embedded.userland.awk.memory import Memory
from srearena.cluster.embedded.userland.awk.outputs import Outputs
from srearena.cluster.embedded.userland.awk.syntax import (
    Block,
    Delete,
    Evaluate,
    Expression,
    ForIn,
    If,
    Leave,
    Print,
    Rule,
    Statement,
    While,
)
from srearena.cluster.embedded.userland.awk.values import Input, Value, number_of, truth, whole

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
        self.memory = Memory(environment)
        self.outputs = Outputs(process)
        self._evaluator = Evaluator(self.memory, self.outputs)
        self.exit_status = 0
        self._steps = 0
        self._in_range: set[int] = set()

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
        self.memory.set_record(text)
        self.memory.variables["NR"] = number_of(self.memory.variables["NR"]) + 1
        self.memory.variables["FNR"] = number_of(self.memory.variables["FNR"]) + 1
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
            return truth(self._value(rule.pattern))
        if index not in self._in_range:
            if not truth(self._value(rule.pattern)):
                return False
            self._in_range.add(index)
        if truth(self._value(rule.until)):
            self._in_range.discard(index)
        return True

    async def breathe(self) -> None:
        self._steps += 1
        if self._steps >= STEPS_PER_BREATH or self.outputs.is_much:
            self._steps = 0
            await self.outputs.flush()
            await self.process.spend(STEPS_PER_BREATH * 5e-6)

    def _value(self, expression: Expression) -> Value:
        return self._evaluator.value(expression)

    # --- statements ------------------------------------------------------------------------------------------

    async def execute(self, statement: Statement) -> None:
        await self.breathe()
        match statement:
            case Evaluate(expression):
                self._value(expression)
            case Print():
                await self._print(statement)
            case Block(statements):
                for inner in statements:
                    await self.execute(inner)
            case If(condition, yes, no):
                if truth(self._value(condition)):
                    await self.execute(yes)
                elif no is not None:
                    await self.execute(no)
            case While():
                await self._loop(statement)
            case ForIn(name, array, body):
                for key in list(self.memory.arrays.get(array, {})):
                    self.memory.variables[name] = Input(key)
                    if not await self._iteration(body):
                        break
            case Leave(kind, status):
                raise LeaveRule(kind, self.exit_status if status is None else whole(self._value(status)) & 0xFF)
            case Delete(array, subscripts):
                if subscripts is None:
                    self.memory.arrays.pop(array, None)
                else:
                    self.memory.arrays.get(array, {}).pop(self._evaluator.subscript(subscripts), None)

    async def _loop(self, statement: While) -> None:
        first = statement.body_first
        while first or statement.condition is None or truth(self._value(statement.condition)):
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
            values = [self._value(argument) for argument in statement.arguments]
            text = format_values(self.memory, values)
        elif statement.arguments:
            separator = self.memory.text(self.memory.variables["OFS"])
            shown = (self.memory.output_text(self._value(argument)) for argument in statement.arguments)
            text = separator.join(shown) + self.memory.text(self.memory.variables["ORS"])
        else:
            text = self.memory.record + self.memory.text(self.memory.variables["ORS"])
        if not statement.redirect or statement.target is None:
            self.outputs.write(text)
            return
        await self.outputs.write_to(self.memory.text(self._value(statement.target)), text, statement.redirect)
