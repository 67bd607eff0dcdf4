"""A real Chromium with its driver, and the accessibility checker axe-core: fixtures for tests of web pages."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import pytest

pytest.importorskip("selenium", reason="Selenium is not installed: pip install 'srearena[test]'")

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from tests.surroundings import DOWNLOADS, real_environment


@pytest.fixture(scope="session")
def chrome() -> Iterator[Chrome]:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("no Chromium with its driver here: apt install chromium chromium-driver")
    options = ChromeOptions()
    options.binary_location = program
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--window-size=1100,760",
        "--disable-gpu",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = Chrome(options=options, service=Service(driver))
    yield chrome
    chrome.quit()


@pytest.fixture(scope="session")
def axe() -> str:
    """The accessibility checker axe-core, from npm, kept where the coding CLIs of other tests are."""
    place = DOWNLOADS / "axe-core"
    script, npm = place / "node_modules" / "axe-core" / "axe.min.js", shutil.which("npm")
    if npm and not script.is_file():
        place.mkdir(parents=True, exist_ok=True)
        quick = ("--no-audit", "--no-fund", "--fetch-retries=0", "--fetch-timeout=60000")
        command = [npm, "install", "--prefix", str(place), *quick, "axe-core"]
        subprocess.run(command, capture_output=True, timeout=240, check=False, env=real_environment())
    if not script.is_file():
        pytest.skip("axe-core is neither here nor to be had from npm")
    return script.read_text(encoding="utf-8")
