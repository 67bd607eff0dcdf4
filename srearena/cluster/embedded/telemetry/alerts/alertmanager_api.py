"""Alertmanager's v2 API, read-only, over the alerts that fire now.

There is one receiver, and nothing is silenced or inhibited. Writing is refused: an agent can resolve an alert only by
fixing its cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from srearena.cluster.embedded.durations import format_micro_time
from srearena.cluster.embedded.telemetry.alerts.alert import Alert
from srearena.cluster.embedded.telemetry.alerts.evaluation import Rules
from srearena.cluster.embedded.telemetry.metrics.api import Now
from srearena.cluster.embedded.telemetry.metrics.labels import Labels, keeping, value_of
from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher, PatternError, anchored
from srearena.cluster.embedded.telemetry.query_api import (
    Params,
    Response,
    first,
    json_response,
    not_found,
    text_response,
)

RECEIVER = "on-call"
GROUP_BY = frozenset(("alertname", "namespace"))
_VALID_FOR = 240.0
"""Seconds until an alert ends without a further evaluation: Prometheus' four resend delays of a minute."""
_MATCHER = re.compile(r'\s*([a-zA-Z_:][\w:]*)\s*(=~|!~|!=|=)\s*(?:"((?:[^"\\]|\\.)*)"|(.*?))\s*', re.DOTALL)
_CONFIG = f"""route:
  receiver: {RECEIVER}
  group_by: [{", ".join(sorted(GROUP_BY))}]
receivers:
- name: {RECEIVER}
"""


class AlertmanagerApi:
    def __init__(self, rules: Rules, clock: Now) -> None:
        self._rules = rules
        self._clock = clock
        self._started = clock.now

    def handle(self, method: str, path: str, params: Params) -> Response:
        if path in ("/-/healthy", "/-/ready"):
            return text_response("OK")
        name = path.removeprefix("/api/v2/") if path.startswith("/api/v2/") else ""
        if method != "GET":
            served = name in ("alerts", "silences") or name.startswith("silence/")
            return (
                json_response({"code": 405, "message": f"method {method} is not allowed: read-only"}, 405)
                if served
                else not_found()
            )
        try:
            match name:
                case "alerts":
                    return json_response([self._alert(alert) for alert in self._filtered(params)])
                case "alerts/groups":
                    return json_response(self._groups(params))
                case "status":
                    return json_response(self._status())
                case "receivers":
                    return json_response([{"name": RECEIVER}])
                case "silences":
                    return json_response([])
                case _:
                    if name.startswith("silence/"):
                        return json_response({"code": 404, "message": "silence not found"}, 404)
                    return not_found()
        except (PatternError, ValueError) as error:
            return json_response(f"bad matcher format: {error}", 400)

    def _filtered(self, params: Params) -> list[Alert]:
        matchers = [_matcher(text) for text in params.get("filter", ())]
        receiver = first(params, "receiver")
        if receiver and not anchored(receiver).matches(RECEIVER):
            return []
        if first(params, "active", "true") == "false":
            return []
        found = [alert for _, alert in self._rules.active(self._clock.now) if alert.state == "firing"]
        chosen = [alert for alert in found if all(m.holds(value_of(alert.labels, m.name)) for m in matchers)]
        return sorted(chosen, key=lambda alert: alert.labels)

    def _alert(self, alert: Alert) -> dict[str, Any]:
        now = self._clock.now
        return {
            "annotations": alert.annotations,
            "endsAt": _time(now + _VALID_FOR),
            "fingerprint": fingerprint(alert.labels),
            "receivers": [{"name": RECEIVER}],
            "startsAt": _time((alert.fired or alert.active) / 1000),
            "status": {"inhibitedBy": [], "silencedBy": [], "state": "active"},
            "updatedAt": _time(now),
            "generatorURL": "",
            "labels": dict(alert.labels),
        }

    def _groups(self, params: Params) -> list[dict[str, Any]]:
        groups: dict[Labels, list[Alert]] = {}
        for alert in self._filtered(params):
            groups.setdefault(keeping(alert.labels, GROUP_BY), []).append(alert)
        return [
            {"labels": dict(labels), "receiver": {"name": RECEIVER}, "alerts": [self._alert(alert) for alert in alerts]}
            for labels, alerts in sorted(groups.items(), key=lambda entry: entry[0])
        ]

    def _status(self) -> dict[str, Any]:
        return {
            "cluster": {"status": "disabled", "peers": []},
            "config": {"original": _CONFIG},
            "uptime": _time(self._started),
            "versionInfo": {
                "branch": "HEAD",
                "buildDate": "20230101-00:00:00",
                "buildUser": "root@localhost",
                "goVersion": "go1.19.5",
                "revision": "unknown",
                "version": "0.25.0",
            },
        }


def _matcher(text: str) -> Matcher:
    found = _MATCHER.fullmatch(text)
    if found is None:
        raise ValueError(text)
    quoted_value, plain = found[3], found[4]
    value = plain if quoted_value is None else re.sub(r"\\(.)", r"\1", quoted_value)
    return Matcher(found[1], found[2], value)


def _time(moment: float) -> str:
    """Format a time in UTC with milliseconds."""
    return f"{format_micro_time(moment)[:-4]}Z"


def fingerprint(labels: Iterable[tuple[str, str]]) -> str:
    """Return the FNV-1a hash of the sorted labels, as in Prometheus' data model."""
    total = 0xCBF29CE484222325
    for name, value in sorted(labels):
        for byte in name.encode() + b"\xff" + value.encode() + b"\xff":
            total = (total ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{total:016x}"
