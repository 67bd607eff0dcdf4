"""Completions and suggestions at the console's prompt.

kubectl completes itself: verbs, kinds, flags, and the names of the objects that the engineer on call may read.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

_TIMEOUT = 5.0
_VERBS = ("get", "describe", "logs", "exec", "patch", "scale", "rollout", "delete", "apply", "edit", "top")
"""Offered while no cluster runs that could be asked, and where `kubectl` is left out."""
_ACTIVE_HELP = "_activeHelp_"


def kubectl_completions(line: str, environment: Mapping[str, str] | None) -> list[str]:
    """Completions of the last word of a kubectl command; `environment` is that of a running episode."""
    words = line.split(" ")
    program = shutil.which("kubectl")
    if program is None or environment is None:
        return [verb for verb in _VERBS if len(words) == 2 and verb.startswith(words[1])]
    try:
        done = subprocess.run(
            [program, "__complete", *words[1:]],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    offered = [row.partition("\t")[0] for row in done.stdout.splitlines()]
    return [word for word in offered if word and not word.startswith((":", _ACTIVE_HELP))]


def suggestion(line: str, commands: Sequence[str]) -> str:
    """What was probably meant by a line whose first word is neither a command nor a program; "" where it is one."""
    first = re.match(r"\s*([A-Za-z_-]+)(?=[\s(]|$)", line)
    if first is None or shutil.which(first[1]):
        return ""
    if first[1] in _VERBS:
        return f"kubectl {first[1]}"
    near = get_close_matches(first[1], [command.rstrip("(") for command in commands], n=1, cutoff=0.7)
    return near[0] if near else ""
