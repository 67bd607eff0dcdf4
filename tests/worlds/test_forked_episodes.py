"""A forked episode is the episode itself: equal to the byte, and independent from the fork on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.errors import ArenaError, BadSubmission
from srearena.conductor.worlds import EpisodeProcess, fork_is_safe, prepare
from srearena.config import Config
from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes
from tests.kubectl.operator import KUBECTL
from tests.selection import all_problems
from tests.worlds.views import START, differences, views

pytestmark = pytest.mark.skipif(not fork_is_safe(), reason="episodes are forked on Linux only")

PROBLEM = "wrong_service_selector_hotel_reservation"
NAMESPACE = "hotel-reservation"
SPEC = EpisodeSpec(3, timeline=Timeline(before=60, after=60, deployment=120), start=START, config=Config())
OTHERS = [
    "astronomy_shop",
    "blueprint_hotel_reservation",
    "fleetcast",
    "online_boutique",
    "social_network",
    "train_ticket",
]


@pytest.fixture(scope="module")
def template() -> Iterator[EpisodeProcess]:
    with prepare(PROBLEM, SPEC) as prepared:
        yield prepared


@pytest.fixture
def episode(template: EpisodeProcess) -> Iterator[EpisodeProcess]:
    with template.fork()[0] as copy:
        yield copy


def kubernetes(episode: EpisodeProcess) -> Kubernetes:
    return Kubernetes(Path(episode.connect()["kubeconfig"]))


def live(episode: EpisodeProcess) -> dict[str, str]:
    """A minute of the world, with a change of the agent's in it, and what can be seen afterwards."""
    with kubernetes(episode) as api:
        api.scale("deployments", "search", 2, NAMESPACE)
    episode.act("wait(60)")
    return views(episode)


def test_a_forked_episode_equals_one_from_scratch_to_the_byte(template: EpisodeProcess) -> None:
    with prepare(PROBLEM, SPEC) as scratch, template.fork()[0] as forked:
        assert scratch.description == forked.description
        assert differences(views(scratch), views(forked)) == []
        assert differences(live(scratch), live(forked)) == []
        # A fork of what has lived since is equal too; it has other keys and addresses, and the same world.
        with forked.fork()[0] as branch:
            scratch.act("wait(30)")
            branch.act("wait(30)")
            seen = views(branch)
            assert differences(views(scratch), seen) == []
            assert len(seen["metrics"]) > 100_000 and len(seen["logs"]) > 10_000


if all_problems():

    @pytest.mark.parametrize("application", OTHERS)
    def test_a_forked_episode_of_every_application_equals_one_from_scratch(application: str) -> None:
        problem = f"noop_{application}"
        with prepare(problem, SPEC) as template, template.fork()[0] as forked, prepare(problem, SPEC) as scratch:
            for one in (forked, scratch):
                one.act("wait(60)")
            assert differences(views(scratch), views(forked)) == []


def test_copies_are_independent_and_another_seed_is_another_chance(episode: EpisodeProcess) -> None:
    same, also_same, other = *episode.fork(2), *episode.fork(1, seeds=[99])
    with same, also_same, other:
        before = views(same)
        assert differences(before, views(other)) == []  # chance is another one from here on, not before
        with kubernetes(same) as api:
            api.delete("deployments", "search", NAMESPACE)
        for one in (same, also_same, other):
            one.act("wait(60)")
        assert '"search"' not in views(same)["/apis/apps/v1/deployments"]
        assert '"search"' in views(also_same)["/apis/apps/v1/deployments"]
        assert "metrics" in differences(views(also_same), views(other))
    assert differences(before, views(episode)) == []  # the original stands where it stood


