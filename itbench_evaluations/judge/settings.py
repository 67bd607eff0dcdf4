"""Settings of the judge, from flags, the environment and `.env`, in this order of precedence."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from itbench_evaluations.errors import InputError
from srearena.dotenv import read_dotenv

__all__ = ["DEFAULT_BASE_URL", "JudgeSettings", "environment", "is_configured", "read_dotenv"]

DEFAULT_BASE_URL = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Everything about the judge that is not about a trial. The key never appears in results, reports or errors."""

    base_url: str
    api_key: str
    models: tuple[str, ...]
    votes: int = 1
    timeout: float = 120.0
    max_retries: int = 5
    backoff: float = 1.0
    max_concurrent: int = 5
    requests_per_minute: float | None = None
    max_tokens: int = 2000
    price_input: float | None = None
    price_output: float | None = None

    def __post_init__(self) -> None:
        if not re.match(r"https?://[^/\s]+", self.base_url):
            raise InputError(f"JUDGE_BASE_URL is not an http(s) address: {self.base_url!r}")
        if not self.models:
            raise InputError("no judge model: set JUDGE_MODEL or give --judge-model")
        if self.votes < 1 or self.max_concurrent < 1:
            raise InputError("--votes and --max-concurrent must be at least 1")

    def __repr__(self) -> str:
        return f"JudgeSettings(base_url={self.base_url!r}, models={self.models!r}, votes={self.votes})"


def environment(directory: Path | None = None) -> dict[str, str]:
    """The process's environment, and variables of `.env` in the working directory that it does not set."""
    variables = dict(os.environ)
    file = (directory or Path.cwd()) / ".env"
    if file.is_file():
        try:
            variables = {**read_dotenv(file.read_text(encoding="utf-8"), variables), **variables}
        except (OSError, UnicodeDecodeError) as problem:
            raise InputError(f"cannot read {file}: {problem}") from problem
    return variables


def is_configured(variables: Mapping[str, str]) -> bool:
    """Whether a judge is configured: an endpoint or a key, and a model."""
    return bool(variables.get("JUDGE_MODEL")) and bool(
        variables.get("JUDGE_BASE_URL") or variables.get("JUDGE_API_KEY")
    )
