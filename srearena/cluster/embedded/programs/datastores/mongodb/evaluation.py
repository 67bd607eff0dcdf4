"""Runs the scripts that `script` parses.

Values are Python's own (dict, list, str, int, float, bool, None) plus those of `values`; a host object is a `Host`
that answers `get`. Every step costs the process a little processor time, so a loop without end costs virtual time and
not the simulator's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.datastores.mongodb.members import (
    Function,
    Host,
    combined,
    kind_of,
    member,
    number,
    truthy,
)
from srearena.cluster.embedded.programs.datastores.mongodb.script import Node
from srearena.cluster.embedded.programs.datastores.mongodb.values import (
    UNDEFINED,
    Pattern,
    plain,
)

STEP = 0.000002


class Thrown(Exception):
    """A JavaScript exception."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value

    @property
    def text(self) -> str:
        if isinstance(self.value, dict) and "message" in self.value:
            return f"{self.value.get('name', 'Error')}: {plain(self.value['message'])}"
        return plain(self.value)


def failure(message: str, name: str = "Error", **facts: object) -> Thrown:
    return Thrown({"name": name, "message": message, **facts})


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class Scope:
    __slots__ = ("names", "parent")

    def __init__(self, parent: Scope | None = None) -> None:
        self.names: dict[str, Any] = {}
        self.parent = parent

    def find(self, name: str) -> Scope | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope
            scope = scope.parent
        return None


