"""`config.yml`: where problems run. Without one, on an embedded cluster."""

from __future__ import annotations

import os
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from srearena.errors import SreArenaError

EMBEDDED = "embedded"


class ConfigError(SreArenaError):
    """The configuration cannot be used; the message says where and why."""


class TelemetryConfig(BaseModel):
    """Addresses of a real cluster's telemetry."""

    model_config = ConfigDict(extra="forbid")
    prometheus: str = ""
    loki: str = ""
    jaeger: str = ""
    alertmanager: str = ""
    token: str = ""


class Config(BaseModel):
    model_config = ConfigDict(extra="forbid")
    k8s_host: str = EMBEDDED
    k8s_user: str = ""
    kubeconfig: str = ""
    """Empty stands for the one that kubectl would use."""
    context: str = ""
    """Empty stands for the kubeconfig's current one."""
    yes_this_cluster: bool = False
    """The owner's word that a cluster may be used although its name says that people depend on it."""
    telemetry: TelemetryConfig | None = None

    @property
    def embedded(self) -> bool:
        return self.k8s_host == EMBEDDED


def load_config(path: Path | None = None) -> Config:
    """`SREARENA_CONFIG`, or `config.yml` here; the defaults where there is none."""
    named = os.environ.get("SREARENA_CONFIG")
    place = path or Path(named or "config.yml")
    if not place.is_file():
        if path is not None or named:
            raise ConfigError(f"there is no configuration at {place}")
        return Config()
    try:
        return Config.model_validate(yaml.safe_load(place.read_text()) or {})
    except yaml.YAMLError as problem:
        raise ConfigError(f"{place} is not YAML: {problem}") from problem
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "it"
        raise ConfigError(f"{place}: {where}: {first['msg']} (config.yml.example shows what there is)") from problem
