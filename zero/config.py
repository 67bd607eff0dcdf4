"""Preparation of a run: checks the request and builds the plan before any process starts.

Errors of a request are raised here, as `ZeroError`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from srearena import bubblewrap
from zero import adapters, answers, docker, evidence, kubeconfigs, prompts, providers, servers
from zero.adapters.base import Adapter, Invocation, Plan
from zero.adapters.command import split
from zero.errors import MissingProgram, RequestError
from zero.evidence import Evidence
from zero.model_proxy import KEY_VARIABLE, checked_config
from zero.providers import Provider
from zero.relay import Endpoint
from zero.request import SANDBOXES, Request
from zero.workspaces import EVIDENCE_COPIES, TRACES

_VERSION = re.compile(r"\d+\.\d+[\w.+-]*")
# Variables of Zero's environment that the agent's process inherits; --pass-env adds others.
_INHERITED_VARIABLES = (
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "COLORTERM", "TZ", "SHELL", "USER", "LOGNAME"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
)
_PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Prepared:
    request: Request
    adapter: Adapter
    plan: Plan
    form: str
    evidence: tuple[Evidence, ...]
    environment: dict[str, str]
    endpoints: tuple[Endpoint, ...]  # without those of the model and the collector
    exposed: tuple[Path, ...]
    sandbox: str | None  # "bubblewrap" or "docker"
    without_sandbox: str | None  # reason if there is none
    through_litellm: bool

    @property
    def workspace(self) -> Path:
        return self.plan.workspace

    @property
    def traces(self) -> Path:
        return self.plan.workspace / TRACES


def _program(request: Request, adapter: Adapter) -> str:
    program = request.program or adapter.program or split(request.command)[0]
    path = shutil.which(program)
    if path is None:
        if request.dry_run:
            return program
        hint = f": {adapter.install}" if adapter.install else ""
        raise MissingProgram(f"{program} is not installed{hint}")
    return str(Path(path).absolute())


def _packaged_version(program: Path) -> str:
    """The version of the npm package that contains a program; faster than starting the CLI, which takes a second."""
    for parent in program.parents:
        manifest = parent / "package.json"
        if manifest.is_file() and "node_modules" in parent.parts:
            with contextlib.suppress(OSError, ValueError, AttributeError):
                return str(json.loads(manifest.read_text(encoding="utf-8")).get("version", ""))
    return ""


def _version(program: str, adapter: Adapter) -> str:
    if not adapter.program or not Path(program).is_absolute():
        return "unknown"
    packaged = _packaged_version(Path(program).resolve())
    if packaged:
        return packaged
    try:
        completed = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise MissingProgram(f"{program} --version does not answer: {problem}") from problem
    match = _VERSION.search(completed.stdout + completed.stderr)
    if match is None:
        error = (completed.stderr.strip().splitlines() or ["nothing"])[-1]
        raise MissingProgram(f"{program} does not print its version (code {completed.returncode}, error: {error})")
    return match[0]


def _output(request: Request, workspace: Path) -> Path:
    path = (workspace / request.output_file).resolve()
    if not path.is_relative_to(workspace) or path == workspace:
        raise RequestError(f"--output-file {request.output_file} is not inside the workspace")
    return path


def _variables(request: Request, workspace: Path, output: Path, visible: tuple[Evidence, ...]) -> dict[str, str]:
    directories = " ".join(str(each.agent_path) for each in visible)
    variables = {"WORKSPACE_DIR": str(workspace), "OUTPUT_FILE": str(output)}
    if directories:
        variables |= {"READ_ONLY_DIRS": directories, "SNAPSHOT_DIRS": directories}
    for key, value in request.variables.items():
        variables[key.upper()] = evidence.replace_paths(value, visible)
    return variables


def _environment(plan: Plan, adapter: Adapter, request: Request, host_environment: Mapping[str, str]) -> dict[str, str]:
    names = [
        *_INHERITED_VARIABLES,
        *request.passed_variables,
        *(name for each in plan.servers for name in each.variables),
    ]
    if not plan.sandboxed:
        names += _PROXY_VARIABLES
    missing = [name for name in request.passed_variables if name not in host_environment]
    if missing:
        raise RequestError(f"--pass-env {missing[0]}: no such variable is set")
    variables = {name: host_environment[name] for name in names if name in host_environment}
    home = plan.workspace / ".home"
    # Private also without a sandbox. Codex refuses a home below the temporary directory, so it is below the home.
    scratch = home / "tmp"
    for place in (home, scratch):
        if place.is_symlink():
            place.unlink()
        place.mkdir(exist_ok=True)
    if request.kubeconfig is not None:
        variables["KUBECONFIG"] = str(request.kubeconfig.expanduser().resolve())
    return {**variables, "HOME": str(home), "TMPDIR": str(scratch), **adapter.environment(plan, host_environment)}


def _choose_sandbox(request: Request) -> tuple[str | None, str | None]:
    """The sandbox of the run, or None and the reason."""
    if request.sandbox not in SANDBOXES:
        raise RequestError(f"--sandbox is one of {', '.join(SANDBOXES)}")
    if request.sandbox == "off":
        return None, "switched off (--sandbox off)"
    reasons = []
    checks = {"bubblewrap": bubblewrap.unavailable_reason, "docker": docker.unavailable_reason}
    for name, unavailable_reason in checks.items():
        if request.sandbox not in checks or name == request.sandbox:
            reason = unavailable_reason()
            if reason is None:
                return name, None
            reasons.append(reason)
    if request.sandbox != "auto":
        raise MissingProgram(f"no sandbox: {'; '.join(reasons)}; --sandbox auto would run without one")
    return None, "; ".join(reasons)


def _provider(
    request: Request, adapter: Adapter, call: Invocation, host_environment: Mapping[str, str], say: Say
) -> tuple[Provider | None, bool]:
    """The model provider, and whether a LiteLLM proxy is started for the run."""
    if request.litellm_config is not None:
        checked_config(request.litellm_config)
        return Provider("litellm", "http://localhost:4000/v1"), True
    name = request.provider or adapter.default_provider
    if not (request.base_url or name):
        return None, False
    provider = providers.choose(
        name or "custom",
        host_environment,
        base_url=request.base_url,
        key_variable=request.key_variable,
        wire_api=request.wire_api,
        key_needed=not request.dry_run,
    )
    if provider.wire_api != "chat" or adapter.name != "codex":
        return provider, False
    if not call.model:
        raise RequestError("--wire-api chat needs the model's name: -m MODEL after --")
    say('Codex does not support wire_api "chat": using a LiteLLM proxy with the responses API')
    return provider, True


def prepare(request: Request, workspace: Path, say: Say) -> Prepared:
    """Check a request and prepare its workspace, which the caller has locked."""
    host_environment = {**os.environ, **request.secrets}
    adapter = adapters.find(request.cli)
    program = _program(request, adapter)
    version = _version(program, adapter)
    invocation = adapter.parse(request.cli_args, version)
    for note in invocation.notes:
        say(note)
    if request.max_cost is not None and not adapter.reports_cost and request.prices is None:
        raise RequestError(
            f"--max-cost: {adapter.name} does not report its cost; give --price-input and --price-output"
        )

    output = _output(request, workspace)
    sources = evidence.resolve(request.read_only_dirs, workspace)
    sandbox_name, unavailable = _choose_sandbox(request)
    if sandbox_name == "bubblewrap":
        evidence.remove(workspace / EVIDENCE_COPIES)
        visible = tuple(Evidence(source, source) for source in sources)
    else:
        visible = tuple(evidence.copy(sources, workspace / EVIDENCE_COPIES))
    if sandbox_name is None:
        say(f"no sandbox: {unavailable}. The agent's copies have no answer key, but the agent can read the whole disk")

    variables = _variables(request, workspace, output, visible)
    prompt = prompts.Prompt("")
    if request.prompt is not None:
        prompt = prompts.render(prompts.find(request.prompt), variables)
    form = answers.checked_form(request.output_form or prompt.output or "diagnosis")

    provider, through_litellm = _provider(request, adapter, invocation, host_environment, say)
    plan = Plan(
        workspace=workspace,
        program=program,
        version=version,
        invocation=invocation,
        instructions=prompt.text,
        output=output,
        servers=servers.select(
            servers.catalogue(request.mcp_servers),
            prompt.mcp_servers,
            workspace=workspace,
            snapshots=[each.agent_path for each in visible],
            environment=host_environment,
        ),
        provider=provider,
        evidence=[each.agent_path for each in visible],
        sandboxed=sandbox_name is not None,
        max_turns=request.max_turns,
        max_cost=request.max_cost,
        template=request.command,
    )
    endpoints = [Endpoint.parse(each) for each in request.endpoints]
    exposed = [each.expanduser().resolve() for each in request.exposed]
    if request.kubeconfig is not None:
        access = kubeconfigs.read(request.kubeconfig)
        endpoints += access.endpoints
        exposed += access.files
    endpoints += [Endpoint.parse(server.url) for server in plan.servers if server.remote]
    environment = _environment(plan, adapter, request, host_environment)
    return Prepared(
        request,
        adapter,
        plan,
        form,
        visible,
        environment,
        tuple(endpoints),
        tuple(exposed),
        sandbox_name,
        unavailable,
        through_litellm,
    )


def with_proxy(plan: Plan, adapter: Adapter, url: str) -> Plan:
    """The plan with the model behind the run's proxy, which has its own key."""
    assert plan.provider is not None
    proxied = replace(
        plan.provider, base_url=url + adapter.api_root, key_variable=KEY_VARIABLE, wire_api="responses", query=()
    )
    return replace(plan, provider=proxied)


def with_plan(prepared: Prepared, plan: Plan, keys: Mapping[str, str]) -> Prepared:
    """The preparation with another plan and its environment; `keys` are generated keys of this run."""
    host_environment = {**os.environ, **prepared.request.secrets, **keys}
    environment = _environment(plan, prepared.adapter, prepared.request, host_environment)
    return replace(prepared, plan=plan, environment=environment)
