"""What kubectl prints: the server's tables, names, JSON, YAML and JSONPath templates."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import yaml

from srearena import kubectl_output
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.programs.toolboxes.kubectl.errors import KubectlError
from srearena.cluster.embedded.registry.jsonpath_text import text_of

TABLE = kubectl_output.TABLE


def table_text(tables: Sequence[Obj], *, headers: bool, wide: bool, namespaces: bool, kind: str = "") -> str:
    """Server-side tables of one resource as columns; `kind` goes before names where several are shown."""
    return kubectl_output.table_text(
        tables, headers=headers, wide=wide, namespaces=namespaces, kind=kind, text_of=text_of
    )


def yaml_text(obj: Obj) -> str:
    text: str = yaml.safe_dump(obj, default_flow_style=False, sort_keys=True)
    return text


def json_text(obj: Obj) -> str:
    return json.dumps(obj, indent=4, ensure_ascii=False) + "\n"


def template_text(template: str, obj: Any) -> str:
    """A JSONPath template: text, `{.path}`, `{"\\n"}` and `{range .path}...{end}`."""
    try:
        return kubectl_output.template_text(template, obj, text_of)
    except kubectl_output.TemplateError as problem:
        raise KubectlError(str(problem)) from None
