"""The questions to the judge, and the parsing of its replies.

Three defences against prompt injection, because the agent wrote the text to be judged:

* the submission is encoded as JSON inside a fence whose name it cannot predict, and is declared as data;
* sentences addressed to the grader are removed and reported;
* every question contains two *controls* that look like any other item: an explanation known to be right and one known
  to be wrong. A reply that scores a control wrongly is discarded, so a judge that always says yes, or that was
  manipulated, gives no verdicts.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from itbench_evaluations import lexical, loose_json
from itbench_evaluations.errors import EvaluationError, UnreadableSubmission
from itbench_evaluations.reasoning import SCALE, ReasoningItem
from srearena.ground_truth import GroundTruth

VERSION = 1
MAX_EXPLANATION = 4000


class BadReply(EvaluationError):
    """The reply cannot be used; the message is sent to the judge with the retry."""


class FailedControl(BadReply):
    """The reply is readable but scores a control wrongly: this judge is unreliable for this question."""


@dataclass(frozen=True, slots=True)
class Question:
    """One request to a judge: prompts, schema of the reply, and the controls to check it by."""

    system: str
    user: str
    schema: Mapping[str, Any]
    ids: tuple[str, ...]
    controls: Mapping[str, float] = field(default_factory=dict)
    choices: frozenset[str] | None = None

    @property
    def messages(self) -> list[dict[str, str]]:
        return [{"role": "system", "content": self.system}, {"role": "user", "content": self.user}]


@dataclass(frozen=True, slots=True)
class Fenced:
    """A text without sentences addressed to the grader, and those sentences."""

    text: str
    removed: tuple[str, ...]


# Deliberately narrow: error rates, scheduler scores and overridden rules are normal words in an incident.
_ADDRESSED_TO_GRADER = re.compile(
    r"""\b(?:ignore|disregard|forget)\b[^.!?\n]{0,60}\b(?:rubric|instructions?|prompts?|criteria|answer\skey|
    (?:previous|above|prior)\s(?:text|rules?|orders?|messages?))\b|
    \b(?:score|grade|verdict)s?\b[\s:=]*(?:(?:this|it|me|us|all|everything|item\S*|as|of|with|is|be|to|the|answer)\s+){0,4}
    (?:1(?:\.0)?|full|perfect|maximum|highest)\b(?!\s*%)|
    \b(?:give|assign|award)\b[^.!?\n]{0,40}\b(?:full|perfect|maximum|highest)\s+(?:score|marks?|grade|credit|points)|
    \byou\s+are\s+(?:now\s+)?(?:a|an|the)\s+(?:\w+\s+)?(?:judge|grader|evaluator|assistant)\b|
    \b(?:dear|attention|note\s+to|hey)\b[^.!?\n]{0,20}\b(?:judge|grader|evaluator|llm)\b|
    </?(?:system|assistant|user|instructions?)>|<\|[^|\n]{1,30}\|>|
    (?<!\w)(?:system|assistant)\s*:\s*(?:you|the\s+(?:judge|grader|score|grade|verdict))\b""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?\s*|\n+")


def without_instructions(text: str) -> Fenced:
    """Remove sentences addressed to the grader."""
    if not _ADDRESSED_TO_GRADER.search(text):
        return Fenced(text, ())
    sentences: list[str] = []
    removed: list[str] = []
    for sentence in _SENTENCE.findall(text):
        if _ADDRESSED_TO_GRADER.search(sentence):
            removed.append(sentence.strip())
            sentences.append("[removed: a sentence addressed to the grader] ")
        else:
            sentences.append(sentence)
    return Fenced("".join(sentences).strip(), tuple(removed))


_PROMPTS = resources.files("itbench_evaluations") / "prompts"
_SYSTEM = (_PROMPTS / "reasoning.md").read_text(encoding="utf-8").strip()
_MATCHING_SYSTEM = (_PROMPTS / "matching.md").read_text(encoding="utf-8").strip()

# Explanations that fit no incident: the wrong control is one of them.
_DECOYS = (
    "The TLS certificate of the mail relay expired at midnight, so outgoing messages queued up.",
    "A cron schedule was written in local time and the nightly report ran twice after the clock change.",
    "The backup job filled the archive volume of the reporting warehouse and its export stopped.",
    "A stale LDAP group removed the printing permission of the accounting office.",
    "The mobile client cached an old translation bundle and showed buttons in the wrong language.",
)


def _shuffled(ids: Sequence[str], seed: str) -> list[str]:
    order = list(ids)
    random.Random(seed).shuffle(order)
    return order


def _fence(payload: object) -> str:
    """The payload as JSON between lines that contain its hash, which the payload cannot contain itself."""
    text = json.dumps(payload, ensure_ascii=False, indent=1)
    name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"----- data {name} -----\n{text}\n----- end of data {name} -----"


def _decoy(statements: Sequence[str], seed: str) -> str:
    ranked = sorted(_DECOYS, key=lambda decoy: max((lexical.coverage(s, decoy) for s in statements), default=0.0))
    harmless = [d for d in ranked if lexical.score(statements, d) == 0.0] or ranked[:1]
    return random.Random(seed).choice(harmless)


def _restated(statements: Sequence[str]) -> str:
    return "What was wrong: " + "; ".join(statement.rstrip(". ") for statement in statements[:3]) + "."


