"""From a request to a plan: everything is looked up, checked and written before anything starts.

What is wrong with a request is found here, as a `ZeroError`. The workspace holds afterwards the rendered prompt
(`AGENTS.md`), the CLI's configuration, and `traces/` for the record of the run.
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

from zero import adapters, answers, docker, evidence, kubeconfigs, prompts, providers, sandbox, servers
from zero.adapters.base import Adapter, Invocation, Plan
from zero.adapters.command import split
from zero.errors import MissingProgram, RequestError
from zero.evidence import Evidence
from zero.model_proxy import KEY_VARIABLE, checked
from zero.providers import Provider
from zero.relay import Endpoint
from zero.request import SANDBOXES, Request
from zero.workspaces import COPIES, TRACES

_VERSION = re.compile(r"\d+\.\d+[\w.+-]*")
# What an agent's process gets of our environment; everything else it gets by name (--pass-env) or not at all.
_PASSED = (
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "COLORTERM", "TZ", "SHELL", "USER", "LOGNAME"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
)
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Prepared:
    request: Request
    adapter: Adapter
    plan: Plan
    form: str
    evidence: tuple[Evidence, ...]
    environment: dict[str, str]
    endpoints: tuple[Endpoint, ...]  # beside those of the model and the collector
    exposed: tuple[Path, ...]
    room: str | None  # "bubblewrap" or "docker"
    without_sandbox: str | None  # why there is none
    through_litellm: bool

    @property
    def workspace(self) -> Path:
        return self.plan.workspace

    @property
    def traces(self) -> Path:
        return self.plan.workspace / TRACES


def _program(request: Request, adapter: Adapter) -> str:
    wanted = request.program or adapter.program or split(request.command)[0]
    found = shutil.which(wanted)
    if found is None:
        if request.dry_run:
            return wanted
        hint = f": {adapter.install}" if adapter.install else ""
        raise MissingProgram(f"{wanted} is not installed{hint}")
    return str(Path(found).absolute())


def _packaged_version(program: Path) -> str:
    """What the npm package says that a program lies in: starting a CLI only to ask would take a second."""
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
        told = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise MissingProgram(f"{program} --version does not answer: {problem}") from problem
    match = _VERSION.search(told.stdout + told.stderr)
    if match is None:
        said = (told.stderr.strip().splitlines() or ["nothing"])[-1]
        raise MissingProgram(f"{program} does not tell its version (code {told.returncode}, it says: {said})")
    return match[0]


def _output(request: Request, workspace: Path) -> Path:
    place = (workspace / request.output_file).resolve()
    if not place.is_relative_to(workspace) or place == workspace:
        raise RequestError(f"--output-file {request.output_file} is not inside the workspace")
    return place


def _variables(request: Request, workspace: Path, output: Path, shown: tuple[Evidence, ...]) -> dict[str, str]:
    places = " ".join(str(each.seen_at) for each in shown)
    found = {"WORKSPACE_DIR": str(workspace), "OUTPUT_FILE": str(output)}
    if places:
        found |= {"READ_ONLY_DIRS": places, "SNAPSHOT_DIRS": places}
    for key, value in request.variables.items():
        found[key.upper()] = evidence.lead(value, shown)
    return found


def _environment(prepared: Plan, adapter: Adapter, request: Request, given: Mapping[str, str]) -> dict[str, str]:
    names = [*_PASSED, *request.passed_variables, *(name for each in prepared.servers for name in each.variables)]
    if not prepared.sandboxed:
        names += _PROXIES
    missing = [name for name in request.passed_variables if name not in given]
    if missing:
        raise RequestError(f"--pass-env {missing[0]}: no such variable is set")
    found = {name: given[name] for name in names if name in given}
    home = prepared.workspace / ".home"
    # A /tmp of its own also without a sandbox; and Codex refuses to work from a home below the temporary directory.
    scratch = home / "tmp"
    for place in (home, scratch):
        if place.is_symlink():
            place.unlink()
        place.mkdir(exist_ok=True)
    if request.kubeconfig is not None:
        found["KUBECONFIG"] = str(request.kubeconfig.expanduser().resolve())
    return {**found, "HOME": str(home), "TMPDIR": str(scratch), **adapter.environment(prepared, given)}


def _room(request: Request) -> tuple[str | None, str | None]:
    """Which sandbox the run has; or none, and why."""
    if request.sandbox not in SANDBOXES:
        raise RequestError(f"--sandbox is one of {', '.join(SANDBOXES)}")
    if request.sandbox == "off":
        return None, "switched off (--sandbox off)"
    reasons = []
    rooms = {"bubblewrap": sandbox.lacking, "docker": docker.lacking}
    for name, lacking in rooms.items():
        if request.sandbox not in rooms or name == request.sandbox:
            reason = lacking()
            if reason is None:
                return name, None
            reasons.append(reason)
    if request.sandbox != "auto":
        raise MissingProgram(f"no sandbox: {'; '.join(reasons)}; --sandbox auto would run without one")
    return None, "; ".join(reasons)


def _provider(
    request: Request, adapter: Adapter, call: Invocation, given: Mapping[str, str], say: Say
) -> tuple[Provider | None, bool]:
    """Who serves the model, and whether through a LiteLLM proxy of this run's own."""
    if request.litellm_config is not None:
        checked(request.litellm_config)
        return Provider("litellm", "http://localhost:4000/v1"), True
    name = request.provider or adapter.default_provider
    if not (request.base_url or name):
        return None, False
    provider = providers.choose(
        name or "custom",
        given,
        base_url=request.base_url,
        key_variable=request.key_variable,
        wire_api=request.wire_api,
        key_needed=not request.dry_run,
    )
    if provider.wire_api != "chat" or adapter.name != "codex":
        return provider, False
    if not call.model:
        raise RequestError("--wire-api chat needs the model's name: -m MODEL after --")
    say('wire_api "chat" is refused by Codex today: going through a LiteLLM proxy that speaks responses')
    return provider, True


