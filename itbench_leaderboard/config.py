"""The configuration `model_leaderboard.toml`: agents, incidents, number of runs, and judge. It is validated first.

Relative paths are relative to the file. It contains names of variables with keys (`api_key_env`), never keys.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from itbench_leaderboard.errors import ConfigurationError
from itbench_leaderboard.outcomes import RETRIED, Outcome
from srearena.errors import InputError
from srearena.snapshots.examples import complete_directory

RESERVED = frozenset({"results", "site", "leaderboard", "manifest", "timelines"})


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class JudgeTable(_Table):
    """The judge. Without a model, reasoning is graded by the lexical baseline at no cost."""

    model: str = ""
    provider: str = "openrouter"
    base_url: str = ""
    api_key_env: str = ""
    votes: int = Field(default=1, ge=1)
    max_concurrent: int = Field(default=5, ge=1)
    price_input: float | None = None
    price_output: float | None = None


class AgentTable(_Table):
    """One agent: a coding CLI through Zero, a Python class with `get_action`, or the same behind HTTP."""

    kind: Literal["cli", "python", "http"] = "cli"
    name: str = ""
    prompt: str = ""
    commit: str | None = None
    model: str = ""
    provider: str = ""
    prompt_file: str = "offline_investigation"
    live_prompt_file: str = "live_episode"
    mcp_mode: Literal["safe", "read-only", "full"] = "safe"  # permissions of kubectl on live problems
    wire_api: str = ""
    user_query: str = ""
    variables: dict[str, str] = Field(default_factory=dict)
    cli: str = "codex"
    command: str = ""
    program: str = ""
    base_url: str = ""
    api_key_env: str = ""
    litellm_config: Path | None = None
    mcp_servers: tuple[Path, ...] = ()
    sandbox: Literal["auto", "require", "docker", "off"] = "auto"
    expose: tuple[Path, ...] = ()
    pass_env: tuple[str, ...] = ()
    max_retries: int = Field(default=5, ge=0)
    max_turns: int | None = Field(default=None, ge=1)
    max_cost: float | None = Field(default=None, gt=0)
    price_input: float | None = None
    price_output: float | None = None
    price_cached: float | None = None
    agent: str = ""  # kind "python": a name that `srearena run --agent` knows, or `module:Class`
    options: dict[str, Any] = Field(default_factory=dict)
    url: str = ""  # kind "http"
    max_steps: int = Field(default=30, ge=1)
    timeout: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _complete(self) -> AgentTable:
        if self.kind == "python" and not self.agent:
            raise ValueError('an agent of kind "python" needs agent = "module:Class" or a name')
        if self.kind == "http" and not re.match(r"https?://[^/\s]+", self.url):
            raise ValueError('an agent of kind "http" needs url = "http://..."')
        if self.kind == "cli" and self.cli == "command" and not self.command:
            raise ValueError('cli = "command" needs command = "..."')
        if not (self.name or self.prompt or self.model or self.agent or self.url):
            raise ValueError("an agent needs a name, or a prompt and a model")
        return self

    def directory(self, head: str) -> str:
        """The name of the directory with its runs: its name, or prompt, model and commit."""
        commit = head if self.commit == "" else (self.commit or "")
        label = self.name or "_".join(filter(None, (self.prompt, self.model or self.agent or self.url, commit)))
        return re.sub(r"[^\w.@+ -]", "_", label).strip(". ") or "_"

    def digest(self) -> str:
        """A digest of everything that makes an agent the same one: model, prompt, command; not limits and paths."""
        names = ("kind", "model", "provider", "wire_api", "user_query", "variables", "cli", "command", "agent")
        identity = self.model_dump(mode="json", include={*names, "options", "url", "prompt", "commit"})
        identity["prompt_file"] = _content(self.prompt_file)
        if self.kind == "cli":
            default = type(self).model_fields
            live = {"live_prompt_file": _content(self.live_prompt_file), "mcp_mode": self.mcp_mode}
            identity |= {key: value for key, value in live.items() if value != default[key].default}
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


def _content(prompt: str) -> str:
    """The text of a prompt file, or the name of one of Zero's prompts."""
    path = Path(prompt)
    return path.read_text(encoding="utf-8") if path.is_file() else prompt


class IncidentTable(_Table):
    """Data for filters on the website that the recording does not contain."""

    title: str = ""
    family: str = ""
    difficulty: str = ""
    application: str = ""