def reasoning_question(
    truth: GroundTruth, items: Sequence[ReasoningItem]
) -> tuple[Question, dict[str, str], list[str]]:
    """The question, the component of each item's id, and the sentences removed from the submission."""
    seed = hashlib.sha256(repr([(i.component, i.statements, i.explanation) for i in items]).encode()).hexdigest()
    numbered = [f"item-{number}" for number in range(1, len(items) + 3)]
    right_id, wrong_id, *item_ids = _shuffled(numbered, seed)
    anchor = items[0]
    payload: dict[str, dict[str, Any]] = {}
    removed: list[str] = []
    for item_id, item in zip(item_ids, items, strict=True):
        fenced = without_instructions(item.explanation[:MAX_EXPLANATION])
        removed.extend(fenced.removed)
        payload[item_id] = _entry(item, fenced.text)
    payload[right_id] = _entry(anchor, _restated(anchor.statements))
    payload[wrong_id] = _entry(anchor, _decoy(anchor.statements, seed))
    data = [{"id": item_id, **payload[item_id]} for item_id in numbered]
    user = (
        f"Grade these {len(data)} items.\n\n{_fence(data)}\n\nReply with the JSON object of verdicts and nothing else."
    )
    question = Question(
        system=_SYSTEM,
        user=user,
        schema=_verdict_schema(numbered),
        ids=tuple(item_ids),
        controls={right_id: 1.0, wrong_id: 0.0},
    )
    return question, dict(zip(item_ids, (item.component for item in items), strict=True)), removed


def _entry(item: ReasoningItem, explanation: str) -> dict[str, Any]:
    return {"about": item.role, "key": list(item.statements[:6]), "explanation": explanation}


def matching_question(truth: GroundTruth, names: Sequence[str]) -> tuple[Question, dict[str, str]]:
    """The question which groups the names denote, and the name of each id."""
    ids = {f"name-{number}": name for number, name in enumerate(names, start=1)}
    groups = [
        {"id": g.id, "kind": g.kind, "namespace": g.namespace, "name": g.name, "filters": list(g.filters)}
        for g in truth.groups
    ]
    data = {"groups": groups, "names": [{"id": key, "name": name[:300]} for key, name in ids.items()]}
    user = f"Which groups do these names denote?\n\n{_fence(data)}\n\nReply with the JSON object of matches only."
    choices = frozenset(group.id for group in truth.groups)
    return Question(_MATCHING_SYSTEM, user, _matching_schema(list(ids), sorted(choices)), tuple(ids), {}, choices), ids


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _verdict_schema(ids: Sequence[str]) -> dict[str, Any]:
    verdict = _object(
        {
            "id": {"type": "string", "enum": sorted(ids)},
            "quote": {"type": "string"},
            "why": {"type": "string"},
            "score": {"type": "number", "enum": list(SCALE)},
        }
    )
    return _object({"verdicts": {"type": "array", "items": verdict}})


def _matching_schema(ids: Sequence[str], groups: Sequence[str]) -> dict[str, Any]:
    match = _object({"id": {"type": "string", "enum": list(ids)}, "group": {"enum": [*groups, None]}})
    return _object({"matches": {"type": "array", "items": match}})


def _listed(content: str, key: str) -> list[Mapping[str, Any]]:
    # Some models write their reasoning first, which may contain braces.
    content = re.sub(r"<think>.*?</think>", "", content, flags=re.DOTALL)
    try:
        value, _ = loose_json.loads(content)
    except UnreadableSubmission as problem:
        raise BadReply(f"the reply is not JSON ({problem})") from problem
    if isinstance(value, Mapping):
        value = value.get(key)
    if not isinstance(value, list):
        raise BadReply(f"the reply has no list named {key!r}")
    return [item for item in value if isinstance(item, Mapping)]


def read_verdicts(question: Question, content: str) -> dict[str, float]:
    """Scores by item id; raises unless every item has a valid score and both controls are scored correctly."""
    scores: dict[str, float] = {}
    for item in _listed(content, "verdicts"):
        item_id, score = str(item.get("id")), item.get("score")
        if isinstance(score, str) and re.fullmatch(r"\s*\d(\.\d+)?\s*", score):
            score = float(score)
        if isinstance(score, bool) or not isinstance(score, int | float) or float(score) not in SCALE:
            raise BadReply(f"the score of {item_id} is not 0, 0.5 or 1")
        if scores.get(item_id, score) != score:
            raise BadReply(f"{item_id} has two different verdicts")
        scores[item_id] = float(score)
    missing = [each for each in (*question.ids, *question.controls) if each not in scores]
    if missing:
        raise BadReply(f"no verdict for {', '.join(sorted(missing))}")
    for control, expected in question.controls.items():
        if abs(scores[control] - expected) > 0.5 or (expected == 0.0 and scores[control] > 0.0):
            kind = "right" if expected else "wrong"
            raise FailedControl(f"the judge scored an explanation known to be {kind} with {scores[control]:g}")
    return {item_id: scores[item_id] for item_id in question.ids}


def read_matches(question: Question, content: str) -> dict[str, str | None]:
    """Group ids by name id; an unknown group is no match."""
    choices = question.choices or frozenset()
    groups = {str(item.get("id")): item.get("group") for item in _listed(content, "matches")}
    return {each: str(groups[each]) if groups.get(each) in choices else None for each in question.ids}
