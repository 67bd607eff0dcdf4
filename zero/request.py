"""What one run is asked to do, as the command line or the leaderboard says it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from zero.trajectory import Prices

SANDBOXES = ("auto", "require", "docker", "off")


@dataclass(frozen=True, slots=True)
class Request:
    """One run. Only the workspace is needed; the rest has the defaults of the command line."""

    workspace: Path
    cli: str = "codex"
    cli_args: Sequence[str] = ()  # what stands after `--`
    command: str = ""  # the template, for `cli="command"`
    read_only_dirs: Sequence[Path] = ()
    prompt: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    mcp_servers: Sequence[Path] = ()  # further tables of servers
    collect_traces: bool = False
    otel_port: int = 0
    output_file: str = "agent_output.json"
    output_form: str | None = None  # what the prompt says, or a diagnosis
    max_retries: int = 5
    timeout: float | None = None
    max_cost: float | None = None
    max_turns: int | None = None
    prices: Prices | None = None
    provider: str | None = None  # the adapter's own
    base_url: str = ""
    key_variable: str = ""
    wire_api: str = ""
    litellm_config: Path | None = None
    litellm: str = "litellm"  # the program
    sandbox: str = "auto"
    endpoints: Sequence[str] = ()  # further ones that the sandbox lets through
    exposed: Sequence[Path] = ()  # further directories that the sandbox shows, read-only
    kubeconfig: Path | None = None  # the cluster that the agent may reach
    passed_variables: Sequence[str] = ()
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)  # variables beside those of our environment
    wanting: Callable[[], Sequence[str]] | None = None  # what is left to do beside the output; asked after each attempt
    program: str = ""  # the CLI's executable, if not the one on the path
    dry_run: bool = False
    verbose: bool = False
