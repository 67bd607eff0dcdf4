"""One trial as one HTML file, with everything in it: to attach to an issue, readable without a network.

The file holds the application's script and style sheet and the trial as JSON. Its content security policy allows that
script and that style sheet by their hashes and nothing else, so text of an agent cannot become code.
"""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from pathlib import Path
from typing import Any

ASSETS = Path(__file__).parent / "assets"


def exported(document: dict[str, Any]) -> str:
    """The HTML file of a trial's document."""
    script = (ASSETS / "view.js").read_text(encoding="utf-8")
    style = (ASSETS / "view.css").read_text(encoding="utf-8")
    data = json.dumps(document, ensure_ascii=True).replace("<", "\\u003c")
    row = document["row"]
    title = escape(f"{row['problem'] or 'trial'} · {row['agent']} · {row['outcome']}")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<link rel="icon" href="data:,">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        '<div id="application"></div>\n'
        f'<script type="application/json" id="trial">{data}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def file_name(row: dict[str, Any]) -> str:
    """A name for the file, of characters that are safe everywhere."""
    words = "-".join(str(row[key]) for key in ("problem", "agent", "trial"))
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in words)[:120] + ".html"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
