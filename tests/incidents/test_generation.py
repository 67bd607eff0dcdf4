"""Generated incidents: which candidates are drawn, what is proven of them, and that a run can be resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from srearena.cli import cli
from srearena.conductor.errors import ArenaError
from srearena.conductor.generation import generator
from srearena.conductor.generation.difficulty import difficulty
from srearena.conductor.generation.generator import Generation
from srearena.conductor.generation.healthy_world import HealthyWorld
from srearena.conductor.generation.space import SpaceSpec, World, candidates, signature, templates, worlds
from srearena.conductor.problems.incidents.document import FaultPart, Incident, read_incident
from srearena.conductor.problems.registry import problem_of
from tests.arena.episodes import PORT, SHOP, ZERO


def drawn(spec: SpaceSpec, number_of_worlds: int) -> list[Incident]:
    known: set[str] = set()
    return [one for world in islice(worlds(spec), number_of_worlds) for one in candidates(spec, world, known)]


def test_the_same_seed_draws_the_same_and_no_two_are_the_same() -> None:
    spec = SpaceSpec(seed=5, faults=(1, 3))
    incidents = drawn(spec, 60)
    assert [one.id for one in incidents] == [one.id for one in drawn(spec, 60)]
    assert len({signature(one) for one in incidents}) == len(incidents) > 400
    assert {len([part for part in one.faults if not part.is_gone]) for one in incidents} == {1, 2, 3}
    assert any(part.pause for one in incidents for part in one.faults)
    assert any(part.is_gone for one in incidents for part in one.faults)
    assert len({json.dumps(one.load) for one in incidents}) > 3
    assert {one.id for one in drawn(SpaceSpec(seed=6, faults=(1, 3)), 60)}.isdisjoint(one.id for one in incidents)


def test_every_candidate_is_a_problem() -> None:
    for incident in drawn(SpaceSpec(seed=7, faults=(1, 3)), 12):
        problem = problem_of(incident)
        assert problem.remedy and problem.origins and "{" not in problem.explanation
        targets = [root.name for root in problem.roots if root.kind == "Deployment"]
        assert len(set(targets)) == len(targets)


def test_there_are_enough_faults_on_each_application() -> None:
    families = {(template.application, template.family) for template in templates()}
    for application in ("hotel_reservation", "social_network", "astronomy_shop", "online_boutique"):
        assert sum(1 for name, _ in families if name == application) >= 20


def test_level_and_application_are_those_asked_for() -> None:
    spec = SpaceSpec(seed=1, applications=("social_network",), level="network")
    assert {problem_of(one).level for one in drawn(spec, 2)} == {"network"}
    with pytest.raises(ArenaError, match="no fault can be generated on nowhere"):
        next(worlds(SpaceSpec(applications=("nowhere",))))
    with pytest.raises(ArenaError, match="no fault of level metastable"):
        drawn(SpaceSpec(level="metastable"), 1)


def test_without_the_key_a_held_out_set_is_neither_made_nor_known() -> None:
    public, secret = SpaceSpec(seed=5), SpaceSpec(seed=5, key=b"a secret of the user")
    ours, theirs = ({one.id for one in drawn(spec, 10)} for spec in (public, secret))
    assert ours.isdisjoint(theirs)
    assert "a secret" not in json.dumps(secret.as_document())
    assert secret.as_document()["key"] != SpaceSpec(seed=5, key=b"another one").as_document()["key"]


def test_difficulty_grows_with_what_must_be_found() -> None:
    simple = {"hops": 1, "alerts": 3, "changes": 9, "signals": 1, "steps": 1, "faults": 1}
    assert difficulty(simple) == "easy"
    assert difficulty({**simple, "hops": 3, "signals": 2}) == "medium"
    assert difficulty({**simple, "hops": 3, "signals": 3, "faults": 2}) == "hard"


WORLD = World(0, SHOP, 4, False, {})
SOLVABLE = Incident(SHOP, (FaultPart(PORT, {"port": 8999}),), WORLD.seed, False)
TWO = Incident(SHOP, (FaultPart(PORT), FaultPart(ZERO, after=20.0)), WORLD.seed, False)
INVISIBLE = Incident(SHOP, (FaultPart(ZERO, {"service": "nowhere"}),), WORLD.seed, False)
RETURNS = Incident(SHOP, (FaultPart(PORT, lasts=20.0, pause=20.0),), WORLD.seed, False)


@pytest.fixture(scope="module")
def proofs() -> dict[str, dict[str, Any]]:
    with HealthyWorld(WORLD) as world:
        assert not world.complaints
        return {one.id: world.prove(one) for one in (SOLVABLE, TWO, INVISIBLE, RETURNS)}


def test_a_valid_candidate_is_proven_and_measured(proofs: dict[str, dict[str, Any]]) -> None:
    proof = proofs[SOLVABLE.id]
    assert proof["valid"], proof["reasons"]
    assert {"the fault has symptoms", "the remedy repairs", "doing nothing does not help"} <= proof["checks"].keys()
    assert "no agent without a diagnosis wins" in proof["checks"]
    assert proof["incident"]["features"]["faults"] == 1 and proof["incident"]["difficulty"] == "easy"
    assert proofs[RETURNS.id]["valid"], proofs[RETURNS.id]["reasons"]


def test_of_two_faults_each_must_be_repaired(proofs: dict[str, dict[str, Any]]) -> None:
    proof = proofs[TWO.id]
    assert proof["valid"], proof["reasons"]
    assert proof["checks"]["each of its faults must be repaired"]
    assert proof["incident"]["features"]["faults"] == 2


def test_a_candidate_that_cannot_be_is_discarded_with_its_reason(proofs: dict[str, dict[str, Any]]) -> None:
    proof = proofs[INVISIBLE.id]
    assert not proof["valid"] and "nowhere" in proof["reasons"][0]


@pytest.fixture
def instant(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Proofs that are made up: every third candidate is valid. Returns the ids in the order of their proofs."""
    order: list[str] = []

    class Worlds:
        def __init__(self, world: World) -> None:
            pass

        def __enter__(self) -> Worlds:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def prove(self, incident: Incident) -> dict[str, Any]:
            order.append(incident.id)
            valid = int(incident.id[-1], 16) % 3 == 0
            checks = {"the fault has symptoms": valid}
            document = {**incident.as_document(), "difficulty": "easy"}
            return {"id": incident.id, "valid": valid, "checks": checks, "reasons": ["none"], "seconds": 1.0} | {
                "incident": document
            }

    def serially(work: Any, items: Any, parallel: int) -> Iterator[Any]:
        yield from map(work, items)

    monkeypatch.setattr(generator, "HealthyWorld", Worlds)
    monkeypatch.setattr(generator, "in_processes", serially)
    monkeypatch.setattr(generator, "with_signals", lambda work, item: work(item))
    return order


