"""The real coding CLIs, end to end, against a scripted model: the prompt read, our MCP tools called, an answer written,
found wrong, asked for again in the same session, and accepted.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from srearena import bubblewrap
from tests.zero.scripted_model import (
    TOKENS_CACHED,
    TOKENS_IN,
    TOKENS_OUT,
    Call,
    Conversation,
    ScriptedModel,
    Turn,
    scripted,
)
from zero import docker

# How each CLI calls its shell tool, and the tail of the address it is given.
SHELLS = {
    "codex": ("exec_command", "cmd", "/v1"),
    "claude": ("Bash", "command", ""),
    "gemini": ("run_shell_command", "command", ""),
    "opencode": ("bash", "command", "/v1"),
}
MODELS = {"codex": "scripted-1", "claude": "scripted-1", "gemini": "gemini-2.5-pro", "opencode": "scripted-1"}
KEY = "not-a-real-key-4711"
GOOD = {
    "entities": [
        {"name": "shop/Deployment/payment", "contributing_factor": True, "reasoning": "bad image", "evidence": "log"}
    ],
    "propagations": [],
    "alerts_explained": [{"alert": "RequestErrorRate", "explanation": "payment fails", "explained": True}],
}
Zero = Callable[..., Any]
CodingCli = Callable[[str], str]


class Investigator:
    """Asks for the alerts, writes half an answer, and the whole one when told what is missing."""

    def __init__(self, cli: str, output: Path, *, stubborn: bool = False, first: str = "") -> None:
        self.tool, self.argument, _ = SHELLS[cli]
        self.output, self.stubborn, self.first = output, stubborn, first
        self.turns = 0

    def write(self, document: object) -> Turn:
        text = f"printf '%s' {shlex.quote(json.dumps(document))} > {shlex.quote(str(self.output))}"
        return self.shell(text)

    def shell(self, command: str) -> Turn:
        return Turn("", (Call(self.tool, {self.argument: command, "description": "write"}),))

    def __call__(self, talk: Conversation) -> Turn:
        if not talk.tools:
            return Turn("A title")  # OpenCode asks for one, beside the conversation
        self.turns += 1
        complaints = sum("cannot be accepted" in text for text in talk.messages)
        if self.turns == 1:
            return Turn("I look at the alerts.", (Call("alert_summary", {}),))
        if self.turns == 2:
            assert "RequestErrorRate" in talk.results[0], talk.results
            return self.shell(self.first) if self.first else self.write({"entities": []})
        if complaints and not self.stubborn and self.turns == 4:
            assert any("alerts_explained: Field required" in text for text in talk.messages)
            return self.write(GOOD)
        return Turn("Done.")


@contextmanager
def model(cli: str, output: Path, **options: Any) -> Iterator[ScriptedModel]:
    with scripted(Investigator(cli, output, **options)) as running:
        yield running
    assert running.failures == []


def run(zero: Zero, program: str, cli: str, model: ScriptedModel, snapshot: Path, *options: str) -> Any:
    # --full-auto is what the older documents say; only Codex ever had it.
    old = ("--full-auto",) if cli == "codex" else ()
    return zero(
        *("--cli", cli, "--program", program, "-r", str(snapshot), "--prompt-file", "offline_investigation"),
        *("--base-url", model.url + SHELLS[cli][2], "--api-key-env", "SCRIPTED_KEY", *options),
        after=("exec", *old, "-m", MODELS[cli], "Focus on payment"),
        timeout=240,
        SCRIPTED_KEY=KEY,
    )


def logged(workspace: Path) -> str:
    """The end of whatever there is to read about a run that failed."""
    return "\n".join(path.read_text()[-3000:] for path in sorted((workspace / "traces").glob("*.log")))


def read(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("cli", "how"),
    [
        pytest.param("codex", "require", id="codex-in-sandbox"),
        pytest.param("codex", "docker", id="codex-in-docker"),
        pytest.param("codex", "off", id="codex"),
        pytest.param("claude", "require", id="claude-in-sandbox"),
        pytest.param("claude", "off", id="claude"),
        pytest.param("gemini", "require", id="gemini-in-sandbox"),
        pytest.param("opencode", "require", id="opencode-in-sandbox"),
    ],
)
@pytest.mark.daily_cases(3)
def test_a_diagnosis_is_asked_for_until_it_is_complete(
    cli: str, how: str, zero: Zero, coding_cli: CodingCli, workspace: Path, snapshot: Path
) -> None:
    program = coding_cli(cli)
    reason = {"require": bubblewrap.unavailable_reason, "docker": docker.unavailable_reason}.get(how, lambda: None)()
    if reason:
        pytest.skip(reason)
    output = workspace / "agent_output.json"
    with model(cli, output) as scripted_model:
        done = run(zero, program, cli, scripted_model, snapshot, "--sandbox", how, "--collect-traces")
        assert done.code == 0, done.stderr + logged(workspace)
    assert read(output) == GOOD

    first, *_, last = (talk for talk in scripted_model.talks if talk.tools)
    assert any("You are a site reliability engineer on call" in text for text in first.messages), "it read the prompt"
    assert sum(text.count("You are a site reliability engineer on call") for text in first.messages) == 1
    assert any("Focus on payment" in text for text in first.messages)
    assert any("Focus on payment" in text for text in last.messages), "it was resumed, not restarted"
    assert any(KEY in header for headers in scripted_model.headers for header in headers.values()), "the key arrived"

    record = read(workspace / "traces" / "run.json")
    assert (record["outcome"], len(record["attempts"]), record["turns"]) == ("answered", 2, 5)
    assert record["attempts"][0]["complaints"] == ["propagations: Field required", "alerts_explained: Field required"]
    assert record["usage"]["prompt_tokens"] == 5 * TOKENS_IN
    assert record["usage"]["completion_tokens"] == 5 * TOKENS_OUT
    assert record["usage"]["cached_tokens"] == 5 * TOKENS_CACHED

    steps = read(workspace / "traces" / "trajectory.json")["steps"]
    assert [step["source"] for step in steps] == ["system", "user", "agent", "agent", "agent", "user", "agent", "agent"]
    assert "alert_summary" in steps[2]["tool_calls"][0]["function_name"]
    assert "RequestErrorRate" in steps[2]["observation"]["results"][0]["content"]

    telemetry = [json.loads(line) for line in (workspace / "traces" / "traces.jsonl").read_text().splitlines()]
    assert any("data" in line for line in telemetry) or cli == "opencode", "which sends none"

    files = (path for path in workspace.rglob("*") if path.is_file())
    assert [path for path in files if KEY.encode() in path.read_bytes()] == [], "the key is in no file"
    if cli == "codex":
        assert "--full-auto is set in config.toml" in done.stderr


@pytest.mark.timeout(600)
def test_codex_that_never_gets_it_right_fails_after_its_retries(
    zero: Zero, coding_cli: CodingCli, workspace: Path, snapshot: Path
) -> None:
    with model("codex", workspace / "agent_output.json", stubborn=True) as scripted_model:
        done = run(zero, coding_cli("codex"), "codex", scripted_model, snapshot, "--max-retries", "2")
    assert done.code == 3, done.stderr
    record = read(workspace / "traces" / "run.json")
    assert [attempt["attempt"] for attempt in record["attempts"]] == [1, 2, 3]
    assert record["output_readable"] is True


@pytest.mark.timeout(600)
def test_codex_is_stopped_when_the_money_is_spent(
    zero: Zero, coding_cli: CodingCli, workspace: Path, snapshot: Path
) -> None:
    """The scripted turns cost a dollar each; Codex reports tokens by telemetry during the run."""
    prices = ("--price-input", "1000", "--price-output", "0", "--max-cost", "1.5")
    waits = "sleep 60"
    with model("codex", workspace / "agent_output.json", first=waits) as scripted_model:
        done = run(zero, coding_cli("codex"), "codex", scripted_model, snapshot, *prices)
    assert done.code == 6, done.stderr
    record = read(workspace / "traces" / "run.json")
    assert record["outcome"] == "cost"
    assert record["usage"]["cost_usd"] > 1.5


@pytest.mark.timeout(600)
def test_codex_without_a_model_says_what_failed(
    zero: Zero, coding_cli: CodingCli, workspace: Path, snapshot: Path
) -> None:
    with scripted(lambda talk: Turn()) as dead:
        pass  # the port is closed now
    program = coding_cli("codex")
    done = run(zero, program, "codex", dead, snapshot, "--timeout", "12", "--max-retries", "1")
    assert done.code in (4, 124), done.stderr
    record = read(workspace / "traces" / "run.json")
    assert record["output_valid"] is False
    assert any("econnecting" in error or "stream disconnected" in error for error in record["errors"]), record["errors"]
    assert "Traceback" not in done.stderr


LITELLM_CONFIG = """
model_list:
- model_name: scripted-1
  litellm_params:
    {{model: openai/scripted-1, api_base: "{url}/v1", api_key: os.environ/SCRIPTED_KEY, use_chat_completions_api: true}}
