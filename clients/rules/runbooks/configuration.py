"""ConfigMaps that were edited before the trouble, and feature flags that are switched on."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from clients.rules import commands
from clients.rules.changes import edits
from clients.rules.hypotheses import Hypothesis, Repair, Strength
from clients.rules.runbooks import runbook
from clients.rules.system import Obj, System, name_of, path_of
from clients.rules.topology import config_maps_of

_OFF = ("off", "false", "disabled", "none", "0", "no")


@runbook
def flag_switched_on(system: System) -> Iterator[Hypothesis]:
    """A document of feature flags (OpenFeature) was edited, and a flag is on while most are off."""
    for config in system.own("configmaps"):
        changed = edited_keys(config)
        for key, text in (config.get("data") or {}).items():
            flags = _flags(text)
            states = Counter(str(flag.get("defaultVariant")).lower() in _OFF for flag in flags.values())
            if not flags or states[True] < states[False]:
                continue
            on = {name for name, flag in flags.items() if str(flag.get("defaultVariant")).lower() not in _OFF}
            if not on or key not in changed:
                continue
            document = json.loads(text)
            for name in on:
                flag = document["flags"][name]
                off = next((v for v in flag.get("variants") or () if str(v).lower() in _OFF), None)
                if off is not None:
                    flag["defaultVariant"] = off
            yield Hypothesis(
                path_of(config),
                f"its flag {', '.join(sorted(on))} was switched on",
                Strength.CONFIRMED,
                [commands.patch(config, [(("data", key), json.dumps(document, indent=2))]), *_restarts(system, config)],
                frozenset({name_of(config)}),
            )


def _flags(text: str) -> dict[str, Any]:
    if '"flags"' not in text:
        return {}
    try:
        flags = json.loads(text).get("flags")
    except (ValueError, AttributeError):
        return {}
    return flags if isinstance(flags, dict) else {}


def edited_keys(config: Obj) -> dict[str, float]:
    """Keys that another manager than the first author has written, with the time."""
    found: dict[str, float] = {}
    for edit in edits(config):
        for path in edit.fields:
            if path[0] in ("data", "binaryData") and len(path) > 1:
                found[path[1]] = max(edit.at, found.get(path[1], 0.0))
    return found


def _is_setting(key: str, value: str) -> bool:
    """Whether a key is read by programs: a file, or an environment variable; a bare word is a note."""
    return "." in key or key.isupper() or "\n" in value


def _consumers(system: System, config: Obj) -> list[Obj]:
    return [one for one in system.workloads if name_of(config) in config_maps_of(one)]


def _restarts(system: System, config: Obj) -> list[Repair]:
    return [commands.restart(one) for one in _consumers(system, config)]


@runbook
def edited_before_the_trouble(system: System) -> Iterator[Hypothesis]:
    """A setting was edited shortly before the trouble began, and a program that reads it suffers."""
    for config in system.own("configmaps"):
        data = config.get("data") or {}
        keys = {
            key: at
            for key, at in edited_keys(config).items()
            if system.preceded_trouble(at) and _is_setting(key, str(data.get(key, "")))
        }
        readers = {name_of(one) for one in _consumers(system, config)}
        if not keys or not system.alerts or any(_flags(str(data.get(key))) for key in keys):
            continue
        changes = [change for key in keys if (change := _better(system, config, key)) is not None]
        repairs = [commands.patch(config, changes), *_restarts(system, config)] if changes else []
        yield Hypothesis(
            path_of(config),
            f"its {', '.join(sorted(keys))} was edited shortly before the first alert",
            Strength.CONFIRMED if readers & system.suffering else Strength.POSSIBLE,
            repairs,
            frozenset(readers or {name_of(config)}),
        )


def _better(system: System, config: Obj, key: str) -> tuple[tuple[str, ...], str] | None:
    """A better value for a setting: that of most siblings, or a moderate one."""
    present = str((config.get("data") or {}).get(key, ""))
    siblings = Counter(
        str(other["data"][key])
        for other in system.own("configmaps")
        if other is not config and key in (other.get("data") or {})
    )
    if siblings:
        value, count = siblings.most_common(1)[0]
        return (("data", key), value) if value != present and count > 1 else None
    moderate = _moderate(key, present)
    return (("data", key), moderate) if moderate is not None else None


def _moderate(key: str, value: str) -> str | None:
    """Settings that multiply load: many retries and short time-outs."""
    number = re.fullmatch(r"(\d+)(ms|s)?", value)
    if number is None:
        return None
    amount = int(number[1])
    if re.search(r"RETR(Y|IES)", key, re.IGNORECASE) and amount > 3:
        return "1"
    if "TIMEOUT" in key.upper() and amount * (1 if number[2] == "ms" else 1000) < 500:
        return "1s" if number[2] else "1000"
    return None
