"""Numbers on the command line have bounds, in every command: out of them, nothing is started."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

import zero.cli
from srearena.cli import cli


def _commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(command)
    if isinstance(command, click.Group):
        for word in command.list_commands(context):
            inner = command.get_command(context, word)
            assert inner is not None
            yield from _commands(inner, f"{name} {word}")
    yield name, command


ALL = [*_commands(cli, "srearena"), *_commands(zero.cli.command, "zero")]
NUMBERS = [
    pytest.param(command, option, id=f"{name} {option.opts[0]}")
    for name, command in ALL
    for option in command.params
    if isinstance(option, click.Option)
    and isinstance(option.type, click.types.IntParamType | click.types.FloatParamType)
]


def test_the_commands_have_numbers() -> None:
    assert len(NUMBERS) > 25


@pytest.mark.parametrize(("command", "option"), NUMBERS)
def test_a_number_out_of_bounds_is_refused(command: click.Command, option: click.Option) -> None:
    for wrong in ("-1", "nan", "inf", "-inf", "many"):
        ended = CliRunner().invoke(command, [option.opts[0], wrong])
        assert ended.exit_code == 2, f"{wrong}: {ended.output}"
        assert f"Invalid value for '{option.opts[0]}'" in ended.output.replace("' / '", "'"), ended.output
