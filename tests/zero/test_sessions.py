"""Interactive sessions: the CLI has the terminal, understands Ctrl-C itself, and its exit code is ours."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pexpect
import pytest

FAKE = """#!{python}
import sys
if "--version" in sys.argv:
    print("codex-cli 9.9.9")
    raise SystemExit
print("terminal", sys.stdin.isatty(), "arguments", sys.argv[1:], flush=True)
while True:
    try:
        line = input()
    except KeyboardInterrupt:
        print("interrupted, and going on", flush=True)
        continue
    print("heard", line, flush=True)
    if line == "bye":
        raise SystemExit(7)
"""


@pytest.mark.parametrize("enclosed", ["off", "auto"])
def test_a_session_belongs_to_the_user(workspace: Path, tmp_path: Path, enclosed: str) -> None:
    program = tmp_path / "codex"
    program.write_text(FAKE.format(python=sys.executable))
    program.chmod(0o755)
    arguments = ["-m", "zero", "-w", str(workspace), "--program", str(program), "--sandbox", enclosed]
    session = pexpect.spawn(
        sys.executable, [*arguments, "--", "-m", "openai/gpt-5.1"], encoding="utf-8", timeout=60, env=dict(os.environ)
    )
    session.expect(r"terminal True arguments \['-m', 'openai/gpt-5.1'\]")
    session.sendline("hello")
    session.expect("heard hello")
    session.sendintr()
    session.expect("interrupted, and going on")
    session.sendline("bye")
    session.expect(pexpect.EOF)
    session.close()
    assert session.exitstatus == 7, session.before
    assert (workspace / "config.toml").exists()
