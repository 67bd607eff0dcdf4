"""`Generation`: proves candidates in processes until enough are valid, and writes each of these to a file.

    OUT/generation.json                what was asked for, so that the same command resumes
    OUT/proofs.jsonl                   every candidate with its proof: the discarded ones with their reasons
    OUT/incidents/incident-....yaml    the valid ones

A candidate is proven once: a run that was interrupted continues after the last proof. Which incidents are chosen
depends on the order in which candidates are drawn and never on which process was faster.
"""

from __future__ import annotations

import fcntl
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

from srearena.conductor.errors import ArenaError
from srearena.conductor.generation.healthy_world import HealthyWorld
from srearena.conductor.generation.space import PER_WORLD, SpaceSpec, World, candidates, signature, worlds
from srearena.conductor.problems.incidents.document import Incident, parse_incident, read_incident
from srearena.conductor.trials.processes import in_processes, with_signals

INCIDENTS = "incidents"
_GENERATION, _PROOFS = "generation.json", "proofs.jsonl"
_EXPECTED = 0.8
"""The expected share of valid candidates: how many worlds are planned at once."""
_LEAST = 0.02
"""The share of suitable candidates below which the search is given up, after `_PATIENCE` of them."""
_PATIENCE = 200

Proof = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Task:
    """The candidates of one world that are not proven yet."""

    world: World
    incidents: tuple[Incident, ...]
    proofs: Path


@dataclass(slots=True)
class Generation:
    spec: SpaceSpec
    count: int
    out: Path
    difficulty: str = ""
    parallel: int = 2
    excluded: Sequence[Path] = ()
    """Directories of incidents of which none is made again: a public set beside a held-out one."""
    proven: dict[str, Proof] = field(default_factory=dict)
    """All proofs by the id of the candidate."""
    drawn: list[Incident] = field(default_factory=list)
    """The candidates in the order in which they were drawn."""

    def perform(self, watch: Callable[[Proof], None] = lambda proof: None) -> list[Incident]:
        """Prove candidates until there are enough, and return the chosen ones. `watch` gets every new proof."""
        self._open()
        planned = self._planned()
        while len(self.chosen()) < self.count:
            self._require_progress()
            missing = self.count - len(self.chosen())
            tasks = [next(planned) for _ in range(ceil(missing / _EXPECTED / PER_WORLD))]
            waiting = [task for task in tasks if task.incidents]
            proofs = in_processes(partial(with_signals, _prove), waiting, self.parallel)
            with closing(proofs):
                for proof in (proof for found in proofs for proof in found):
                    self.proven[proof["id"]] = proof
                    watch(proof)
        chosen = self.chosen()[: self.count]
        for incident in chosen:
            incident.write(self.out / INCIDENTS / f"{incident.id}.yaml")
        return chosen

    def chosen(self) -> list[Incident]:
        """The valid candidates of the difficulty that was asked for, as they are written."""
        proofs = [self.proven[incident.id] for incident in self.drawn if incident.id in self.proven]
        valid = [parse_incident(proof["incident"]) for proof in proofs if proof["valid"]]
        return [incident for incident in valid if self.difficulty in ("", incident.difficulty)]

    def figures(self) -> dict[str, Any]:
        """Counts of all candidates that were proven, and why some were discarded."""
        proofs = [self.proven[incident.id] for incident in self.drawn if incident.id in self.proven]
        valid = [proof for proof in proofs if proof["valid"]]
        reasons = Counter(check for proof in proofs for check, holds in proof["checks"].items() if not holds)
        signatures = {signature(parse_incident(proof["incident"])) for proof in valid}
        return {
            "candidates": len(proofs),
            "valid": len(valid),
            "share": round(len(valid) / len(proofs), 3) if proofs else 0.0,
            "duplicates": len(valid) - len(signatures),
            "discarded": dict(reasons.most_common()),
            "difficulty": dict(Counter(proof["incident"]["difficulty"] for proof in valid)),
            "process_seconds": round(sum(proof["seconds"] for proof in proofs), 1),
        }

    def _planned(self) -> Iterator[_Task]:
        signatures = {signature(incident) for incident in self._excluded()}
        for world in worlds(self.spec):
            incidents = list(candidates(self.spec, world, signatures))
            self.drawn += incidents
            waiting = tuple(incident for incident in incidents if incident.id not in self.proven)
            yield _Task(world, waiting, self.out / _PROOFS)

    def _excluded(self) -> Iterator[Incident]:
        for directory in self.excluded:
            for path in sorted(directory.glob("*.yaml")):
                yield read_incident(path)

    def _require_progress(self) -> None:
        found, tried = len(self.chosen()), len(self.drawn)
        if tried >= _PATIENCE and found < tried * _LEAST:
            kind = f" {self.difficulty}" if self.difficulty else ""
            raise ArenaError(
                f"only {found} of {tried} candidates are valid{kind} incidents: {self.out / _PROOFS} says why"
            )

    def _open(self) -> None:
        """Create the directory, or resume in it."""
        (self.out / INCIDENTS).mkdir(parents=True, exist_ok=True)
        record, document = self.out / _GENERATION, {**self.spec.as_document(), "excluded": [*map(str, self.excluded)]}
        if record.exists():
            if json.loads(record.read_text()) != document:
                raise ArenaError(f"{self.out} holds incidents of another command: name another directory with --out")
        else:
            record.write_text(json.dumps(document, indent=1) + "\n")
        proofs = self.out / _PROOFS
        if proofs.exists():
            complete, newline, _ = proofs.read_bytes().rpartition(b"\n")
            proofs.write_bytes(complete + newline)  # without the last line of a process that was killed while writing
            self.proven = {proof["id"]: proof for proof in map(json.loads, complete.splitlines())}


def _prove(task: _Task) -> list[Proof]:
    """Prove the candidates of one world, in a process of its own; each proof is on disk as soon as it is made."""
    proofs: list[Proof] = []
    with HealthyWorld(task.world) as world:
        for incident in task.incidents:
            proofs.append(world.prove(incident))
            _store(task.proofs, proofs[-1])
    return proofs


def _store(path: Path, proof: Mapping[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps(proof) + "\n")
