"""`sre-tools`: the diagnostic tools as a shell command, one call per command.

    sre-tools --list
    sre-tools alert_summary --snapshot Scenario-3 --limit 5
    sre-tools event_analysis --filters '{"event_kind": "Warning"}' --group_by reason

The value of an argument is parsed as JSON if possible, and is text otherwise.
"""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis import Tool, Workspace, all_tools, call_tool
from srearena.errors import SreArenaError

MANIFEST = Path(__file__).parent / "manifest.toml"
_USAGE = (
    "usage: sre-tools --list | sre-tools TOOL --help | sre-tools TOOL [--snapshot DIR] [--cache DIR] [--ARG VALUE]..."
)
_TEXT_ONLY = frozenset({"string", "null"})


def _listing() -> str:
    """The tools of the manifest; none is loaded."""
    tools = tomllib.loads(MANIFEST.read_text(encoding="utf-8"))["tools"]
    return "\n".join(f"{tool['name']:<26} {tool['title']}" for tool in tools)


def _help(name: str) -> str:
    tool = _tool(name)
    lines = [tool.description, ""]
    for argument, schema in tool.input_schema["properties"].items():
        lines.append(f"  --{argument:<26} {schema.get('description', '')}".rstrip())
    return "\n".join(lines)


def _tool(name: str) -> Tool:
    tools = all_tools()
    if name not in tools:
        raise ToolError(f"there is no tool {name!r}; `sre-tools --list` lists the tools")
    return tools[name]


def _types(schema: dict[str, Any]) -> set[str]:
    return {option.get("type", "any") for option in schema.get("anyOf", [schema])}


def _value(text: str, schema: dict[str, Any]) -> Any:
    if _types(schema) <= _TEXT_ONLY:
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _arguments(words: list[str], properties: dict[str, Any]) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    position = 0
    while position < len(words):
        word = words[position]
        if not word.startswith("--"):
            raise ToolError(f"{word!r} is not an argument; arguments begin with --")
        name, equals, value = word[2:].partition("=")
        name = name.replace("-", "_")
        schema = properties.get(name, {})
        if equals:
            position += 1
        elif position + 1 < len(words) and not words[position + 1].startswith("--"):
            value = words[position + 1]
            position += 2
        elif "boolean" in _types(schema):
            value = "true"
            position += 1
        else:
            raise ToolError(f"--{name} needs a value")
        arguments[name] = _value(value, schema)
    return arguments


def run(words: list[str]) -> str:
    """Run the command and return its output."""
    if not words or words[0] in ("-h", "--help"):
        return _USAGE
    if words[0] == "--list":
        return _listing()
    if words[0].startswith("-"):
        raise ToolError(
            f"the tool's name comes first: sre-tools TOOL {words[0]} ...; `sre-tools --list` lists the tools"
        )
    name, options = words[0], words[1:]
    if "--help" in options or "-h" in options:
        return _help(name)
    arguments = _arguments(options, _tool(name).input_schema["properties"])
    root = arguments.pop("snapshot", None) or os.environ.get("SRE_TOOLS_SNAPSHOT") or "."
    cache = arguments.pop("cache", None)
    with Workspace(str(root), cache=Path(str(cache)) if cache else None) as workspace:
        return json.dumps(call_tool(workspace, name, arguments), indent=1, ensure_ascii=False, default=str)


def main() -> None:
    try:
        print(run(sys.argv[1:]))
    except BrokenPipeError:
        sys.stderr.close()
    except SreArenaError as problem:
        print(f"Error: {problem}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
