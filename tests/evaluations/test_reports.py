"""Reports are complete, and safe whatever an agent writes."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from itbench_evaluations import EvaluationRequest, evaluate
from itbench_evaluations.report import html, markdown
from itbench_evaluations.report.text import as_markdown, visible

from .samples import MIXED, RIGHT, SHOP, answer, itbench_eval, write_trial

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></style></svg><script>alert(2)</script>",
    "' onmouseover='alert(3)",
    "javascript:alert(4)",
    "\x1b[31mred\x1b]0;title\x07",
    "\u202eevil\u202c\u200b",
    "</script><!--<script>",
    "```\n# heading\n[link](javascript:alert(5)) ![i](http://evil.example/x.png)",
    "| a | b |\n<iframe src=//evil.example>",
    'x"];click n0 "javascript:alert(6)"',
    "&lt;b&gt; &#x3C;script&#x3E;",
]


@pytest.fixture
def hostile(tmp_path: Path) -> dict[str, Any]:
    for trial, text in enumerate(HOSTILE, start=1):
        diagnosis = answer("shop/ConfigMap/flags", f"shop/Pod/{text}", edges=((text, "shop/Service/cart"),), why=text)
        write_trial(tmp_path, "Scenario-1", str(trial), diagnosis)
    write_trial(tmp_path, "Scenario-1", "98", f"not json {HOSTILE[0]}")
    write_trial(tmp_path, "Scenario-1", "99", {HOSTILE[0]: HOSTILE[1]})
    return evaluate(EvaluationRequest(SHOP, tmp_path)).document


class _Page(HTMLParser):
    """Every element and attribute that a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_page_holds_no_element_but_ours_whatever_agents_write(hostile: dict[str, Any]) -> None:
    page = _Page()
    page.feed(html.render(hostile))
    ours = {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "ul", "li", "table", "tr", "th", "td",
        "code", "br", "details", "summary", "div", "svg", "g", "rect", "text", "path",
    }  # fmt: skip
    assert page.tags <= ours
    allowed = {"lang", "charset", "http-equiv", "content", "name", "class", "d", "x", "y", "rx", "width", "height"}
    assert page.attributes <= allowed | {"viewbox", "role", "aria-label"}
    assert "alert(1)" in "".join(page.text)  # shown, as text


def test_the_policy_allows_our_style_sheet_and_nothing_else(hostile: dict[str, Any]) -> None:
    page = html.render(hostile)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert policy and style
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy[1].split("; ")[:2] == ["default-src 'none'", f"style-src 'sha256-{digest}'"]
    assert "style=" not in page and "<script" not in page and "http://" not in page.replace("http://evil.example", "")


def test_hidden_characters_are_made_visible(hostile: dict[str, Any]) -> None:
    page = html.render(hostile)
    assert "\x1b" not in page and "\u202e" not in page
    assert "⟨U+001B⟩" in page and "⟨U+202E⟩" in page
    assert visible("a\x00b\nc") == "a⟨U+0000⟩b c"
    assert visible("x" * 10, 4) == "xxxx…"


def test_markdown_is_inert_too(hostile: dict[str, Any]) -> None:
    text = markdown.render(hostile)
    outside = re.sub(r"```mermaid\n.*?\n```", "", text, flags=re.DOTALL)
    assert "<script" not in outside and "<img" not in outside and "<iframe" not in outside
    assert "](javascript" not in outside and "](http" not in outside
    for block in re.findall(r"```mermaid\n(.*?)\n```", text, flags=re.DOTALL):
        for line in block.split("\n"):
            assert re.fullmatch(r'flowchart LR|  n\d+\["[^"<>`\\]*"\]|  n\d+ --> n\d+', line), line
    assert as_markdown("*a* <b> [c](d)") == r"\*a\* &lt;b&gt; \[c\]\(d\)"


def test_a_trial_shows_what_was_found_missed_and_wrongly_blamed(tmp_path: Path) -> None:
    write_trial(tmp_path / "out", "Scenario-1", "1", MIXED)
    write_trial(tmp_path / "out", "Scenario-2", "1", answer("shop/ResourceQuota/tight"))
    done = itbench_eval("-g", SHOP, "-o", tmp_path / "out", "--report", "html", "--report", "md", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = _Page()
    page.feed((tmp_path / "evaluation_results.html").read_text())
    text = " ".join(page.text)
    for expected in (
        "shop/ConfigMap/flags → flags-1",
        "shop/Deployment/redis",
        "payment-deployment-1",
        "Truth",
        "Prediction",
    ):
        assert expected in text
    notes = (tmp_path / "evaluation_results.md").read_text()
    assert "Missed: payment\\-deployment\\-1" in notes and "Wrongly blamed: shop/Deployment/redis" in notes
    assert "ROOT flags-1" in notes


def test_a_report_can_be_made_later(tmp_path: Path) -> None:
    write_trial(tmp_path / "out", "Scenario-1", "1", RIGHT)
    itbench_eval("-g", SHOP, "-o", tmp_path / "out", cwd=tmp_path)
    done = itbench_eval("report", "evaluation_results.json", "--format", "md", "-o", "page.md", cwd=tmp_path)
    assert done.returncode == 0 and (tmp_path / "page.md").read_text().startswith("# Evaluation")
    (tmp_path / "half.json").write_text('{"raw_results": []}')
    broken = itbench_eval("report", "half.json", cwd=tmp_path)
    assert broken.returncode == 2 and len(broken.stderr.splitlines()) == 1


def test_a_long_result_is_cut_and_says_so(tmp_path: Path) -> None:
    write_trial(tmp_path, "Scenario-1", "1", RIGHT)
    document = evaluate(EvaluationRequest(SHOP, tmp_path)).document
    document["raw_results"] *= html.MAX_TRIALS + 1
    assert f"Only the first {html.MAX_TRIALS} of {html.MAX_TRIALS + 1} trials" in html.render(document)
