"""The templates of alert labels and annotations: Go's, with the functions Prometheus gives them.

As in the real server `$labels` and `$value` stand for what the alert's element has. A template that cannot be read is
refused with its rule file; one that cannot be carried out says so in the text, and harms nothing else. Functions that
would ask further queries are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from srearena.cluster.embedded.telemetry import templates
from srearena.cluster.embedded.telemetry.alerts import humanized
from srearena.cluster.embedded.telemetry.logs.logql.template_functions import FUNCTIONS as COMMON
from srearena.cluster.embedded.telemetry.templates import TemplateError
from srearena.regular_expressions import PatternError, pattern

__all__ = ["Template", "TemplateError"]

_PREAMBLE = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$value := .Value}}"
_OF_GO = ("printf", "print", "println", "len", "index", "not", "and", "or", "eq", "ne", "lt", "le", "gt", "ge")


def _replaced(expression: str, replacement: str, text: str) -> str:
    """Prometheus' `reReplaceAll`."""
    try:
        compiled = pattern(expression)
    except PatternError as error:
        raise TemplateError(str(error)) from None
    return compiled.replace_all(text, lambda match: match.expand(replacement))


_FUNCTIONS: dict[str, templates.Function] = {
    **{name: COMMON[name] for name in _OF_GO},
    "humanize": lambda value: humanized.humanize(float(value)),
    "humanize1024": lambda value: humanized.humanize_1024(float(value)),
    "humanizePercentage": lambda value: humanized.humanize_percentage(float(value)),
    "humanizeDuration": lambda value: humanized.humanize_duration(float(value)),
    "humanizeTimestamp": lambda value: humanized.humanize_timestamp(float(value)),
    "toUpper": str.upper,
    "toLower": str.lower,
    "title": str.title,
    "stripPort": lambda value: re.sub(r":\d+$", "", value),
    "stripDomain": lambda value: re.sub(r"^([^.:]+)\.[^:]*", r"\1", value),
    "reReplaceAll": _replaced,
}


class Template:
    """A text with actions in it, read once, filled in often."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.uses_value = "$value" in source or ".Value" in source
        self._template = templates.Template(_PREAMBLE + source, _FUNCTIONS)

    def filled(self, labels: Mapping[str, str], value: float) -> str:
        dot: dict[str, Any] = {"Labels": labels, "ExternalLabels": {}, "Value": value}
        try:
            return self._template.render(dot, _FUNCTIONS)
        except TemplateError as error:
            return f"<error expanding template: {error}>"
