"""A broken file of the user is described in one line."""

from __future__ import annotations

import yaml

from srearena.errors import one_line


def yaml_error(text: str) -> Exception:
    try:
        yaml.safe_load(text)
    except yaml.YAMLError as problem:
        return problem
    raise AssertionError("this is YAML")


def test_broken_yaml_is_described_by_place_and_reason() -> None:
    assert one_line(yaml_error("a: [1\nb: }")) == "line 2, column 2: expected ',' or ']', but got ':'"


def test_any_other_error_has_no_line_breaks() -> None:
    assert one_line(ValueError("first\n  second")) == "first second"
    assert one_line(FileNotFoundError(2, "No such file or directory", "x")) == "No such file or directory"
