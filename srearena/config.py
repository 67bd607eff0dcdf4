"""`config.yml`: the cluster on which problems run. Without it, clusters are embedded."""

from __future__ import annotations

import os
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from srearena.errors import SreArenaError, one_line

EMBEDDED = "embedded"


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

    @property
    def embedded(self) -> bool:
        return self.k8s_host == EMBEDDED


def load_config(path: Path | None = None) -> Config:
    """Read `SREARENA_CONFIG`, or `config.yml` of the working directory; defaults where there is none."""
    named = os.environ.get("SREARENA_CONFIG")
    file = path or Path(named or "config.yml")
    if not file.is_file():
        if path is not None or named:
            raise ConfigError(f"there is no configuration at {file}")
        return Config()
    try:
        return Config.model_validate(yaml.safe_load(file.read_text()) or {})
    except yaml.YAMLError as problem:
        raise ConfigError(f"{file} is not YAML: {one_line(problem)}") from problem
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "it"
        raise ConfigError(f"{file}: {where}: {first['msg']} (see config.yml.example)") from problem
