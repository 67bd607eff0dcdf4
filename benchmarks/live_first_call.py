"""What the first call of an analysis tool over a running system costs.

    python -m benchmarks.live_first_call                                the target port problem on Social Network
    python -m benchmarks.live_first_call --problem network_policy_block --object Deployment/recommendation

Every question is the first of a new workspace, on an embedded cluster in the same process. Figures are processor time
of the process, so they include what the simulator's APIs need to answer.
"""

from __future__ import annotations

import argparse
import json
from time import process_time
from typing import Any

from sre_tools.live_workspace import LiveWorkspace
from sre_tools.offline_incident_analysis import call_tool
from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.preparation import embedded_cluster
from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.config import Config


def questions(name: str) -> dict[str, tuple[str, dict[str, Any]]]:
    return {
        "alerts": ("alert_summary", {}),
        "events": ("event_analysis", {}),
        "changes": ("k8s_spec_change_analysis", {}),
        "suspicious changes": ("change_impact", {}),
        "logs": ("log_analysis", {}),
        "traces": ("get_trace_error_tree", {}),
        "metrics of an object": ("metric_analysis", {"k8_object_name": name}),
        "timeline of everything": ("incident_timeline", {}),
    }


def measure(episode: Episode, name: str) -> dict[str, float]:
    assert episode.kubeconfig is not None
    figures: dict[str, float] = {}
    for label, (tool, arguments) in {"": ("alert_summary", {}), **questions(name)}.items():  # the first one imports
        begun = process_time()
        with LiveWorkspace(episode.kubeconfig, episode.cluster.telemetry) as workspace:
            call_tool(workspace, tool, arguments)
            figures[label] = round(process_time() - begun, 3)
    return {f"{label}_processor_s": seconds for label, seconds in figures.items() if label}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem", default="k8s_target_port-misconfig")
    parser.add_argument("--object", default="Deployment/user-service")
    options = parser.parse_args()
    problem = ProblemRegistry().get_problem(options.problem)
    spec = EpisodeSpec(timeline=Timeline(before=300, after=300), in_process=True, config=Config())
    episode = Episode(problem, embedded_cluster(problem, spec), spec)
    try:
        episode.prepare()
        print(json.dumps(measure(episode, options.object), indent=1))
    finally:
        episode.close()


if __name__ == "__main__":
    main()
