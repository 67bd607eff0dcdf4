"""Agents are found by name: as entry points, or as modules of a package that an entry point names."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from srearena.conductor import agents


def test_the_built_in_agents_are_found() -> None:
    assert {"llm", "nothing", "rules", "scripted"} <= set(agents.agent_names())


def test_a_new_file_in_a_package_is_a_new_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "acme_agents"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "shared.py").write_text("raise ImportError('not an agent, so never imported')\n")
    (package / "mine.py").write_text(
        "class Mine:\n    async def get_action(self, state):\n        return state.upper()\n\n\nAGENT = Mine\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    (found,) = agents._agents_in("acme_agents")
    assert found.name == "mine"
    assert asyncio.run(found.load()().get_action("hello")) == "HELLO"
