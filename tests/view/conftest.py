"""The application in a real Chromium; without one the tests of its pages are skipped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

pytest.importorskip("selenium", reason="Selenium is not installed: pip install 'srearena[test]'")

from selenium.webdriver import Chrome

from tests.browser import axe, chrome
from tests.view.pages import Pages
from tests.view.results import make_runs

__all__ = ["axe", "chrome"]


@contextmanager
def serving(*places: Path | str, **environment: str) -> Iterator[str]:
    """Run `srearena view` and return its link."""
    command = [sys.executable, "-m", "srearena", "view", "--json", *map(str, places)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}) as process:
        assert process.stdout is not None
        try:
            yield str(json.loads(process.stdout.readline())["link"])
        finally:
            process.terminate()


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runs(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="session")
def link(root: Path, chrome: Chrome) -> Iterator[str]:
    with serving(root) as printed:
        yield printed


@pytest.fixture
def pages(chrome: Chrome, link: str) -> Pages:
    chrome.get_log("browser")
    return Pages(chrome, link)


@pytest.fixture
def served(chrome: Chrome) -> Iterator[Callable[[Path], Pages]]:
    """Serve a folder of the test's own, where it changes what is shown."""
    chrome.get_log("browser")
    with ExitStack() as servers:
        yield lambda folder: Pages(chrome, servers.enter_context(serving(folder)))
