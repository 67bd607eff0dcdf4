"""Small recorded incidents and agents with known answers, for tests of the leaderboard and of the website."""

from __future__ import annotations

import json
import sys
from pathlib import Path

SERVICES = ("cart", "payment", "checkout", "shipping", "ad")


def make_snapshot(root: Path, number: int, service: str) -> Path:
    """A recording of a bad image in a Deployment, with one alert on the frontend."""
    place = root / f"Scenario-{number}"
    (place / "alerts").mkdir(parents=True)
    minute = f"2026-01-0{number % 9 + 1}T10:0"
    alert = {
        "labels": {"alertname": "RequestErrorRate", "service_name": "frontend", "namespace": "shop"},
        "annotations": {"description": "errors"},
        "state": "firing",
        "activeAt": f"{minute}1:00Z",
        "value": "1e+00",
    }
    name = f"alerts_at_{minute.replace(':', '-')}2-00.000000.json"
    (place / "alerts" / name).write_text(json.dumps([alert]))
    event = {
        "type": "ADDED",
        "object": {
            "kind": "Event",
            "metadata": {"uid": f"u{number}", "name": f"{service}.1", "namespace": "shop"},
            "involvedObject": {"kind": "Pod", "name": f"{service}-5d8f-x2x4v", "namespace": "shop"},
            "reason": "ErrImagePull",
            "message": "manifest unknown",
            "type": "Warning",
            "firstTimestamp": f"{minute}0:30Z",
            "lastTimestamp": f"{minute}0:50Z",
            "count": 3,
            "source": {"component": "kubelet"},
        },
    }
    body = json.dumps(event).replace('"', '""')
    stamp = f"{minute}0:50.000000000".replace("T", " ")
    (place / "k8s_events_raw.tsv").write_text(
        "Timestamp\tTimestampTime\tServiceName\tBody\tResourceAttributes\tLogAttributes\n"
        f"{stamp}\t{stamp[:19]}\tevents\t\"{body}\"\t\"{{'k8s.namespace.name': 'shop'}}\"\t{{}}\n"
    )
    (place / "ground_truth.yaml").write_text(
        f"""id: "{number}"
groups:
  - {{id: {service}, kind: Deployment, namespace: shop, filter: ["{service}"], root_cause: true}}
  - {{id: frontend, kind: Service, namespace: shop, filter: ["frontend\\\\b"]}}
propagations:
  - {{source: {service}, target: frontend, condition: "{service} image does not exist", effect: "errors in frontend"}}
alerts: []
fault:
  - category: Change
    condition: "{service} has an image that does not exist"
    fault_mechanism: nonexistent-image
    entity: {{kind: Deployment, name: {service}, group_id: {service}}}
"""
    )
    return place


def make_snapshots(root: Path, count: int = 2) -> Path:
    for number in range(1, count + 1):
        make_snapshot(root, number, SERVICES[(number - 1) % len(SERVICES)])
    return root


# What an agent would have to find out, it reads from the events of the recording.
_AGENT = """
import json, pathlib, re, sys
manner, output, prompt = sys.argv[1:4]
snapshot = re.search("wrong in (.*)[?] Write", pathlib.Path(prompt).read_text()).group(1)
text = "".join(path.read_text() for path in pathlib.Path(snapshot).glob("*events*.tsv"))
service = re.search(r'""name"": ""([a-z]+)-5d8f', text).group(1)
number = int(re.search(r"2026-01-0(\\d)", text).group(1)) - 1
if manner == "broken":
    sys.exit("the agent has no idea")
blamed = service if manner == "good" or number % 2 else "frontend"
print("<script>alert(1)</script> looking at", service)
answer = {
    "entities": [{"name": f"shop/Deployment/{blamed}", "contributing_factor": True,
                  "reasoning": f"{blamed} has an image that does not exist", "evidence": "ErrImagePull"}],
    "propagations": [{"source": f"shop/Deployment/{blamed}", "target": "shop/Service/frontend",
                      "condition": "image does not exist", "effect": "errors"}],
    "alerts_explained": [],
}
pathlib.Path(output).write_text(json.dumps(answer))
"""


def write_configuration(
    place: Path, *, agents: tuple[str, ...] = ("good", "fair"), runs: int = 3, **more: object
) -> Path:
    """A leaderboard of scripted agents on the recordings in `place/snapshots`."""
    program = place / "agent.py"
    program.write_text(_AGENT)
    prompt = place / "prompt.md"
    prompt.write_text("---\nmcp_servers: []\n---\nWhat is wrong in $SNAPSHOT_DIRS? Write to $OUTPUT_FILE.\n")
    lines = [
        'scenarios_dir = "snapshots"',
        'leaderboard_dir = "leaderboard_results"',
        f"runs_per_scenario = {runs}",
        "concurrent = true",
        "max_workers = 2",
        *(f"{key} = {json.dumps(value)}" for key, value in more.items()),
    ]
    for name in agents:
        command = f"{sys.executable} -S {program} {name} {{output_file}} {{prompt_file}}"
        lines += [
            "[[agents]]",
            f'name = "{name}"',
            f'model = "scripted-{name}"',
            'prompt_file = "prompt.md"',
            'cli = "command"',
            f"command = {json.dumps(command)}",
            'sandbox = "off"',
            "max_retries = 0",
        ]
    path = place / "model_leaderboard.toml"
    path.write_text("\n".join(lines) + "\n")
    return path
