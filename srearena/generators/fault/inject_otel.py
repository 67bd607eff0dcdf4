"""Faults behind the feature flags of the Astronomy Shop: a flag is set in the config map of flagd.

flagd's pod copies the flags at startup, so it is replaced; the programs query flagd continuously and are not.
"""

from __future__ import annotations

import json
from typing import Any

from srearena.generators.fault.edits import CompositeFault, Edit, ReplacePods
from srearena.generators.fault.errors import FaultError
from srearena.generators.fault.registry import Fault, fault
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj

CONFIG_MAP, KEY = "flagd-config", "demo.flagd.json"
_FLAGD = "opentelemetry.io/name=flagd"
_VARIANTS = {
    "adFailure": "on",
    "adHighCpu": "on",
    "adManualGc": "on",
    "cartFailure": "on",
    "emailMemoryLeak": "1000x",
    "failedReadinessProbe": "on",
    "imageSlowLoad": "10sec",
    "kafkaQueueProblems": "on",
    "llmInaccurateResponse": "on",
    "llmRateLimitError": "on",
    "loadGeneratorFloodHomepage": "on",
    "paymentFailure": "100%",
    "paymentUnreachable": "on",
    "productCatalogFailure": "on",
    "recommendationCacheFailure": "on",
}


def flag_change(flag: str, variant: str, config_map: str = CONFIG_MAP, key: str = KEY) -> Any:
    """The edit of a config map that sets the default variant of a flag."""

    def change(obj: Obj) -> None:
        document = json.loads(obj["data"][key])
        definition = document["flags"].get(flag)
        if definition is None or variant not in definition["variants"]:
            raise FaultError(f"{config_map} has no flag {flag!r} with a variant {variant!r}")
        definition["defaultVariant"] = variant
        obj["data"][key] = json.dumps(document, indent=2) + "\n"

    return change


def feature_flag(bed: Testbed, service: str, flag: str, variant: str) -> Fault:
    """A flag that changes the behaviour of `service` is set."""
    return CompositeFault(Edit(bed, "configmaps", CONFIG_MAP, flag_change(flag, variant)), ReplacePods(bed, _FLAGD))


def _register(flag: str, default_variant: str) -> None:
    @fault(flag)
    def make(bed: Testbed, service: str, variant: str = default_variant) -> Fault:
        return feature_flag(bed, service, flag, variant)


for _flag, _variant in _VARIANTS.items():
    _register(_flag, _variant)
