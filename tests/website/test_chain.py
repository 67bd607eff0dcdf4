"""The whole chain: incidents recorded, agents, runs, verdicts, ranking, site, browser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from browsing import Browser

PROBLEMS = {"Scenario-1": "scale_pod_zero_social_net", "Scenario-2": "incorrect_port_assignment"}

# Two engineers who know nothing of problems: one blames what was changed while the recording ran, one what alerts name.
AGENT = """
import csv, json, pathlib, re, sys
manner, output, prompt = sys.argv[1:4]
csv.field_size_limit(1 << 30)
snapshot = pathlib.Path(re.search("wrong in (.*)[?] Write", pathlib.Path(prompt).read_text()).group(1))
if list(snapshot.rglob("ground_truth*")):
    sys.exit("the answer lies beside the evidence")
print("<script>alert(1)</script> looking at", snapshot.name)
blamed = set()
if manner == "changes":
    first = {}
    with (snapshot / "k8s_objects_raw.tsv").open(newline="") as file:
        for row in csv.DictReader(file, delimiter="\\t"):
            body = json.loads(row["Body"])
            one = body.get("object", body)
            name = (one["metadata"].get("namespace", ""), one["kind"], one["metadata"]["name"])
            spec = json.dumps(one.get("spec", one.get("data")), sort_keys=True)
            kept = one["kind"] in ("Deployment", "StatefulSet", "Service", "ConfigMap")
            if kept and first.setdefault(name, spec) != spec:
                blamed.add(name)
else:
    for path in (snapshot / "alerts").glob("*.json"):
        labels = [alert["labels"] for alert in json.loads(path.read_text())]
        blamed |= {(each["namespace"], "Service", each["service_name"]) for each in labels if "service_name" in each}
entities = [{"name": "/".join(name), "contributing_factor": True, "reasoning": manner, "evidence": "recording"}
            for name in sorted(blamed)]
pathlib.Path(output).write_text(json.dumps({"entities": entities, "propagations": [], "alerts_explained": []}))
"""
CONFIGURATION = """
scenarios_dir = "incidents"
answers_dir = "keys"
runs_per_scenario = 3
concurrent = true
max_workers = 2
"""


def command(place: Path, *words: str) -> str:
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, cwd=place, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def write_agents(place: Path) -> None:
    (place / "agent.py").write_text(AGENT)
    (place / "prompt.md").write_text(
        "---\nmcp_servers: []\n---\nWhat is wrong in $SNAPSHOT_DIRS? Write to $OUTPUT_FILE.\n"
    )
    tables = [
        f"""[[agents]]
name = "{name}"
model = "scripted-{name}"
prompt_file = "prompt.md"
cli = "command"
command = "{sys.executable} -S {place / "agent.py"} {name} {{output_file}} {{prompt_file}}"
sandbox = "off"
"""
        for name in ("alerts", "changes")
    ]
    (place / "model_leaderboard.toml").write_text(CONFIGURATION + "\n".join(tables))


@pytest.mark.timeout(900)
def test_two_incidents_two_agents_three_runs_to_a_ranking_in_the_browser(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SREARENA_CACHE", str(tmp_path / "cache"))
    for name, problem in PROBLEMS.items():
        places = ("--out", f"incidents/{name}", "--answers", f"keys/{name}")
        command(tmp_path, "srearena", "record", problem, *places, "--before", "120", "--after", "180")
    write_agents(tmp_path)
    printed = command(tmp_path, "itbench_leaderboard", "--config", "model_leaderboard.toml")
    command(tmp_path, "srearena", "site", "build", "leaderboard_results")
    base = (tmp_path / "leaderboard_results" / "site").as_uri() + "/"
    browser.open(base)
    assert browser.all("#ranking td.name a") == ["changes", "alerts"], printed
    scores = browser.all("#ranking tbody td:nth-child(4)")
    assert scores[0] == "1.000" and float(scores[1]) < 1.0, scores
    browser.open(base, "#/incident/Scenario-1")
    assert "user-service" in browser.text()
    assert len(browser.all("#said tbody tr")) == 6
    browser.picture("leaderboard-incident")
    browser.open(base, "#/run/alerts/Scenario-1/3")
    assert "Missed: " in browser.text("#justification")
    assert any("<script>alert(1)</script> looking at Scenario-1" in step for step in browser.all("#transcript .step"))
    browser.picture("leaderboard-run")
    assert browser.complaints() == []
