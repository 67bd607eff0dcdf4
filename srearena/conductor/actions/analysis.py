"""The `analyse` action: diagnostic tools over the environment in its present state.

The tools are an optional extra in a higher layer (`sre_tools`), so they are found in the entry-point group
`srearena.analysis_tools`: an entry names a factory that takes the agent's kubeconfig and the cluster.
"""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol

from srearena.cluster import Cluster
from srearena.conductor.errors import BadAction
from srearena.errors import SreArenaError

ENTRY_POINTS = "srearena.analysis_tools"
_TOKENS = 5000
"""Default length of an answer: below the toolbox's bound of 20,000 characters at four characters a token."""


class AnalysisTools(Protocol):
    """A set of diagnostic tools over one environment."""

    def describe(self) -> str:
        """List the tools with their arguments, one per line."""

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Call a tool; SreArenaError where the call is wrong."""

    def close(self) -> None: ...


class Analysis:
    """The analysis tools of an episode, loaded with the first call."""

    def __init__(self, cluster: Cluster, kubeconfig: Path) -> None:
        self._cluster = cluster
        self._kubeconfig = kubeconfig
        self._tools: AnalysisTools | None = None

    def close(self) -> None:
        if self._tools is not None:
            self._tools.close()
            self._tools = None

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Call a tool and return its answer as JSON; without a tool, list the tools."""
        if self._tools is None:
            self._tools = self._load()
        if not tool:
            return self._tools.describe()
        try:
            return json.dumps(self._tools.call(tool, {"max_tokens": _TOKENS, **arguments}), default=str)
        except SreArenaError as problem:
            raise BadAction(f"analyse: {problem}") from problem

    def _load(self) -> AnalysisTools:
        problem: ImportError | None = None
        for point in entry_points(group=ENTRY_POINTS):
            try:
                tools: AnalysisTools = point.load()(self._kubeconfig, self._cluster)
            except ImportError as error:
                problem = error
            else:
                return tools
        raise BadAction("the analysis tools are not installed here: pip install 'srearena[tools]'") from problem