def test_the_same_command_resumes_and_proves_nothing_twice(tmp_path: Path, instant: list[str]) -> None:
    spec = SpaceSpec(seed=2)

    def stop_after_ten(proof: dict[str, Any]) -> None:
        if len(instant) >= 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Generation(spec, 20, tmp_path).perform(stop_after_ten)
    with (tmp_path / "proofs.jsonl").open("a") as file:
        file.write('{"id": "incident-half')
    chosen = Generation(spec, 20, tmp_path).perform()
    assert len(chosen) == 20 and len(set(instant)) == len(instant)
    files = sorted((tmp_path / "incidents").glob("*.yaml"))
    assert {read_incident(path).id for path in files} == {one.id for one in chosen} == {path.stem for path in files}
    more = Generation(spec, 30, tmp_path)
    assert [one.id for one in more.perform()][:20] == [one.id for one in chosen]
    assert more.figures()["duplicates"] == 0 and len(set(instant)) == len(instant)
    with pytest.raises(ArenaError, match="of another command"):
        Generation(SpaceSpec(seed=3), 1, tmp_path).perform()


def test_a_held_out_set_has_none_of_the_public_one(tmp_path: Path, instant: list[str]) -> None:
    public = Generation(SpaceSpec(seed=2), 15, tmp_path / "public").perform()
    directory = tmp_path / "public" / "incidents"
    held_out = Generation(SpaceSpec(seed=2, key=b"k" * 20), 15, tmp_path / "secret", excluded=(directory,)).perform()
    assert {signature(one) for one in public}.isdisjoint(signature(one) for one in held_out)


def test_a_search_without_success_ends(tmp_path: Path, instant: list[str]) -> None:
    with pytest.raises(ArenaError, match="candidates are valid hard incidents"):
        Generation(SpaceSpec(seed=2), 1, tmp_path, "hard").perform()


def test_the_command_says_what_it_does_and_refuses_nonsense(tmp_path: Path, instant: list[str]) -> None:
    run = CliRunner()
    out = str(tmp_path / "out")
    result = run.invoke(cli, ["generate", "--count", "3", "--out", out])
    assert result.exit_code == 0, result.output
    assert "[3/3]" in result.output and "discarded: the fault has symptoms" in result.output
    result = run.invoke(cli, ["generate", "--count", "3", "--out", out, "--json"])
    figures = json.loads(result.output.splitlines()[-1])
    assert len(figures["incidents"]) == 3 and figures["duplicates"] == 0
    for faults in ("0", "4", "3..1", "x"):
        refusal = run.invoke(cli, ["generate", "--faults", faults, "--out", out])
        assert isinstance(refusal.exception, ArenaError) and "--faults takes" in str(refusal.exception)
    key = tmp_path / "key"
    key.write_text("short")
    refusal = run.invoke(cli, ["generate", "--key", str(key), "--out", out])
    assert isinstance(refusal.exception, ArenaError) and "a secret has at least" in str(refusal.exception)
