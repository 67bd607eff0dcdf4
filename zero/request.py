"""The request of one run, from the command line or the leaderboard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from zero.trajectory import Prices

SANDBOXES = ("auto", "require", "docker", "off")


@dataclass(frozen=True, slots=True)
class Request:
    """One run. Only the workspace is required; other fields have the defaults of the command line."""

    workspace: Path
    cli: str = "codex"
    cli_args: Sequence[str] = ()  # arguments after `--`
    command: str = ""  # the template of `cli="command"`
    read_only_dirs: Sequence[Path] = ()
    prompt: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    mcp_servers: Sequence[Path] = ()  # additional files of servers
    collect_traces: bool = False
    otel_port: int = 0
    output_file: str = "agent_output.json"
    output_form: str | None = None  # default: that of the prompt, or diagnosis
    max_retries: int = 5
    timeout: float | None = None
    max_cost: float | None = None
    max_turns: int | None = None
    prices: Prices | None = None
    provider: str | None = None  # default: that of the adapter
    base_url: str = ""
    key_variable: str = ""
    wire_api: str = ""
    litellm_config: Path | None = None
    litellm: str = "litellm"  # the executable
    sandbox: str = "auto"
    endpoints: Sequence[str] = ()  # additional ones that the sandbox allows
    exposed: Sequence[Path] = ()  # additional read-only directories in the sandbox
    kubeconfig: Path | None = None  # the cluster that the agent may reach
    passed_variables: Sequence[str] = ()
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)  # additional variables
    remaining_work: Callable[[], Sequence[str]] | None = None  # complaints besides the output, after each attempt
    program: str = ""  # executable of the CLI, if not the one on the path
    dry_run: bool = False
    verbose: bool = False
