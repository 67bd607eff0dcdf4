"""The image runs the README's first command as a user without rights; compose.yaml uses it as it is.

No image is built here: `test_release` runs the commands of its build stage.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import yaml

from tests.packaging.dockerfile import arguments_of, instructions

ROOT = Path(__file__).parents[2]


def test_the_image_runs_the_first_command_of_the_readme() -> None:
    first = re.search(r"```bash\n(.*?)\n```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert first is not None
    command = shlex.split(first[1].rpartition(" && .venv/bin/")[2])
    (entrypoint,), (arguments,) = arguments_of("runtime", "ENTRYPOINT"), arguments_of("runtime", "CMD")
    assert json.loads(entrypoint) + json.loads(arguments) == command


def test_the_container_has_no_rights_and_keeps_results_in_a_volume() -> None:
    assert arguments_of("runtime", "USER") == ["srearena"]
    (volume,) = arguments_of("runtime", "VOLUME")
    assert any(f"SREARENA_RESULTS={volume}/" in variables for variables in arguments_of("runtime", "ENV"))


def test_the_default_image_is_the_one_without_kubectl() -> None:
    bases = {step.stage: step.arguments for step in instructions() if step.keyword == "FROM"}
    assert list(bases) == ["build", "runtime", "with-kubectl", ""]
    assert bases["with-kubectl"] == bases[""] == "runtime"


def test_compose_runs_the_image_as_it_is() -> None:
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    service = compose["services"]["srearena"]
    assert service["build"] == {"context": ".", "target": "runtime"}
    assert not {"command", "entrypoint", "user", "privileged"} & service.keys()
    (volume,) = arguments_of("runtime", "VOLUME")
    assert service["volumes"] == [f"data:{volume}"]
    assert list(compose["volumes"]) == ["data"]


def test_what_git_ignores_stays_out_of_the_image() -> None:
    ignored = (ROOT / ".gitignore").read_text().split()
    # A pattern without a slash matches at any depth for git, and at the root alone for Docker.
    expected = [line if "/" in line.rstrip("/") else f"**/{line}" for line in ignored]
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert lines == [".git", *expected]
