"""Settings of a program: the values its model declares, read from the running container.

They are read once, when the process starts, as a real program reads its configuration: a change of a file has no
effect until a restart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from srearena.application_model.amounts import SETTING, seconds
from srearena.application_model.schema import Condition, Configuration, Setting
from srearena.cluster.embedded.machine.files.file_view import FileView

_FALSE = frozenset(("", "0", "false", "off", "no", "none", "disabled"))


class ConfigurationMissing(Exception):
    """The configuration file cannot be read or parsed; the text says why."""


class Settings:
    """Values by name, and texts with `${name}` filled in."""

    def __init__(self, values: Mapping[str, str | None]) -> None:
        self.values = dict(values)

    def __getitem__(self, name: str) -> str | None:
        return self.values.get(name)

    def fill(self, text: str) -> str:
        """Fill settings into a text; a setting without a value is empty, as an unset variable is."""
        if "${" not in text:
            return text
        return SETTING.sub(lambda found: self.values.get(found[1]) or "", text)

    def number(self, value: float | str | None, default: float) -> float:
        """Return a number with settings filled in; the default where there is none."""
        if value is None:
            return default
        if not isinstance(value, str):
            return value
        try:
            return float(self.fill(value))
        except ValueError:
            return default

    def seconds(self, value: float | str | None, default: float) -> float:
        """Return a duration with settings filled in; the default where there is none."""
        if value is None:
            return default
        try:
            return seconds(self.fill(value) if isinstance(value, str) else value)
        except ValueError:
            return default

    def satisfy(self, condition: Condition) -> bool:
        """Return whether the part of a condition that is about settings holds."""
        return condition.setting is None or holds(self.values.get(condition.setting), condition)


def holds(value: Any, condition: Condition) -> bool:
    """Return whether a value satisfies a condition."""
    text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    if condition.equals is not None:
        return any(
            text == (str(expected).lower() if isinstance(expected, bool) else str(expected))
            for expected in condition.equals
        )
    if condition.below is not None or condition.above is not None:
        try:
            number = float(text)
        except ValueError:
            return False
        return (condition.below is None or number < condition.below) and (
            condition.above is None or number > condition.above
        )
    return text.lower() not in _FALSE


def read_settings(
    declared: Mapping[str, Setting],
    configuration: Configuration | None,
    env: Mapping[str, str],
    arguments: Sequence[str],
    files: FileView,
    workdir: str,
) -> Settings:
    """Read the declared settings; ConfigurationMissing where the configuration file cannot be read."""
    config = _configuration(configuration, files, workdir) if configuration is not None else {}
    values: dict[str, str | None] = {}
    for name, setting in declared.items():
        found = _raw_value(setting, config, env, arguments, files)
        if found is not None and setting.match is not None:
            part = re.search(setting.match, found)
            found = part[1] if part is not None else None
        values[name] = found if found is not None else None if setting.default is None else str(setting.default)
    return Settings(values)


def _raw_value(
    setting: Setting, config: Mapping[str, Any], env: Mapping[str, str], arguments: Sequence[str], files: FileView
) -> str | None:
    if setting.value is not None:
        return str(setting.value)
    if setting.env is not None and env.get(setting.env) not in (None, ""):
        return env[setting.env]
    if setting.config is not None:
        value: Any = config
        for part in setting.config.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None:
            return str(value)
    if setting.argument is not None:
        for position, word in enumerate(arguments):
            name, equals, value = word.partition("=")
            if name == setting.argument:
                return value if equals else arguments[position + 1] if position + 1 < len(arguments) else ""
    if setting.file is not None and files.is_file(setting.file):
        return files.read_text(setting.file).strip()
    return None


def _configuration(configuration: Configuration, files: FileView, workdir: str) -> Mapping[str, Any]:
    path = configuration.path if configuration.path.startswith("/") else f"{workdir.rstrip('/')}/{configuration.path}"
    if not files.is_file(path):
        raise ConfigurationMissing(f"open {configuration.path}: no such file or directory")
    text = files.read_text(path)
    try:
        if configuration.format == "json":
            loaded = json.loads(text)
        elif configuration.format == "yaml":
            loaded = yaml.safe_load(text)
        else:
            lines = (line.partition("=") for line in text.splitlines() if "=" in line)
            loaded = {name.strip(): value.strip() for name, _, value in lines}
    except (ValueError, yaml.YAMLError, RecursionError) as problem:
        raise ConfigurationMissing(f"{configuration.path}: {str(problem).splitlines()[0]}") from None
    if not isinstance(loaded, Mapping):
        raise ConfigurationMissing(f"{configuration.path}: not a mapping")
    return loaded
