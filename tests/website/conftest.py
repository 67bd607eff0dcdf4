"""Pages in a real Chromium; without one these tests are skipped."""

from __future__ import annotations

import pytest

pytest.importorskip("selenium", reason="Selenium is not installed: pip install 'srearena[test]'")

from browsing import Browser
from selenium.webdriver import Chrome

from tests.browser import axe, chrome

__all__ = ["axe", "chrome"]


@pytest.fixture
def browser(chrome: Chrome) -> Browser:
    chrome.get_log("browser")
    return Browser(chrome)
