"""Actions of a user in the application, for tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from selenium.webdriver import Chrome, Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait


class Pages:
    """The pages of one `srearena view`."""

    def __init__(self, chrome: Chrome, link: str) -> None:
        self.chrome = chrome
        self._link = link

    def open(self, page: str, shows: str) -> None:
        """Open an address with the printed link, and wait for an element."""
        self.chrome.get("about:blank")
        self.chrome.get(f"{self._link}{page}")
        self.wait(lambda: self.all(shows))

    def wait(self, condition: Callable[[], object], seconds: float = 30) -> None:
        WebDriverWait(self.chrome, seconds, 0.05).until(lambda chrome: condition())

    def all(self, selector: str) -> list[str]:
        script = "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)"
        return [str(text) for text in self.chrome.execute_script(script, selector)]

    def text(self, selector: str = "main") -> str:
        return self.all(selector)[0]

    def find(self, selector: str) -> WebElement:
        return self.chrome.find_element("css selector", selector)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.find("body").send_keys(key)

    def type(self, selector: str, text: str) -> None:
        field = self.find(selector)
        field.send_keys(Keys.CONTROL + "a")
        field.send_keys(text)

    def picture(self, name: str) -> None:
        """Save the page for the documents, where SREARENA_PICTURES names a folder."""
        folder = os.environ.get("SREARENA_PICTURES")
        if folder:
            size = {"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False}
            self.chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            self.chrome.execute_async_script("setTimeout(arguments[0], 500)")  # the charts follow the new size
            self.chrome.save_screenshot(str(Path(folder) / f"{name}.png"))
            self.chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    @property
    def hash(self) -> str:
        return str(self.chrome.execute_script("return location.hash"))

    def errors(self) -> list[str]:
        return [str(entry["message"]) for entry in self.chrome.get_log("browser")]


def trial_page(run: str, problem: str, number: int = 0, place: int = 0) -> str:
    return f"#/trial/{quote(f'{place}/{run}/{problem}/{number}', safe='')}"
