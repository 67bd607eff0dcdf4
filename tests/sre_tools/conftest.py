from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sre_tools.offline_incident_analysis import Workspace, call_tool
from tests.snapshots import samples

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(params=sorted(samples.LAYOUTS))
def ask_any(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ask]:
    """Call tools on the sample incident, in each layout in turn."""
    directory = samples.LAYOUTS[request.param](tmp_path / "data")
    with Workspace(directory, cache=tmp_path / "cache") as workspace:
        yield lambda name, **arguments: call_tool(workspace, name, arguments)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return samples.write_raw(tmp_path / "data" / "Scenario-7")


@pytest.fixture
def workspace(directory: Path, tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(directory, cache=tmp_path / "cache") as opened:
        yield opened


@pytest.fixture
def ask(workspace: Workspace) -> Ask:
    return lambda name, **arguments: call_tool(workspace, name, arguments)
