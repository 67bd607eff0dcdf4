from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from srearena.cluster import start_embedded
from tests.containers.machine import Machine
from tests.kubectl.operator import KUBECTL, Operator


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def make_operator(tmp_path: Path) -> Iterator[Callable[..., Operator]]:
    """Somebody with kubectl and a cluster of their own."""
    if KUBECTL is None:
        pytest.skip("kubectl is not installed")
    with ExitStack() as stack:

        def make(**options: object) -> Operator:
            running = stack.enter_context(start_embedded(in_process=True, **options))  # type: ignore[arg-type]
            return Operator(running, tmp_path)

        yield make
