"""The configuration of an OpenTelemetry Collector: read, expanded and checked as `otelcol` does at its start."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from srearena.cluster.embedded.machine.files.file_view import FileView

_ENVIRONMENT = re.compile(r"\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?\}")
_SECTIONS = ("receivers", "processors", "exporters", "connectors", "extensions")
_PARTS = {"receivers": "receiver", "processors": "processor", "exporters": "exporter"}
SIGNALS = ("traces", "metrics", "logs")


class InvalidConfig(Exception):
    """The text is what the program prints before it ends."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    address: str
    port: int


@dataclass(frozen=True, slots=True)
class CollectorConfig:
    document: Mapping[str, Any]

    def component(self, section: str, name: str) -> Mapping[str, Any]:
        return ((self.document.get(section) or {}).get(name)) or {}

    @property
    def pipelines(self) -> Mapping[str, Mapping[str, Any]]:
        return (self.document.get("service") or {}).get("pipelines") or {}

    @property
    def extensions(self) -> list[str]:
        return list((self.document.get("service") or {}).get("extensions") or ())

    def signals_of(self, kind: str) -> dict[str, set[str]]:
        """The receivers of a type that are in use, with the signals of their pipelines."""
        found: dict[str, set[str]] = {}
        for name, pipeline in self.pipelines.items():
            for receiver in pipeline.get("receivers") or ():
                if str(receiver).partition("/")[0] == kind:
                    found.setdefault(str(receiver), set()).add(str(name).partition("/")[0])
        return found

    def exporters_of(self, signal: str) -> list[str]:
        """The exporters of a signal's pipelines, without connectors."""
        names = [
            str(name)
            for pipeline, parts in self.pipelines.items()
            if str(pipeline).partition("/")[0] == signal
            for name in parts.get("exporters") or ()
        ]
        return [name for name in dict.fromkeys(names) if name in (self.document.get("exporters") or {})]

    def metrics_endpoint(self) -> Endpoint | None:
        """Where the program serves its own metrics: by default on the loopback interface."""
        metrics = ((self.document.get("service") or {}).get("telemetry") or {}).get("metrics") or {}
        if metrics.get("level") == "none":
            return None
        if "address" in metrics:
            return endpoint(metrics["address"], 8888)
        for reader in metrics.get("readers") or ():
            pull = ((reader.get("pull") or {}).get("exporter") or {}).get("prometheus") or {}
            if pull:
                return Endpoint(str(pull.get("host") or "localhost"), int(pull.get("port") or 8888))
        return Endpoint("localhost", 8888)


def endpoint(text: object, default: int) -> Endpoint:
    """`0.0.0.0:4317`, `:4317` or a bare host."""
    host, _, port = str(text).rpartition(":")
    return Endpoint(host.strip("[]") or "0.0.0.0", int(port) if port.isdigit() else default)


def read_config(files: FileView, path: str, environment: Mapping[str, str]) -> CollectorConfig:
    path = path.removeprefix("file:")
    try:
        text = files.read_text(path)
    except OSError as error:
        reason = f"open {path}: {str(error.strerror).lower()}"
        raise InvalidConfig(
            "failed to get config: cannot resolve the configuration: cannot retrieve the configuration: "
            f"unable to read the file file:{path}: {reason}"
        ) from None
    text = _ENVIRONMENT.sub(lambda found: environment.get(found[1], found[2] or ""), text)
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        line = f"line {place.line + 1}: " if place is not None else ""
        raise InvalidConfig(
            "failed to get config: cannot resolve the configuration: cannot retrieve the configuration: "
            f"retrieved value does not have unmarshaled content: yaml: {line}{getattr(error, 'problem', error)}"
        ) from None
    if not isinstance(document, dict):
        raise InvalidConfig("invalid configuration: no receiver configuration specified in config")
    config = CollectorConfig(document)
    _check(config)
    return config


def _check(config: CollectorConfig) -> None:
    if not config.pipelines:
        raise InvalidConfig("invalid configuration: service::pipelines: service must have at least one pipeline")
    for name in config.extensions:
        if name not in (config.document.get("extensions") or {}):
            raise InvalidConfig(
                f'invalid configuration: service::extensions: references extension "{name}" which is not configured'
            )
    connectors = config.document.get("connectors") or {}
    for pipeline, parts in config.pipelines.items():
        for section, word in _PARTS.items():
            known = config.document.get(section) or {}
            for name in parts.get(section) or ():
                if name not in known and not (section != "processors" and name in connectors):
                    raise InvalidConfig(
                        f"invalid configuration: service::pipelines::{pipeline}: "
                        f'references {word} "{name}" which is not configured'
                    )
