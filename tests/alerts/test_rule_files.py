"""Rule files: parsing, and messages about invalid ones."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from srearena.cluster import alert_rules
from srearena.cluster.embedded.telemetry.alerts.rule_files import RuleFileError, packaged_groups, read_rules
from srearena.cluster.embedded.telemetry.alerts.templates import Template, TemplateError

EXPECTED = {
    "PodStatusError", "FailedPodsDetected", "PendingPodsDetected", "PodSchedulingFailure", "KubePodNotReady",
    "DeploymentNotReady", "ContainerCPUThrottling", "HighRequestErrorRate", "HighRequestRate", "HighRequestLatency",
    "MessageConsumerLag", "ServiceEndpointDown", "HTTPProbeFailure", "TiDBInstanceNotReady", "TiDBStatefulSetNotReady",
}  # fmt: skip


def test_the_packaged_rules_cover_what_the_benchmarks_alert_on() -> None:
    names = {rule.name for group in packaged_groups() for rule in group.rules}
    assert names >= EXPECTED


def test_every_packaged_alert_says_what_is_wrong_and_how_bad_it_is() -> None:
    for group in packaged_groups():
        for rule in group.rules:
            assert rule.labels["severity"].source in ("critical", "warning"), rule.name
            assert rule.annotations["summary"].source, rule.name


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
def test_promtool_accepts_the_packaged_rules() -> None:
    files = sorted(alert_rules.DIRECTORY.glob("*.yaml"))
    done = subprocess.run(["promtool", "check", "rules", *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("groups: [", "x.yaml: not YAML"),
        ("groups: 3", "list of `groups`"),
        ("groups: [{rules: []}]", r"groups\[0\]: a group is a mapping with a `name`"),
        ("groups: [{name: g, rulez: []}]", "unknown field 'rulez'"),
        ("groups: [{name: g}, {name: g}]", "repeated in the same file"),
        ("groups: [{name: g, interval: soon}]", "`interval` is not a valid duration"),
        ("groups: [{name: g, rules: [{expr: up}]}]", 'group "g", rule 1: exactly one of'),
        ("groups: [{name: g, rules: [{alert: A, record: b, expr: up}]}]", "exactly one of"),
        ("groups: [{name: g, rules: [{alert: A, expr: 'up +'}]}]", r'rule 1 \("A"\): could not parse expression'),
        ("groups: [{name: g, rules: [{alert: A, expr: 'up[5m]'}]}]", "range vector"),
        ("groups: [{name: g, rules: [{record: 'a b', expr: up}]}]", "invalid recording rule name"),
        ("groups: [{name: g, rules: [{record: a, expr: up, for: 1m}]}]", "belong to alerts"),
        ("groups: [{name: g, rules: [{alert: A, expr: up, for: 1x}]}]", "`for` is not a valid duration"),
        ("groups: [{name: g, rules: [{alert: A, expr: up, labels: {a-b: c}}]}]", "invalid label name: a-b"),
        (
            "groups: [{name: g, rules: [{alert: A, expr: up, annotations: {s: '{{ nofun 1 }}'}}]}]",
            '"nofun" not defined',
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, complaint: str) -> None:
    with pytest.raises(RuleFileError, match=complaint):
        read_rules(text, "x.yaml")


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("plain", "plain"),
        ("{{ $labels.pod }} is {{ $value }}", "api-0 is 0.1234"),
        ("{{$labels.nope}}!", "!"),
        ("{{ .Labels.pod }} {{ .Value }}", "api-0 0.1234"),
        ("{{ $value | humanizePercentage }}", "12.34%"),
        ("{{ humanizePercentage $value }}", "12.34%"),
        ("{{ humanize 1234567 }} {{ humanize $value }}", "1.235M 123.4m"),
        ("{{ humanize1024 2048 }} {{ humanizeDuration 3725 }}", "2ki 1h 2m 5s"),
        ("{{ humanizeDuration 90061 }} {{ humanizeDuration 0.5 }}", "1d 1h 1m 1s 500ms"),
        ("{{ humanizeTimestamp 1435065584 }}", "2015-06-23 13:19:44 +0000 UTC"),
        ('{{ printf "%.1f/%s/%d%%" $value $labels.pod 3 }}', "0.1/api-0/3%"),
        ('{{ $value | printf "%.2f" }}', "0.12"),
        ('{{ index $labels "pod" | toUpper }}', "API-0"),
        ('{{ reReplaceAll "(.*)-0" "$1" $labels.pod }}', "api"),
        ('{{ reReplaceAll "[a-c]" "<$0>" "abcd" }}', "<a><b><c>d"),
        ("{{ if gt $value 0.1 }}high{{ else }}low{{ end }}", "high"),
        ("{{ if (lt $value 0.1) }}low{{ end }}.", "."),
        ("a {{- $labels.pod -}} b", "aapi-0b"),
        ("{{ humanize $labels.pod }}", "<error expanding template: could not convert string to float: 'api-0'>"),
    ],
)
def test_templates(template: str, text: str) -> None:
    assert Template(template).render({"pod": "api-0"}, 0.1234) == text


@pytest.mark.parametrize(
    "template",
    ["{{", "{{ if 1 }}", "{{ end }}", "{{ range }}{{ end }}", "{{ foo }}", "{{ ( 1 }}"],
)
def test_templates_that_are_not_understood_are_refused(template: str) -> None:
    with pytest.raises(TemplateError):
        Template(template)
