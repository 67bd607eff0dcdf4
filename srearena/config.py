"""`config.yml`: the cluster on which problems run. Without it, clusters are embedded."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from srearena.errors import SreArenaError, one_line
from srearena.paths import CONFIG_EXAMPLE, config_files

EMBEDDED = "embedded"
LogShipper = Literal["alloy", "filebeat"]


class ConfigError(SreArenaError):
    """The configuration cannot be used; the message says where and why."""


class TelemetryConfig(BaseModel):
    """Base URLs of a real cluster's telemetry APIs."""

    model_config = ConfigDict(extra="forbid")
    prometheus: str = ""
    loki: str = ""
    jaeger: str = ""
    alertmanager: str = ""
    token: str = ""


class Config(BaseModel):
    """The content of `config.yml`."""

    model_config = ConfigDict(extra="forbid")
    k8s_host: str = EMBEDDED
    k8s_user: str = ""
    kubeconfig: str = ""
    """Empty for kubectl's default."""
    context: str = ""
    """Empty for the current context of the kubeconfig."""
    yes_this_cluster: bool = False
    """Allow a cluster whose name suggests production."""
    telemetry: TelemetryConfig | None = None
    log_shipper: LogShipper = "alloy"
    """What sends containers' logs to the Loki that we install: Alloy, or Filebeat through Logstash."""

    @property
    def embedded(self) -> bool:
        return self.k8s_host == EMBEDDED


def load_config(path: Path | None = None) -> Config:
    """Read the first of `paths.config_files()`; defaults where there is none."""
    places = (path,) if path is not None else config_files()
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        if len(places) == 1:  # named by the caller or by the environment
            raise ConfigError(f"there is no configuration at {places[0]}")
        return Config()
    try:
        return Config.model_validate(yaml.safe_load(file.read_text()) or {})
    except yaml.YAMLError as problem:
        raise ConfigError(f"{file} is not YAML: {one_line(problem)}") from problem
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "it"
        raise ConfigError(f"{file}: {where}: {first['msg']} (see {CONFIG_EXAMPLE})") from problem