litellm_settings: {{drop_params: true, modify_params: true}}
"""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("own_config", [False, True], ids=["written-for-the-run", "of-the-user"])
def test_codex_reaches_a_chat_only_provider_through_the_real_litellm(
    own_config: bool, zero: Zero, coding_cli: CodingCli, workspace: Path, snapshot: Path, tmp_path: Path
) -> None:
    # Beside the interpreter of the tests: the environment's own programs need not be on PATH.
    beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    litellm = shutil.which(os.environ.get("SREARENA_TEST_LITELLM", "litellm"), path=beside)
    if litellm is None:
        pytest.skip("litellm is not installed")
    program = coding_cli("codex")
    with model("codex", workspace / "agent_output.json") as scripted_model:
        config = tmp_path / "litellm_config.yaml"
        config.write_text(LITELLM_CONFIG.format(url=scripted_model.url))
        more = ("--litellm-config", str(config)) if own_config else ("--wire-api", "chat", "--provider", "mine")
        done = run(zero, program, "codex", scripted_model, snapshot, *more, "--litellm", litellm)
        assert done.code == 0, done.stderr + logged(workspace)
    assert {talk.wire_format for talk in scripted_model.talks} == {"chat"}
    assert read(workspace / "agent_output.json") == GOOD
    files = (path for path in workspace.rglob("*") if path.is_file())
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


PROXY = """#!{python}
import json, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.zero.scripted_model import scripted
from tests.zero.test_real_clis import Investigator
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
with scripted(Investigator("codex", Path({output!r})), int(given["--port"])) as model:
    Path({seen!r}).write_text(Path(given["--config"]).read_text())
    sys.stdin.read()
    __import__("threading").Event().wait()
