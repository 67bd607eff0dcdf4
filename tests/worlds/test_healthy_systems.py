"""Problems on one healthy system: prepared once, forked for each, and the same as prepared from scratch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from srearena.conductor.episode.healthy import healthy_key
from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.errors import ArenaError
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.results.store import read_trials
from srearena.conductor.trials import worker as trial_worker
from srearena.conductor.trials.suite import Progress, Suite
from srearena.conductor.trials.trial import Trial
from srearena.conductor.trials.workers import Worker, Workers
from srearena.conductor.validity import worker as validity_worker
from srearena.conductor.worlds import EpisodeProcess, fork_is_safe, prepare, prepare_healthy
from srearena.config import Config
from tests.worlds.views import START, differences, views

pytestmark = pytest.mark.skipif(not fork_is_safe(), reason="episodes are forked on Linux only")

SPEC = EpisodeSpec(3, timeline=Timeline(before=60, after=60, deployment=120), speed=0, start=START, config=Config())
PROBLEMS = {
    "noop_astronomy_shop": "astronomy_shop_ad_service_failure",
    "noop_blueprint_hotel_reservation": "gc_capacity_degradation",
    "noop_fleetcast": "ingress_misroute",
    "noop_hotel_reservation": "wrong_service_selector_hotel_reservation",
    "noop_online_boutique": "missing_env_variable_online_boutique",
    "noop_social_network": "scale_pod_zero_social_net",
    "noop_train_ticket": "trainticket_f17_nested_sql_select_clause_error",
}


def on_application(healthy: str, spec: EpisodeSpec) -> Iterator[Problem]:
    """The problems that may begin with a healthy system: first the one of `PROBLEMS`."""
    registry = ProblemRegistry()
    key = healthy_key(registry.get_problem(healthy, spec.variant), spec)
    for name in (PROBLEMS[healthy], *registry.get_problem_ids()):
        problem = registry.get_problem(name, spec.variant)
        if name != healthy and healthy_key(problem, spec) == key:
            yield problem


def after_a_day_at_work(episode: EpisodeProcess) -> tuple[dict[str, str], dict[str, object]]:
    """What can be read of an episode after a minute and after its grading, and the verdicts."""
    episode.act("wait(60)")
    seen = views(episode)
    episode.submit("Yes")
    result = episode.grade()
    return seen, {key: result[key] for key in ("problem", "outcome", "scores", "collateral", "seed", "noise")}


@pytest.mark.daily_cases(1)
@pytest.mark.parametrize("noise", [False, True], ids=["quiet", "noise"])
@pytest.mark.parametrize("healthy", PROBLEMS)
def test_a_problem_on_a_shared_system_equals_one_from_scratch_to_the_byte(healthy: str, noise: bool) -> None:
    spec = replace(SPEC, noise=noise)
    with prepare_healthy(healthy, spec) as system:
        with system.begin(healthy, spec):  # another episode has begun with it before: that leaves no trace
            pass
        problem = next(one.id for one in on_application(healthy, spec) if system.serves(one))
        with system.begin(problem, spec) as shared, prepare(problem, spec) as scratch:
            assert shared.description == scratch.description
            assert shared.journal == scratch.journal
            assert differences(views(shared), views(scratch)) == []
            (seen, verdicts), (own_view, own_verdicts) = map(after_a_day_at_work, (shared, scratch))
    assert differences(seen, own_view) == []
    assert verdicts == own_verdicts


def test_noise_that_edits_what_a_problem_affects_leaves_it_a_system_of_its_own() -> None:
    spec, registry = replace(SPEC, noise=True), ProblemRegistry()
    with prepare_healthy("noop_social_network", spec) as system:
        problems = [registry.get_problem(name, spec.variant) for name in registry.get_problem_ids()]
        served = {one.id: system.serves(one) for one in problems if one.namespace == "social-network"}
        assert served["noop_social_network"]
        refused = next(name for name, serves in served.items() if not serves)
        with pytest.raises(ArenaError, match="noise of this system has edited"):
            system.begin(refused, spec)


def test_problems_share_a_system_unless_something_in_it_differs() -> None:
    registry = ProblemRegistry()
    names = [name for name in registry.get_problem_ids() if not name.startswith("corner_shop_")]

    def keys(spec: EpisodeSpec) -> dict[str, str]:
        problems = {name: registry.get_problem(name, spec.variant) for name in names}
        return {name: healthy_key(problem, spec) for name, problem in problems.items()}

    first = keys(SPEC)
    shared = Counter(first.values())
    assert first["noop_hotel_reservation"] == first["wrong_service_selector_hotel_reservation"]
    assert first["noop_hotel_reservation"] != first["noop_social_network"]
    assert sum(count for count in shared.values() if count > 1) > len(names) / 2
    changed: list[EpisodeSpec] = [
        replace(SPEC, seed=4),
        replace(SPEC, noise=True),
        replace(SPEC, start=START + 1),
        replace(SPEC, timeline=Timeline(before=61, after=60, deployment=120)),
        replace(SPEC, read_only=True),
    ]
    for spec in changed:
        assert not set(first.values()) & set(keys(spec).values())
    for name in names:
        problem = registry.get_problem(name)
        if type(problem).set_up is not Problem.set_up or problem.extra_namespaces:
            assert first[name] != first[f"noop_{problem.app.folder.name}"], name


def perform(folder: Path, *, warm: bool) -> tuple[dict[str, str], set[str]]:
    """The outcomes of two trials on one application, and what they reported on the way."""
    spec = replace(SPEC, speed=1, start=None, stages=("detection",))
    problems = ("wrong_service_selector_hotel_reservation", "noop_hotel_reservation")
    trials = [Trial(problem, "always-yes", str(folder), spec=spec) for problem in problems]
    states: set[str] = set()

    def watch(entry: Progress) -> None:
        states.add(entry.state)

    Suite(trials, folder, parallel=2, warm=warm).perform(watch)
    return {result["problem"]: result["outcome"] for result in read_trials(folder)}, states


def test_trials_of_a_run_begin_with_one_system_and_end_as_they_do_without(tmp_path: Path) -> None:
    outcomes, states = perform(tmp_path / "warm", warm=True)
    assert outcomes == {"wrong_service_selector_hotel_reservation": "pass", "noop_hotel_reservation": "fail"}
    assert not any("deploying" in state for state in states)  # by none of the trials
    assert any("injecting" in state for state in states)
    again, states = perform(tmp_path / "cold", warm=False)
    assert again == outcomes
    assert any("deploying" in state for state in states)


def ended(worker: Worker, line: str = "") -> tuple[int, str]:
    """Send a line to a worker, and return its exit status and standard error."""
    assert worker.stdin is not None and worker.stdout is not None and worker.stderr is not None
    with worker.stdout, worker.stderr:
        with suppress(BrokenPipeError), worker.stdin:
            worker.stdin.write(line)
        return worker.wait(), worker.stderr.read()


def test_a_worker_that_is_killed_says_so_and_leaves_the_others_alone() -> None:
    problem, spec = "noop_hotel_reservation", replace(SPEC, speed=1, start=None)
    with Workers(validity_worker.__name__, [(problem, spec)] * 2) as workers:
        killed, other = (workers.start(problem, spec) for _ in range(2))
        killed.kill()
        assert ended(killed) == (-9, "")
        status, errors = ended(other, "no document\n")
        assert status == 1
        assert "JSONDecodeError" in errors


def test_one_trial_or_none_that_can_be_shared_starts_a_process_of_its_own(tmp_path: Path) -> None:
    problem, spec = "noop_hotel_reservation", replace(SPEC, speed=1, start=None)
    unknown = [("no-such-problem", spec)] * 2  # which the worker itself reports
    with Workers(trial_worker.__name__, [(problem, spec), *unknown]) as workers:
        for name in (problem, "no-such-problem"):
            assert ended(workers.start(name, spec), "{}\n")[0] == 1
