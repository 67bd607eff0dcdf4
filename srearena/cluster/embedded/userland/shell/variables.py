"""A shell's variables: values, which of them children see, which may not change, and the scopes of functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

Names = set[str]


class ReadOnlyVariable(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Variables:
    __slots__ = ("_environment", "_exported", "_locals", "_passed_on", "_readonly", "_values")

    def __init__(self, environment: Mapping[str, str], *, keep_unusable: bool = True) -> None:
        self._values: dict[str, str] = {k: v for k, v in environment.items() if k.isidentifier() and k.isascii()}
        self._passed_on = {k: v for k, v in environment.items() if keep_unusable and k not in self._values}
        """Variables that the shell cannot name (`data-1`): children get them all the same."""
        self._exported: set[str] = set(self._values)
        self._readonly: set[str] = set()
        self._locals: list[dict[str, tuple[str | None, bool]]] = []
        self._environment: Mapping[str, str] | None = None

    def copy(self) -> Variables:
        duplicate = Variables({})
        duplicate._values = dict(self._values)
        duplicate._passed_on = self._passed_on
        duplicate._exported = set(self._exported)
        duplicate._readonly = set(self._readonly)
        duplicate._locals = [dict(scope) for scope in self._locals]
        duplicate._environment = self._environment
        return duplicate

    def get(self, name: str) -> str | None:
        return self._values.get(name)

    def set(self, name: str, value: str) -> None:
        if name in self._readonly:
            raise ReadOnlyVariable(name)
        self._values[name] = value
        if name in self._exported:
            self._environment = None

    def unset(self, name: str) -> None:
        if name in self._readonly:
            raise ReadOnlyVariable(name)
        self._values.pop(name, None)
        if name in self._exported:
            self._exported.discard(name)
            self._environment = None

    def export(self, name: str, *, on: bool = True) -> None:
        if on:
            self._exported.add(name)
        else:
            self._exported.discard(name)
        self._environment = None

    def protect(self, name: str) -> None:
        self._readonly.add(name)

    @property
    def environment(self) -> Mapping[str, str]:
        """What children get."""
        if self._environment is None:
            exported = {name: value for name, value in self._values.items() if name in self._exported}
            self._environment = {**self._passed_on, **exported}
        return self._environment

    @property
    def exported(self) -> Names:
        return self._exported

    @property
    def readonly(self) -> Names:
        return self._readonly

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    # --- functions -------------------------------------------------------------------------------------------

    def enter_function(self) -> None:
        self._locals.append({})

    def leave_function(self) -> None:
        for name, (value, exported) in self._locals.pop().items():
            if value is None:
                self._values.pop(name, None)
            else:
                self._values[name] = value
            if exported:
                self._exported.add(name)
            else:
                self._exported.discard(name)
        self._environment = None

    @property
    def in_function(self) -> bool:
        return bool(self._locals)

    def make_local(self, name: str) -> None:
        """Remember the value outside, to come back when the function returns."""
        scope = self._locals[-1]
        if name not in scope:
            scope[name] = (self._values.get(name), name in self._exported)