class Configuration(_Table):
    """The whole file."""

    scenarios_dir: Path | None = None
    answers_dir: Path | None = None  # ground truths, if they are not beside the evidence
    problems: tuple[str, ...] = ()  # live problems of the arena, by id or pattern
    suite: str = ""  # more of them: a suite as `srearena run --suite` knows it
    leaderboard_dir: Path = Path("leaderboard_results")
    runs_per_scenario: int = Field(default=1, ge=1)
    concurrent: bool = False
    max_workers: int = Field(default=3, ge=1)
    collect_traces: bool = False
    timeout: float = Field(default=900.0, gt=0)
    budget_usd: float | None = Field(default=None, gt=0)
    retries: int = Field(default=1, ge=0)
    retry_on: tuple[Outcome, ...] = RETRIED
    ranking_metric: str = "score"
    k: int = Field(default=3, ge=1)
    stages: tuple[str, ...] = ()  # of live problems; all of a problem's own by default
    seed: int | None = None  # of live problems; drawn, and kept with the results, where it is not set
    judge: JudgeTable = JudgeTable()
    agents: tuple[AgentTable, ...]
    incidents: dict[str, IncidentTable] = Field(default_factory=dict)
    head: str = ""

    @field_validator("agents")
    @classmethod
    def _not_empty(cls, agents: tuple[AgentTable, ...]) -> tuple[AgentTable, ...]:
        if not agents:
            raise ValueError("there must be at least one [[agents]] table")
        return agents

    @model_validator(mode="after")
    def _distinct(self) -> Configuration:
        names = [agent.directory(self.head) for agent in self.agents]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two agents would both write to {name}: give them different names")
            if name.lower() in RESERVED:
                raise ValueError(f"an agent cannot be called {name}: that is where results go")
        if self.scenarios_dir is None and not self.problems and not self.suite:
            raise ValueError("there is nothing to run on: set scenarios_dir, problems, suite or several of them")
        return self

    @property
    def workers(self) -> int:
        return self.max_workers if self.concurrent else 1

    def named_agents(self) -> dict[str, AgentTable]:
        return {agent.directory(self.head): agent for agent in self.agents}


_PATHS = ("scenarios_dir", "answers_dir", "leaderboard_dir")
_AGENT_PATHS = ("litellm_config",)


def _head(directory: Path) -> str:
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _completed(path: Path, key: str) -> Path:
    try:
        return complete_directory(path)
    except InputError as problem:
        raise ConfigurationError(f"{key} {problem}") from problem


def _with_absolute_paths(document: dict[str, Any], base: Path) -> dict[str, Any]:
    for key in _PATHS:
        if isinstance(document.get(key), str):
            document[key] = str(_completed((base / Path(document[key]).expanduser()).absolute(), key))
    document.setdefault("leaderboard_dir", str(base / "leaderboard_results"))
    for agent in document.get("agents", []):
        if not isinstance(agent, dict):
            continue
        for key in _AGENT_PATHS:
            if isinstance(agent.get(key), str):
                agent[key] = str((base / Path(agent[key]).expanduser()).absolute())
        for key in ("mcp_servers", "expose"):
            if isinstance(agent.get(key), list):
                agent[key] = [str((base / Path(str(item)).expanduser()).absolute()) for item in agent[key]]
        for key in ("prompt_file", "live_prompt_file"):
            prompt = agent.get(key)
            if isinstance(prompt, str) and (base / prompt).is_file():
                agent[key] = str((base / prompt).absolute())
    return document


def load(path: Path) -> Configuration:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise ConfigurationError(f"cannot read {path}: {problem.strerror or problem}") from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ConfigurationError(f"{path} is not valid TOML: {problem}") from problem
    base = path.absolute().parent
    if "head" in document:
        raise ConfigurationError(f"{path}: head: unknown key")
    needs_head = any(isinstance(agent, dict) and agent.get("commit") == "" for agent in document.get("agents", ()))
    try:
        return Configuration.model_validate(
            {**_with_absolute_paths(document, base), "head": _head(base) if needs_head else ""}
        )
    except ValidationError as problem:
        error = problem.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in error["loc"])
        message = error["msg"].removeprefix("Value error, ")
        raise ConfigurationError(f"{path}: {place + ': ' if place else ''}{message}") from problem
