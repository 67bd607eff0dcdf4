"""Which MCP servers and which provider a run gets: by name, with secrets named and never written."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from zero import providers, servers
from zero.errors import RequestError

WORK = Path("/work")


def select(
    names: list[str] | None, snapshots: list[str], tmp_path: Path | None = None, text: str = "", **env: str
) -> list[servers.Server]:
    files = []
    if tmp_path is not None:
        (tmp_path / "more.toml").write_text(text)
        files = [tmp_path / "more.toml"]
    places = [Path(each) for each in snapshots]
    return servers.select(servers.catalogue(files), names, workspace=WORK, snapshots=places, environment=env)


def test_the_offline_tools_know_their_snapshot() -> None:
    [found] = select(["offline_incident_analysis"], ["/data/one"])
    assert found.command == sys.executable
    assert found.args[:5] == ("-P", "-m", "sre_tools.offline_incident_analysis", "--snapshot", "/data/one")


def test_several_snapshots_get_a_server_each() -> None:
    found = select(["offline_incident_analysis"], ["/data/one", "/data/two"])
    assert [each.name for each in found] == ["offline_incident_analysis", "offline_incident_analysis_2"]
    assert "/data/two" in found[1].args


def test_without_a_choice_all_that_can_work_are_taken() -> None:
    assert select(None, []) == []
    assert [each.name for each in select(None, ["/d"])] == ["offline_incident_analysis"]
    live = {"SREARENA_MCP_URL": "http://127.0.0.1:9/mcp", "SREARENA_MCP_TOKEN": "secret"}
    [found] = select(None, [], **live)
    assert (found.name, found.url, found.variables) == ("live", live["SREARENA_MCP_URL"], ("SREARENA_MCP_TOKEN",))
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["nothing"], "no MCP server is called nothing"),
        (["live"], "SREARENA_MCP_URL"),
        (["offline_incident_analysis"], "--read-only-dir"),
    ],
)
def test_a_named_server_must_be_able_to_work(names: list[str], says: str) -> None:
    with pytest.raises(RequestError, match=says):
        select(names, [])


def test_the_users_table_adds_and_replaces(tmp_path: Path) -> None:
    text = "[mcp_servers.live]\ncommand = 'mine'\nargs = ['{workspace}', '{unknown}']\nenv_vars = ['KUBECONFIG']\n"
    [found] = select(["live"], [], tmp_path, text)
    assert (found.command, found.args, found.variables) == ("mine", ("/work", "{unknown}"), ("KUBECONFIG",))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[a]\ncmd = 'x'\n", "unknown keys cmd"),
        ("[a]\n", "needs a command"),
        ("a = 1\n", "not a table"),
        ("[a", "cannot read"),
    ],
)
def test_a_wrong_table_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        select(None, [], tmp_path, text)


def test_a_provider_names_its_key() -> None:
    found = providers.choose("openrouter", {"OPENROUTER_API_KEY": "secret"})
    assert found.key_variable == "OPENROUTER_API_KEY"
    assert "secret" not in repr(found)
    with pytest.raises(RequestError, match="export OR_API_KEY"):
        providers.choose("openrouter", {})
    assert providers.choose("litellm", {}).key_variable == "", "a proxy of one's own may want no key"


def test_what_the_user_says_goes_first() -> None:
    found = providers.choose("mine", {"K": "x"}, base_url="http://h:1/v1/", key_variable="K", wire_api="chat")
    assert (found.base_url, found.key_variable, found.wire_api) == ("http://h:1/v1", "K", "chat")
    with pytest.raises(RequestError, match="unknown provider mine"):
        providers.choose("mine", {})
    with pytest.raises(RequestError, match="unknown wire format"):
        providers.choose("litellm", {}, wire_api="smoke")
    with pytest.raises(RequestError, match="AZURE_OPENAI_BASE_URL"):
        providers.choose("azure", {"AZURE_OPENAI_API_KEY": "x"})
    assert providers.choose("openai", {}, key_needed=False).key_variable == "OPENAI_API_KEY"
