"""Templates of alert labels and annotations: Go's, with the functions of Prometheus.

As in the real server `$labels` and `$value` are those of the alert's element. A template that cannot be parsed makes
its rule file invalid; an error of its execution replaces the text. Functions that run queries are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from srearena.cluster.embedded.telemetry import templates
from srearena.cluster.embedded.telemetry.alerts import humanize
from srearena.cluster.embedded.telemetry.logs.logql.template_functions import FUNCTIONS as COMMON
from srearena.cluster.embedded.telemetry.templates import TemplateError
from srearena.regular_expressions import PatternError, pattern

__all__ = ["Template", "TemplateError"]

_PREAMBLE = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$value := .Value}}"
_OF_GO = ("printf", "print", "println", "len", "index", "not", "and", "or", "eq", "ne", "lt", "le", "gt", "ge")


def _replace_all(expression: str, replacement: str, text: str) -> str:
    """Prometheus' `reReplaceAll`."""
    try:
        compiled = pattern(expression)
    except PatternError as error:
        raise TemplateError(str(error)) from None
    return compiled.replace_all(text, lambda match: match.expand(replacement))


_FUNCTIONS: dict[str, templates.Function] = {
    **{name: COMMON[name] for name in _OF_GO},
    "humanize": lambda value: humanize.humanize(float(value)),
    "humanize1024": lambda value: humanize.humanize_1024(float(value)),
    "humanizePercentage": lambda value: humanize.humanize_percentage(float(value)),
    "humanizeDuration": lambda value: humanize.humanize_duration(float(value)),
    "humanizeTimestamp": lambda value: humanize.humanize_timestamp(float(value)),
    "toUpper": str.upper,
    "toLower": str.lower,
    "title": str.title,
    "stripPort": lambda value: re.sub(r":\d+$", "", value),
    "stripDomain": lambda value: re.sub(r"^([^.:]+)\.[^:]*", r"\1", value),
    "reReplaceAll": _replace_all,
}


class Template:
    """A text with actions, parsed once and rendered often."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.uses_value = "$value" in source or ".Value" in source
        self._template = templates.Template(_PREAMBLE + source, _FUNCTIONS)

    def render(self, labels: Mapping[str, str], value: float) -> str:
        dot: dict[str, Any] = {"Labels": labels, "ExternalLabels": {}, "Value": value}
        try:
            return self._template.render(dot, _FUNCTIONS)
        except TemplateError as error:
            return f"<error expanding template: {error}>"