class Evaluator:
    def __init__(self, process: Process) -> None:
        self.process = process
        self.globals = Scope()

    async def program(self, statements: Sequence[Node]) -> Any:
        """Run a script; every error is a JavaScript exception."""
        try:
            return await self.run(statements)
        except _Return:
            raise failure("Illegal return statement", "SyntaxError") from None
        except _Break:
            raise failure("Illegal break statement", "SyntaxError") from None
        except _Continue:
            raise failure("Illegal continue statement: no surrounding iteration statement", "SyntaxError") from None
        except RecursionError:
            raise failure("Maximum call stack size exceeded", "RangeError") from None
        except (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError):
            raise failure("the value cannot be used like that", "TypeError") from None

    async def run(self, statements: Sequence[Node], scope: Scope | None = None) -> Any:
        """Run them; the value of the last expression."""
        value: Any = UNDEFINED
        inside = self.globals if scope is None else scope
        for statement in statements:
            value = await self._statement(statement, inside)
        return value

    async def _statement(self, node: Node, scope: Scope) -> Any:
        await self.process.spend(STEP)
        kind = node[0]
        if kind == "expression":
            return await self.value(node[1], scope)
        if kind == "var":
            for name, value in node[1]:
                scope.names[name] = await self.value(value, scope)
        elif kind == "declare":
            scope.names[node[1]] = self._function(node[2], scope)
        elif kind == "block":
            return await self.run(node[1], Scope(scope) if scope is not self.globals else scope)
        elif kind == "if":
            if truthy(await self.value(node[1], scope)):
                return await self._statement(node[2], scope)
            if node[3] is not None:
                return await self._statement(node[3], scope)
        elif kind in ("for", "while", "for_each"):
            await self._loop(node, scope)
        elif kind == "try":
            return await self._try(node, scope)
        elif kind == "throw":
            raise Thrown(await self.value(node[1], scope))
        elif kind == "return":
            raise _Return(await self.value(node[1], scope))
        elif kind == "break":
            raise _Break
        elif kind == "continue":
            raise _Continue
        return UNDEFINED

    async def _loop(self, node: Node, scope: Scope) -> None:
        try:
            if node[0] == "for_each":
                over = await self.value(node[3], scope)
                if isinstance(over, Host):
                    over = await over.display()
                items = list(over) if isinstance(over, dict | list | str) else []
                if node[1] == "in" and isinstance(over, list):
                    items = [str(index) for index in range(len(over))]
                for item in items:
                    scope.names[node[2]] = item
                    await self._body(node[4], scope)
                return
            first, test, step, body = (None, node[1], None, node[2]) if node[0] == "while" else node[1:]
            if first is not None:
                await self._statement(first, scope)
            while truthy(await self.value(test, scope)):
                await self._body(body, scope)
                if step is not None:
                    await self.value(step, scope)
        except _Break:
            return

    async def _body(self, body: Node, scope: Scope) -> None:
        try:
            await self._statement(body, scope)
        except _Continue:
            return

    async def _try(self, node: Node, scope: Scope) -> Any:
        _, body, name, handler, final = node
        try:
            try:
                return await self.run(body, Scope(scope))
            except Thrown as thrown:
                if handler is None:
                    raise
                inner = Scope(scope)
                if name:
                    inner.names[name] = thrown.value
                return await self.run(handler, inner)
        finally:
            if final is not None:
                await self.run(final, Scope(scope))

    def _function(self, node: Node, scope: Scope) -> Function:
        _, parameters, body = node

        async def call(*arguments: Any) -> Any:
            inner = Scope(scope)
            inner.names["arguments"] = list(arguments)
            for index, name in enumerate(parameters):
                inner.names[name] = arguments[index] if index < len(arguments) else UNDEFINED
            try:
                await self.run(body, inner)
            except _Return as returned:
                return returned.value
            return UNDEFINED

        return call

    # --- expressions -------------------------------------------------------------------------------------------

    async def value(self, node: Node, scope: Scope) -> Any:
        handler: Callable[[Node, Scope], Awaitable[Any]] | None = getattr(self, f"_eval_{node[0]}", None)
        if handler is None:
            raise failure(f"Unexpected token '{node[0]}'", "SyntaxError")
        return await handler(node, scope)

    async def _eval_literal(self, node: Node, scope: Scope) -> Any:
        return node[1]

    async def _eval_undefined(self, node: Node, scope: Scope) -> Any:
        return UNDEFINED

    async def _eval_regex(self, node: Node, scope: Scope) -> Any:
        return Pattern(node[1], node[2])

    async def _eval_name(self, node: Node, scope: Scope) -> Any:
        found = scope.find(node[1])
        if found is not None:
            return found.names[node[1]]
        if node[1] == "undefined":
            return UNDEFINED
        raise failure(f"{node[1]} is not defined", "ReferenceError")

    async def _eval_template(self, node: Node, scope: Scope) -> Any:
        return "".join([plain(await self.value(part, scope)) for part in node[1]])

    async def _eval_comma(self, node: Node, scope: Scope) -> Any:
        await self.value(node[1], scope)
        return await self.value(node[2], scope)

    async def _eval_function(self, node: Node, scope: Scope) -> Any:
        return self._function(node, scope)

    async def _eval_array(self, node: Node, scope: Scope) -> Any:
        return await self._items(node[1], scope)

    async def _items(self, nodes: Sequence[Node], scope: Scope) -> list[Any]:
        items: list[Any] = []
        for node in nodes:
            if node[0] == "spread":
                items.extend(await self.value(node[1], scope))
            else:
                items.append(await self.value(node, scope))
        return items

    async def _eval_object(self, node: Node, scope: Scope) -> Any:
        result: dict[str, Any] = {}
        for key, value in node[1]:
            if key is None:
                result.update(await self.value(value, scope))
            else:
                result[plain(await self.value(key, scope))] = await self.value(value, scope)
        return result

    async def _eval_if_else(self, node: Node, scope: Scope) -> Any:
        return await self.value(node[2] if truthy(await self.value(node[1], scope)) else node[3], scope)

    async def _eval_assign(self, node: Node, scope: Scope) -> Any:
        value = await self.value(node[2], scope)
        target = node[1]
        if target[0] == "name":
            (scope.find(target[1]) or self.globals).names[target[1]] = value
            return value
        owner = await self.value(target[1], scope)
        key = await self.value(target[2], scope)
        if isinstance(owner, dict):
            owner[plain(key)] = value
        elif isinstance(owner, list) and isinstance(key, int) and 0 <= key <= len(owner):
            owner[key : key + 1] = [value]
        return value

    async def _eval_post(self, node: Node, scope: Scope) -> Any:
        before = await self.value(node[1], scope)
        await self.value(node[2], scope)
        return before

    async def _eval_unary(self, node: Node, scope: Scope) -> Any:
        _, word, operand = node
        if word == "typeof":
            try:
                return kind_of(await self.value(operand, scope))
            except Thrown:
                return "undefined"
        if word == "delete":
            owner = await self.value(operand[1], scope)
            if isinstance(owner, dict):
                owner.pop(plain(await self.value(operand[2], scope)), None)
            return True
        value = await self.value(operand, scope)
        if word == "!":
            return not truthy(value)
        if word == "void":
            return UNDEFINED
        if word == "await":
            return value
        return -number(value) if word == "-" else number(value)

    async def _eval_binary(self, node: Node, scope: Scope) -> Any:
        _, word, left_node, right_node = node
        left = await self.value(left_node, scope)
        if word == "&&":
            return await self.value(right_node, scope) if truthy(left) else left
        if word == "||":
            return left if truthy(left) else await self.value(right_node, scope)
        if word == "??":
            return await self.value(right_node, scope) if left is None or left is UNDEFINED else left
        return combined(word, left, await self.value(right_node, scope))

    async def _eval_member(self, node: Node, scope: Scope) -> Any:
        owner = await self.value(node[1], scope)
        key = await self.value(node[2], scope)
        if owner is None or owner is UNDEFINED:
            if node[3]:
                return UNDEFINED
            raise failure(f"Cannot read properties of {plain(owner)} (reading '{plain(key)}')", "TypeError")
        return member(owner, key)

    async def _eval_call(self, node: Node, scope: Scope) -> Any:
        await self.process.spend(STEP)
        function = await self.value(node[1], scope)
        arguments = await self._items(node[2], scope)
        if not callable(function):
            raise failure(f"{_written(node[1])} is not a function", "TypeError")
        try:
            return await function(*arguments)
        except (TypeError, ValueError, KeyError, AttributeError, IndexError):
            raise failure(f"{_written(node[1])}: bad arguments", "TypeError") from None


def _written(node: Node) -> str:
    if node[0] == "name":
        return str(node[1])
    if node[0] == "member":
        return f"{_written(node[1])}.{plain(node[2][1]) if node[2][0] == 'literal' else '[...]'}"
    return "(intermediate value)"