"""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("own_config", [False, True], ids=["written-for-the-run", "of-the-user"])
def test_codex_reaches_a_chat_only_provider_through_litellm(
    own_config: bool, zero: Zero, coding_cli: CodingCli, workspace: Path, snapshot: Path, tmp_path: Path
) -> None:
    """The substitute for LiteLLM offers the responses API, like the real one does to Codex."""
    program = coding_cli("codex")
    proxy, seen, config = tmp_path / "litellm", tmp_path / "seen.yaml", tmp_path / "litellm_config.yaml"
    config.write_text("model_list: [{model_name: google/gemini-2.5-pro, litellm_params: {model: openrouter/x}}]\n")
    places = {"root": str(Path(__file__).parents[2]), "output": str(workspace / "agent_output.json"), "seen": str(seen)}
    proxy.write_text(PROXY.format(python=sys.executable, **places))
    proxy.chmod(0o755)
    how = ("--litellm-config", str(config)) if own_config else ("--provider", "openrouter", "--wire-api", "chat")
    done = zero(
        *("--program", program, "-r", str(snapshot), "--prompt-file", "offline_investigation"),
        *(*how, "--litellm", str(proxy)),
        after=("exec", "-m", "google/gemini-2.5-pro"),
        timeout=240,
        OR_API_KEY=KEY,
    )
    assert done.code == 0, done.stderr + logged(workspace)
    if own_config:
        assert seen.read_text() == config.read_text()
    else:
        assert "using a LiteLLM proxy" in done.stderr
        assert "openrouter/google/gemini-2.5-pro" in seen.read_text()
    assert KEY not in seen.read_text()
    assert "OR_API_KEY" not in (workspace / "config.toml").read_text(), "the agent needs no key: the proxy has it"
