"""The options that select the cluster: `--backend`, `--context`, `--kubeconfig`, `--yes-this-cluster`.

They are the same for every command that needs a cluster, and override `config.yml`. Without options and `config.yml`,
clusters are embedded.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from srearena.config import EMBEDDED, Config, ConfigError, load_config

KUBERNETES = "kubernetes"
F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--backend",
        type=click.Choice([EMBEDDED, KUBERNETES]),
        help="Where problems run; by default as config.yml says, and embedded without one.",
    ),
    click.option("--context", help="With --backend kubernetes: the context of the kubeconfig."),
    click.option(
        "--kubeconfig",
        type=click.Path(dir_okay=False, path_type=Path),
        help="With --backend kubernetes: the kubeconfig; by default the one kubectl uses.",
    ),
    click.option("--yes-this-cluster", is_flag=True, help="Use a cluster whose name looks like production."),
)


def backend_options(function: F) -> F:
    """Add the four options to a command, as `backend`, `context`, `kubeconfig` and `yes_this_cluster`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def chosen_config(
    backend: str | None = None,
    context: str | None = None,
    kubeconfig: Path | None = None,
    yes_this_cluster: bool = False,
) -> Config:
    """The configuration, overridden by the options of the command and of the main command before it."""
    outer = click.get_current_context().find_root().params if click.get_current_context(silent=True) else {}
    backend = backend or outer.get("backend")
    context = context or outer.get("context")
    kubeconfig = kubeconfig or outer.get("kubeconfig")
    yes_this_cluster = yes_this_cluster or bool(outer.get("yes_this_cluster"))
    config = load_config()
    overrides: dict[str, Any] = {}
    if backend == EMBEDDED:
        overrides["k8s_host"] = EMBEDDED
    elif backend == KUBERNETES and config.embedded:
        overrides["k8s_host"] = KUBERNETES
    if context:
        overrides["context"] = context
    if kubeconfig is not None:
        overrides["kubeconfig"] = str(kubeconfig.absolute())
    if yes_this_cluster:
        overrides["yes_this_cluster"] = True
    chosen = config.model_copy(update=overrides)
    if chosen.embedded and (context or kubeconfig is not None):
        raise ConfigError("--context and --kubeconfig name a real cluster: add --backend kubernetes")
    return chosen