def prepare(request: Request, workspace: Path, say: Say, given: Mapping[str, str] | None = None) -> Prepared:
    """Check a request and fill its workspace, which the caller owns."""
    given = {**(os.environ if given is None else given), **request.secrets}
    adapter = adapters.find(request.cli)
    program = _program(request, adapter)
    version = _version(program, adapter)
    invocation = adapter.parse(request.cli_args, version)
    for note in invocation.notes:
        say(note)
    if request.max_cost is not None and not adapter.tells_cost and request.prices is None:
        raise RequestError(
            f"--max-cost: {adapter.name} does not tell what it costs; give --price-input and --price-output"
        )

    output = _output(request, workspace)
    sources = evidence.resolve(request.read_only_dirs, workspace)
    room, lacking = _room(request)
    if room == "bubblewrap":
        evidence.remove(workspace / COPIES)
        shown = tuple(Evidence(source, source) for source in sources)
    else:
        shown = tuple(evidence.copy(sources, workspace / COPIES))
    if room is None:
        say(f"no sandbox: {lacking}. The answer key is not in the agent's copies, but it can read the rest of the disk")

    variables = _variables(request, workspace, output, shown)
    prompt = prompts.Prompt("")
    if request.prompt is not None:
        prompt = prompts.render(prompts.find(request.prompt), variables)
    form = answers.known_form(request.output_form or prompt.output or "diagnosis")

    provider, through_litellm = _provider(request, adapter, invocation, given, say)
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
            snapshots=[each.seen_at for each in shown],
            environment=given,
        ),
        provider=provider,
        evidence=[each.seen_at for each in shown],
        sandboxed=room is not None,
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
    environment = _environment(plan, adapter, request, given)
    return Prepared(
        request,
        adapter,
        plan,
        form,
        shown,
        environment,
        tuple(endpoints),
        tuple(exposed),
        room,
        lacking,
        through_litellm,
    )


def through(plan: Plan, adapter: Adapter, url: str) -> Plan:
    """The plan with its model behind a proxy of ours, which has a key of its own."""
    assert plan.provider is not None
    proxied = replace(
        plan.provider, base_url=url + adapter.api_root, key_variable=KEY_VARIABLE, wire_api="responses", query=()
    )
    return replace(plan, provider=proxied)


def refreshed(prepared: Prepared, plan: Plan, keys: Mapping[str, str]) -> Prepared:
    """With another plan, and the environment that belongs to it; `keys` are those that only this run knows."""
    given = {**os.environ, **prepared.request.secrets, **keys}
    return replace(prepared, plan=plan, environment=_environment(plan, prepared.adapter, prepared.request, given))
