from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from srearena.cluster import Cluster, start_embedded

from .operator import Operator


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.kubectl)


@pytest.fixture(scope="session")
def kubectl_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """kubectl caches discovery under its home; one for the whole run."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A cluster of the test's own, settled, with three workers."""
    with start_embedded(in_process=True) as running:
        yield running


@pytest.fixture
def operator(cluster: Cluster, kubectl_home: Path) -> Operator:
    return Operator(cluster, kubectl_home)


@pytest.fixture
def make_operator(kubectl_home: Path) -> Iterator[Callable[..., Operator]]:
    """Operators on clusters of other shapes: `make_operator(nodes=1)`."""
    with ExitStack() as stack:

        def make(**options: object) -> Operator:
            running = stack.enter_context(start_embedded(in_process=True, **options))  # type: ignore[arg-type]
            return Operator(running, kubectl_home)

        yield make
