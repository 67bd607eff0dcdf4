"""A real Chromium, driven by its own driver; where there is none these tests say so and are skipped."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

pytest.importorskip("selenium", reason="Selenium is not installed: pip install 'srearena[test]'")

from browsing import Browser
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service


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
    made = Chrome(options=options, service=Service(driver))
    yield made
    made.quit()


@pytest.fixture
def browser(chrome: Chrome) -> Browser:
    chrome.get_log("browser")
    return Browser(chrome)
