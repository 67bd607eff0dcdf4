"""Feature flag definitions in flagd's file format, and their evaluation.

A flag has variants, a default variant and a state. Targeting rules are stored but not evaluated: a flag with rules gets
its default variant (no built-in application uses rules).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml


class _Yaml12(yaml.CSafeLoader):
    """YAML 1.2 booleans, as in Go: only `true` and `false`; `on` and `off` are strings."""


_Yaml12.yaml_implicit_resolvers = {
    first: [(tag, shape) for tag, shape in rules if first in "tTfF" or not tag.endswith(":bool")]
    for first, rules in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


class BadDefinitions(Exception):
    """The file is not a valid set of flags; the text is flagd's."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    value: Any
    variant: str
    reason: str = "STATIC"


class FlagError(Exception):
    """A flag cannot be evaluated; `code` is OpenFeature's."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class FlagDefinitions:
    def __init__(self, flags: Mapping[str, Mapping[str, Any]]) -> None:
        self._flags = flags

    @classmethod
    def parse(cls, data: bytes, path: str) -> FlagDefinitions:
        """Parse a file; its name determines whether it is JSON or YAML."""
        try:
            text = data.decode()
            document = yaml.load(text, Loader=_Yaml12) if path.endswith(("yaml", "yml")) else json.loads(text)
        except (ValueError, yaml.YAMLError) as problem:
            reason = str(problem).splitlines()[0]
            raise BadDefinitions(f"flag configuration is not valid: {reason}") from None
        flags = document.get("flags") if isinstance(document, dict) else None
        if not isinstance(flags, dict):
            raise BadDefinitions("flag definition does not conform to the schema: (root): flags is required")
        for name, flag in flags.items():
            error = _schema_error(flag)
            if error:
                raise BadDefinitions(f"flag definition does not conform to the schema: flags.{name}: {error}")
        return cls(flags)

    @property
    def names(self) -> list[str]:
        return list(self._flags)

    def evaluate(self, name: str) -> Evaluation:
        flag = self._flags.get(name)
        if flag is None:
            raise FlagError("FLAG_NOT_FOUND", f"flag `{name}` does not exist")
        if flag["state"] != "ENABLED":
            raise FlagError("FLAG_DISABLED", f"flag `{name}` is disabled")
        variant = str(flag["defaultVariant"])
        return Evaluation(flag["variants"][variant], variant, "DEFAULT" if flag.get("targeting") else "STATIC")


def _schema_error(flag: Any) -> str:
    if not isinstance(flag, dict):
        return "Invalid type. Expected: object"
    for field in ("state", "variants", "defaultVariant"):
        if field not in flag:
            return f"{field} is required"
    if flag["state"] not in ("ENABLED", "DISABLED"):
        return 'state must be one of the following: "ENABLED", "DISABLED"'
    if not isinstance(flag["variants"], dict) or not flag["variants"]:
        return "variants: Must have at least 1 properties"
    if str(flag["defaultVariant"]) not in flag["variants"]:
        return f"default variant: '{flag['defaultVariant']}' isn't a valid variant of flag"
    return ""
