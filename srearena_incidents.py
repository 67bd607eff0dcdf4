"""The module that Prime Intellect's verifiers imports for the taskset `srearena-incidents` (docs/verifiers.md)."""

from srearena.frameworks.verifiers_taskset import IncidentsEnv, IncidentsTaskset, load_environment

__all__ = ["IncidentsEnv", "IncidentsTaskset", "load_environment"]
