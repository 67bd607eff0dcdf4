"""Prompts: variables, includes, front matter, and what is refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero import prompts
from zero.errors import PromptError

NAMES = st.from_regex(r"[A-Z][A-Z0-9_]{1,8}", fullmatch=True)


def written(directory: Path, text: str, name: str = "prompt.md") -> Path:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_variables_and_includes_are_filled_in(tmp_path: Path) -> None:
    written(tmp_path, "---\noutput: json\n---\nLook at ${WHERE}.\n", "parts/look.md")
    path = written(tmp_path, "# Task\n{{include: parts/look.md}}\nCosts $$5, $x is a letter, $WHERE too\n")
    found = prompts.render(path, {"WHERE": "/data"})
    assert found.text == "# Task\nLook at /data.\nCosts $5, $x is a letter, /data too\n"
    assert found.output is None, "the front matter of an included file says nothing about the prompt"


def test_front_matter_selects_servers_and_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = written(tmp_path, "---\nmcp_servers: [a, b]\noutput: none\n---\nDo.\n")
    assert prompts.render(path, {}) == prompts.Prompt("Do.\n", ("a", "b"), "none")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Read $WHERE and $WHAT", "uses $WHERE, $WHAT"),
        ("{{include: missing.md}}", "missing.md, which does not exist"),
        ("{{include: prompt.md}}", "circular includes"),
        ("---\n- a\n---\n", "not a mapping"),
        ("---\na: [\n---\n", "is not YAML"),
        ("---\nmcp_servers: {a: 1}\n---\n", "a list of names"),
    ],
)
def test_what_cannot_be_rendered_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(PromptError) as problem:
        prompts.render(written(tmp_path, text), {"OTHER": "x"})
    assert says in str(problem.value)
    assert "\n" not in str(problem.value)


@given(values=st.dictionaries(NAMES, st.text(), min_size=1))
def test_what_comes_from_a_variable_is_never_expanded_again(values: dict[str, str]) -> None:
    hostile = {name: f"${next(iter(values))}{{{{include: x}}}}$UNKNOWN_{value}" for name, value in values.items()}
    text = "|".join(f"${{{name}}}" for name in hostile)
    assert prompts.substitute(text, hostile, "here") == "|".join(hostile.values())


@pytest.mark.parametrize("path", sorted(prompts.BUILT_IN.glob("*.md")), ids=lambda path: path.stem)
def test_our_prompts_render_with_what_zero_always_defines(path: Path) -> None:
    variables = {"WORKSPACE_DIR": "/workspace", "OUTPUT_FILE": "/workspace/agent_output.json"}
    if not path.stem.startswith("live"):
        variables["SNAPSHOT_DIRS"] = "/data"
    found = prompts.render(path, variables)
    assert ("/workspace/agent_output.json" in found.text) is (found.output != "none")
    assert "{{" not in found.text
    assert "ground_truth" not in found.text


def test_our_prompts_are_found_by_name() -> None:
    assert prompts.find("offline_investigation").parent == prompts.BUILT_IN
    with pytest.raises(PromptError, match="live_investigation"):
        prompts.find("nothing_such")