@pytest.mark.kubectl
@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
def test_credentials_of_one_copy_are_worth_nothing_in_another(episode: EpisodeProcess) -> None:
    with episode.fork()[0] as other:
        mine, theirs = episode.connect(), other.connect()
        for key in ("kubeconfig", "prometheus", "loki", "jaeger", "telemetry_token"):
            assert mine[key] != theirs[key]
        with httpx.Client(headers={"Authorization": f"Bearer {mine['telemetry_token']}"}, trust_env=False) as client:
            assert client.get(f"{mine['prometheus']}/api/v1/alerts").status_code == 200
            assert client.get(f"{theirs['prometheus']}/api/v1/alerts").status_code == 401
        # The agent's token, and the token of a pod that it can read, at the other's address and authority.
        command = f"exec -n {NAMESPACE} deploy/search -- cat /var/run/secrets/kubernetes.io/serviceaccount/token"
        in_pod = episode.act(f'kubectl("{command}")').state
        assert in_pod.startswith("ey")
        foreign = Path(theirs["kubeconfig"]).read_text()
        own_token = _token_of(Path(mine["kubeconfig"]).read_text())
        for token in (own_token, in_pod.strip()):
            forged = Path(mine["kubeconfig"]).with_name("forged")
            forged.write_text(foreign.replace(_token_of(foreign), token))
            with Kubernetes(forged) as api, pytest.raises(ServiceError, match="Unauthorized"):
                api.list("pods", NAMESPACE)
        # A pod's token is good where it was read, before and after the world became a copy.
        valid = Path(mine["kubeconfig"]).read_text().replace(own_token, in_pod.strip())
        forged.write_text(valid)
        with Kubernetes(forged) as api, pytest.raises(ServiceError, match="forbidden"):
            api.list("nodes")


def _token_of(kubeconfig: str) -> str:
    return kubeconfig.partition("token: ")[2].split()[0]


def test_addresses_of_the_original_stay_when_it_is_forked(episode: EpisodeProcess) -> None:
    before = episode.connect()
    for copy in episode.fork(2):
        copy.close()
    assert episode.connect() == before
    with kubernetes(episode) as api:
        assert api.list("pods", NAMESPACE)


def test_actions_over_minutes_end_at_the_clusters_present(episode: EpisodeProcess) -> None:
    # The world's present is START, long before the wall clock's.
    assert "no data" not in episode.act('get_metrics("up", minutes=5)').state
    assert "frontend" in episode.act('get_traces("frontend", minutes=5)').state


def test_an_episode_is_graded_in_its_copy_and_results_are_written(episode: EpisodeProcess, tmp_path: Path) -> None:
    question = episode.question
    assert "Stage 1 of 3" in question
    episode.act("get_alerts()")
    with episode.fork()[0] as branch:
        assert branch.status().steps == 1
        with pytest.raises(BadSubmission):
            branch.submit({"not": "an answer"})
        assert "Stage 2 of 3" in branch.submit("No").question
        branch.submit([])
        assert branch.submit(None).finished
        result = branch.grade(agent="branch", results=tmp_path)
    assert (result["outcome"], result["usage"]["steps"], result["seed"]) == ("fail", 1, 3)
    assert (tmp_path / "trials" / PROBLEM / "0" / "result.json").exists()
    session = (tmp_path / "trials" / PROBLEM / "0" / "session.jsonl").read_text()
    assert "get_alerts()" in session  # what happened before the fork belongs to the branch
    assert episode.question == question


def test_processes_files_and_sockets_end_with_their_episodes(template: EpisodeProcess) -> None:
    with ExitStack() as stack:
        copies = [stack.enter_context(copy) for copy in template.fork(3)]
        folders = [Path(copy.connect()["kubeconfig"]).parent for copy in copies]
        branch = stack.enter_context(copies[0].fork()[0])
        copies[0].close()
        assert branch.act("wait(1)").state == "1 seconds have passed"  # a copy outlives its original
        folders.append(Path(branch.connect()["kubeconfig"]).parent)
        assert all(folder.exists() for folder in folders[1:])
    template.fork()[0].close()  # whatever still ends, ends before the template answers again
    _eventually_gone(folders)
    with pytest.raises(ArenaError, match="closed"):
        branch.act("get_alerts()")


def _eventually_gone(folders: list[Path]) -> None:
    """A process that has lost its connection removes its files on its own: wait for its end, up to the test's limit."""
    while any(folder.exists() for folder in folders):
        os.sched_yield()


def test_errors_are_reported_and_leave_the_episode_usable(template: EpisodeProcess) -> None:
    with pytest.raises(ArenaError, match="as many seeds"):
        template.fork(2, seeds=[1])
    with pytest.raises(ArenaError, match="no problem"):
        prepare("no-such-problem", SPEC)
    assert template.question
