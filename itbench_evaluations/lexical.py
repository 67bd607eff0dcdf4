"""A baseline for reasoning without a model: the share of the ground truth's words that the explanation uses.

Words are lower-cased, split at case changes and roughly stemmed. Common words and the names of the objects do not count
(naming the cause is not explaining it). Coverage is the share of one statement's words that the explanation contains,
for the best statement. From `FULL` it scores 1, from `HALF` 0.5, below that 0. Only the first `MAX_WORDS` words of an
explanation are read, so that length gives no advantage.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

NAME = "lexical-v1"
FULL = 0.6  # chosen: documented in docs/judge.md; a change needs a new NAME
HALF = 0.3  # chosen, like FULL
MAX_WORDS = 400  # chosen: longer than any explanation that is not padding

_TOKEN = re.compile(r"[A-Za-z0-9_.:%-]+")
_CASE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_COMMON: frozenset[str] = frozenset(
    re.findall(
        r"\w+",
        """a an the and or of to in on at by for from with without is are was were be been being it its this that these
    those as not no due because when which who into than then so such has have had do does did can cannot could may
    might will would should after before during while their there over under above below via per all any some more
    most other only also etc using use used set""",
    )
)
_GENERIC: frozenset[str] = frozenset(
    re.findall(
        r"\w+",
        """service services pod pods deployment deployments namespace object objects kubernetes cluster entity component
    root cause causes caused issue issues problem problems incident demo""",
    )
)


def _stem(word: str) -> str:
    for ending in ("ations", "ation", "ing", "ed", "es", "s", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


_GENERIC_STEMS = frozenset(_stem(word) for word in _GENERIC)


@lru_cache(maxsize=8192)
def words(text: str) -> frozenset[str]:
    """The stems of a text's significant words; `paymentFailure` yields the compound and its parts."""
    stems: set[str] = set()
    for token in _TOKEN.findall(text)[:MAX_WORDS]:
        pieces = [piece.lower() for piece in _CASE.findall(token)]
        whole = token.strip("_.:%-").lower()
        for piece in {whole, *pieces}:
            if (len(piece) > 2 or piece.isdigit()) and piece not in _COMMON:
                stems.add(_stem(piece))
    return frozenset(stems)


@lru_cache(maxsize=8192)
def _statement_words(text: str) -> frozenset[str]:
    """The stems of a statement's words; compounds only in parts, so that no word counts twice."""
    stems = {
        _stem(piece.lower())
        for token in _TOKEN.findall(text)
        for piece in _CASE.findall(token)
        if (len(piece) > 2 or piece.isdigit()) and piece.lower() not in _COMMON
    }
    return frozenset(stems)


def coverage(statement: str, explanation: str, names: frozenset[str] = frozenset()) -> float:
    """Share of the statement's words that the explanation contains; `names` are words that do not count."""
    all_words = _statement_words(statement)
    significant = all_words - names - _GENERIC_STEMS
    if len(significant) < 2:
        significant = all_words
    return len(significant & words(explanation)) / len(significant) if significant else 0.0


def score(statements: Iterable[str], explanation: str, names: Iterable[str] = ()) -> float:
    """Score an explanation against the statements of the ground truth: 1, 0.5 or 0."""
    excluded = frozenset(word for name in names for word in _statement_words(name))
    best = max((coverage(statement, explanation, excluded) for statement in statements), default=0.0)
    return 1.0 if best >= FULL else 0.5 if best >= HALF else 0.0
