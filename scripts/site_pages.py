"""Pages of the documentation site that are not files below docs/: a hook of MkDocs, named in mkdocs.yml.

- `reference/commands.md`: the help of every command, taken from the commands themselves.
- `reference/python.md`: the public Python interface; mkdocstrings fills it in from the code.
- The documents at the root of the repository (CHANGELOG.md ...), in lower case.
- Files of the repository that a page links to (`../kind/README.md`): each is copied to `repository/`.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel

ROOT = Path(__file__).parents[1]
ROOT_DOCUMENTS = ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")
COPIES = "repository"
HELP_WIDTH = 100
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")

# Commands that are not built with click: the module of `main`, and the subcommands that have a help of their own.
OTHER_COMMANDS = {
    "itbench-eval": ("itbench_evaluations.cli", ("", "lint", "compare", "report", "schema")),
    "itbench-leaderboard": ("itbench_leaderboard.cli", ("",)),
    "sre-tools": ("sre_tools.shell", ("",)),
}

# The names that users import, by subject. Names fixed by docs/adding-a-problem.md and others stay where they are.
INTERFACE = {
    "Episodes": ["srearena.conductor", "srearena.conductor.session"],
    "Problems": [
        "srearena.conductor.problems.base",
        "srearena.conductor.problems.helpers",
        "srearena.utils.decorators",
    ],
    "Oracles": [
        "srearena.conductor.oracles.base",
        "srearena.conductor.oracles.detection",
        "srearena.conductor.oracles.localization",
        "srearena.conductor.oracles.mitigation",
    ],
    "Faults": ["srearena.generators.fault.base", "srearena.generators.fault.registry"],
    "Applications": ["srearena.service.apps.base"],
    "Clusters": ["srearena.cluster.base"],
    "Telemetry": ["srearena.observer.metric_api", "srearena.observer.log_api", "srearena.observer.trace_api"],
    "Grading diagnoses": ["itbench_evaluations"],
    "Coding CLIs": ["zero"],
    "Errors": ["srearena.errors"],
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and copies of linked files."""
    pages = {
        "reference/commands.md": commands_page(),
        "reference/python.md": interface_page(),
        **{name.lower(): (ROOT / name).read_text().replace("](docs/", "](") for name in ROOT_DOCUMENTS},
    }
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    copied = {path for page in files.documentation_pages() for path in linked_files(page)}
    for path in sorted(copied):
        content = (ROOT / path).read_bytes()
        inclusion = InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, f"{COPIES}/{path}", content=content, inclusion=inclusion))
    return files


def on_page_markdown(markdown: str, page: object, config: MkDocsConfig, files: Files) -> str:
    """Point links to files of the repository at their copies; a link to a directory becomes its text."""

    def rewritten(match: re.Match[str]) -> str:
        path = outside(match[2])
        if path is None:
            return match[0]
        if path in ROOT_DOCUMENTS:
            return f"[{match[1]}]({path.lower()}{match[3] or ''})"
        return f"[{match[1]}]({COPIES}/{path})" if (ROOT / path).is_file() else match[1]

    return LINK.sub(rewritten, markdown)


def outside(target: str) -> str | None:
    """Return the path in the repository that a link of a page in docs/ has, if it leads out of docs/."""
    if "/" not in target and target in ROOT_DOCUMENTS:
        return target
    path = posixpath.normpath(posixpath.join("docs", target))
    return None if path.startswith("docs/") or not (ROOT / path).exists() else path


def linked_files(page: File) -> Iterator[str]:
    for match in LINK.finditer(page.content_string):
        path = outside(match[2])
        if path is not None and path not in ROOT_DOCUMENTS and (ROOT / path).is_file():
            yield path


def commands_page() -> str:
    """Return the help of every command, as the command itself prints it."""
    from srearena.cli import cli
    from zero.cli import command as zero

    sections = ["# Commands", "Each section is what the command prints with `--help`."]
    for name, command in (("srearena", cli), ("zero", zero)):
        sections += click_sections(name, command, None)
    for name, (module, subcommands) in OTHER_COMMANDS.items():
        for subcommand in subcommands:
            words = [subcommand] if subcommand else []
            sections += section([name, *words], printed_help(module, [name, *words, "--help"]))
    return "\n\n".join(sections) + "\n"


def click_sections(name: str, command: click.Command, parent: click.Context | None) -> Iterator[str]:
    context = command.make_context(name, [], parent, resilient_parsing=True, terminal_width=HELP_WIDTH)
    yield from section(context.command_path.split(), command.get_help(context))
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            subcommand = command.get_command(context, child)
            if subcommand is not None and not subcommand.hidden:
                yield from click_sections(child, subcommand, context)


def section(words: list[str], text: str) -> list[str]:
    return [f"{'#' * min(len(words) + 1, 4)} {' '.join(words)}", f"```text\n{text.rstrip()}\n```"]


def printed_help(module: str, arguments: list[str]) -> str:
    """Return what the `main` of a module prints for these arguments, in a terminal of fixed width."""
    output = io.StringIO()
    with (
        mock.patch.object(sys, "argv", arguments),
        mock.patch.dict(os.environ, COLUMNS=str(HELP_WIDTH)),
        contextlib.redirect_stdout(output),
        contextlib.suppress(SystemExit),
    ):
        importlib.import_module(module).main()
    return output.getvalue()


def interface_page() -> str:
    """Return a page that mkdocstrings fills in: one section per subject, one entry per module."""
    lines = ["# Python interface", "Public names by subject, with their docstrings."]
    for subject, modules in INTERFACE.items():
        lines.append(f"## {subject}")
        lines += [f"::: {module}\n    options:\n      heading_level: 3" for module in modules]
    return "\n\n".join(lines) + "\n"
