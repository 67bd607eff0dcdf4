"""Where an agent's own tools reach the environment of an episode."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

from srearena.cluster import ClusterError
from srearena.conductor.episode.disclosure import sealed_truth
from srearena.conductor.episode.episode import Episode


def addresses(episode: Episode) -> dict[str, str]:
    """The kubeconfig and the telemetry endpoints for the agent."""
    kubeconfig = {"kubeconfig": str(episode.kubeconfig)}
    try:
        telemetry = episode.cluster.telemetry
    except ClusterError:
        return kubeconfig
    return {
        **kubeconfig,
        "prometheus": telemetry.prometheus,
        "loki": telemetry.loki,
        "jaeger": telemetry.jaeger,
        "telemetry_token": telemetry.token,
    }


def watching(episode: Episode) -> dict[str, Any]:
    """What a program needs to watch the system of an episode: what the agent has, and nothing about the problem.

    For an operator whom the user has named, the truth is there too, and only that operator can open it.
    """
    try:
        telemetry = asdict(episode.cluster.telemetry)
    except ClusterError:
        telemetry = {}
    return {
        "application": episode.problem.app.name,
        "kubeconfig": str(episode.kubeconfig),
        "telemetry": telemetry,
        **sealed_truth(episode.problem, os.environ),
    }
