"""Actions of a user in a browser, for tests."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urljoin

from selenium.webdriver import Chrome
from selenium.webdriver.support.ui import WebDriverWait

PICTURES = Path(__file__).parents[2] / "docs" / "images"


class Browser:
    """Pages of one site at a time, opened from its files."""

    def __init__(self, chrome: Chrome) -> None:
        self.chrome = chrome

    def open(self, base: str, page: str = "#/") -> None:
        self.chrome.get("about:blank")
        self.chrome.get(urljoin(base, "index.html") + page)
        self.wait(page)

    def go(self, page: str) -> None:
        self.chrome.execute_script("location.hash = arguments[0]", page)
        self.wait(page)

    def wait(self, page: str) -> None:
        script = "return document.getElementById('content')?.dataset.ready"
        WebDriverWait(self.chrome, 30, 0.05).until(lambda chrome: chrome.execute_script(script) == page)

    def all(self, selector: str) -> list[str]:
        found = self.chrome.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)", selector
        )
        return [str(text) for text in found]

    def text(self, selector: str = "main") -> str:
        return self.all(selector)[0]

    def click(self, selector: str) -> None:
        before = self.chrome.execute_script("return location.hash")
        self.chrome.find_element("css selector", selector).click()
        after = self.chrome.execute_script("return location.hash")
        if after != before:
            self.wait(after)

    def complaints(self) -> list[str]:
        return [str(entry["message"]) for entry in self.chrome.get_log("browser")]

    def picture(self, name: str) -> None:
        """Kept for the documents when asked for: SREARENA_PICTURES=1 pytest tests/website."""
        if os.environ.get("SREARENA_PICTURES"):
            PICTURES.mkdir(exist_ok=True)
            self.chrome.save_screenshot(str(PICTURES / f"{name}.png"))
