"""Outcomes and results of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from zero.trajectory import Usage

RUN_SCHEMA = "zero-run-v1"  # of traces/run.json


class Outcome(StrEnum):
    ANSWERED = "answered"
    NO_ANSWER = "no_answer"  # no valid output after all attempts
    AGENT_FAILED = "agent_failed"  # the CLI failed
    TURNS = "turns"
    COST = "cost"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"
    CONVERSED = "conversed"  # an interactive session
    PREPARED = "prepared"  # a dry run


EXIT_CODES = {
    Outcome.ANSWERED: 0,
    Outcome.CONVERSED: 0,
    Outcome.PREPARED: 0,
    Outcome.NO_ANSWER: 3,
    Outcome.AGENT_FAILED: 4,
    Outcome.TURNS: 5,
    Outcome.COST: 6,
    Outcome.TIMEOUT: 124,
    Outcome.INTERRUPTED: 130,
}
OUTCOME_OF_STOP = {
    "timeout": Outcome.TIMEOUT,
    "turns": Outcome.TURNS,
    "cost": Outcome.COST,
    "interrupt": Outcome.INTERRUPTED,
}


@dataclass(frozen=True, slots=True)
class RunResult:
    outcome: Outcome
    exit_code: int
    workspace: Path
    output: Path
    complaints: tuple[str, ...] = ()
    attempts: int = 0
    turns: int = 0
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
