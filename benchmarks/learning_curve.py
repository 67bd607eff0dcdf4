"""Whether the environment teaches: a softmax policy over runbooks, trained on some seeds, evaluated on held-out ones.

    python -m benchmarks.learning_curve                  # as in docs/training.md, some minutes on two cores
    python -m benchmarks.learning_curve --worlds 1 1     # a small one
    python -m benchmarks.learning_curve --table FILE     # keeps what was played, and goes on there

A policy sees words of what an agent can read when it starts, and chooses one runbook: an answer to each question, and
commands. Nothing of the key and no name of a problem reaches it. With a stopped clock seed and actions decide the
outcome, so each pair of world and runbook is played once, all runbooks of a world in forks of it; then a policy can be
trained many times. The reward is the mean of the scores of detection, localization and mitigation.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from srearena.conductor.worlds import EpisodeProcess
from srearena.frameworks.incidents import Incident, IncidentPool, framework_spec
from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes, Obj

FAMILIES = (
    "noop_social_network",
    "scale_pod_zero_social_net",
    "assign_to_non_existent_node",
    "k8s_target_port-misconfig",
    "wrong_service_selector_social_network",
)
HELD_OUT = ("readiness_probe_misconfiguration_social_network",)
"""Families that no policy is trained on."""
NAMESPACE = "social-network"
BATCHES = (0, 6, 24, 96, 384, 1536)
"""Groups of rollouts after which a policy is evaluated."""
GROUP = 4
"""Different runbooks tried in one world, from whose mean reward each one's advantage is measured."""
EXPLORED = 0.3
"""The share of choices in training that is uniform. Chosen, as `RATE`, by the reward on training seeds alone."""
RATE, REPEATS, RESAMPLES = 4.0, 40, 2000
_WORD = re.compile(r"[A-Za-z][A-Za-z/]+")

Answers = tuple[str, list[str]]
"""Whether something is wrong, and the names at fault."""


@dataclass(frozen=True, slots=True)
class System:
    """What a runbook works on: deployments and services of the application, read with the agent's access."""

    api: Kubernetes
    deployments: list[Obj]
    services: list[Obj]

    @classmethod
    def read(cls, api: Kubernetes) -> System:
        return cls(api, api.list("deployments", NAMESPACE), api.list("services", NAMESPACE))

    def broken(self) -> list[Obj]:
        """Deployments without a ready pod."""
        return [one for one in self.deployments if not one["status"].get("readyReplicas")]

    def patch(self, resource: str, name: str, patch: Obj) -> None:
        self.api.patch(resource, name, patch, NAMESPACE)


def name_of(obj: Obj) -> str:
    return str(obj["metadata"]["name"])


def edited(obj: Obj) -> bool:
    """Whether an object was changed after it was made."""
    creation = obj["metadata"]["creationTimestamp"]
    return any(str(entry.get("time", "")) > creation for entry in obj["metadata"].get("managedFields") or ())


def leave_alone(system: System) -> Answers:
    return "No", []


def scale_up(system: System) -> Answers:
    """Give deployments without replicas one."""
    found = [name_of(one) for one in system.deployments if not one["spec"].get("replicas")]
    for name in found:
        system.api.scale("deployments", name, 1, NAMESPACE)
    return "Yes", found


def restart(system: System) -> Answers:
    found = [name_of(one) for one in system.broken()]
    for name in found:
        system.api.restart("deployments", name, NAMESPACE)
    return "Yes", found


def lift_placement(system: System) -> Answers:
    """Remove node selectors from deployments without ready pods."""
    found = [one for one in system.broken() if one["spec"]["template"]["spec"].get("nodeSelector")]
    for one in found:
        system.patch("deployments", name_of(one), {"spec": {"template": {"spec": {"nodeSelector": None}}}})
    return "Yes", [name_of(one) for one in found]


def remove_probes(system: System) -> Answers:
    """Remove readiness probes from deployments without ready pods."""
    found = system.broken()
    for one in found:
        names = [container["name"] for container in one["spec"]["template"]["spec"]["containers"]]
        containers = [{"name": name, "readinessProbe": None} for name in names]
        system.patch("deployments", name_of(one), {"spec": {"template": {"spec": {"containers": containers}}}})
    return "Yes", [name_of(one) for one in found]


def mend_ports(system: System) -> Answers:
    """Let edited services lead to the ports that the containers of the deployment of the same name declare."""
    declared = {
        name_of(one): [
            port["containerPort"]
            for container in one["spec"]["template"]["spec"]["containers"]
            for port in container.get("ports") or ()
        ]
        for one in system.deployments
    }
    found = []
    for service in system.services:
        name, ports = name_of(service), service["spec"]["ports"]
        known = declared.get(name)
        if edited(service) and known and len(ports) == 1 and ports[0].get("targetPort") not in known:
            system.patch("services", name, {"spec": {"ports": [{**ports[0], "targetPort": known[0]}]}})
            found.append(name)
    return "Yes", found


def mend_selectors(system: System) -> Answers:
    """Let services select the pods of the deployment of the same name."""
    labels = {name_of(one): one["spec"]["template"]["metadata"]["labels"] for one in system.deployments}
    found = []
    for service in system.services:
        name, selector = name_of(service), service["spec"].get("selector") or {}
        wrong = {key: None for key, value in selector.items() if labels.get(name, selector).get(key) != value}
        if wrong:
            system.patch("services", name, {"spec": {"selector": wrong}})
            found.append(name)
    return "Yes", found


RUNBOOKS: tuple[Callable[[System], Answers], ...] = (
    leave_alone,
    scale_up,
    restart,
    lift_placement,
    remove_probes,
    mend_ports,
    mend_selectors,
)


@dataclass(frozen=True, slots=True)
class World:
    problem: str
    seed: int

    def __str__(self) -> str:
        return f"{self.problem}#{self.seed}"


def observe(episode: EpisodeProcess) -> list[str]:
    """The words of what an agent reads first: alerts, pods, endpoints and warnings."""
    texts = [
        episode.act(action).state
        for action in (
            "get_alerts()",
            f'kubectl("get deployments,pods -n {NAMESPACE} --no-headers")',
            f'kubectl("get endpoints -n {NAMESPACE} --no-headers")',
            f'kubectl("get events -n {NAMESPACE} --field-selector type=Warning --no-headers")',
        )
    ]
    return sorted({word.lower() for text in texts for word in _WORD.findall(text)})


def play(incident: Incident, runbook: Callable[[System], Answers]) -> float:
    """The reward of a runbook in a copy of a world."""
    with Kubernetes(Path(incident.episode.connect()["kubeconfig"])) as api:
        try:
            detection, names = runbook(System.read(api))
        except ServiceError:
            detection, names = "Yes", []
    incident.episode.act("wait(60)")
    incident.episode.submit(detection)
    incident.episode.submit(names)
    incident.episode.submit(None)
    return incident.grade("dense").reward


def explore(pool: IncidentPool, world: World) -> dict[str, Any]:
    """What is seen in a world, and the reward of every runbook."""
    copies = pool.group(world.problem, world.seed, len(RUNBOOKS) + 1)
    try:
        words = observe(copies[-1].episode)
        return {"words": words, "rewards": [play(*pair) for pair in zip(copies, RUNBOOKS, strict=False)]}
    finally:
        for copy in copies:
            copy.close()


def table_of(worlds: Sequence[World], file: Path | None) -> dict[World, dict[str, Any]]:
    """Explore all worlds, two at a time; what the file has is not played again."""
    stored: dict[str, Any] = json.loads(file.read_text()) if file is not None and file.exists() else {}
    missing = [world for world in worlds if str(world) not in stored]
    with IncidentPool(framework_spec(max_steps=60), templates=1) as first, IncidentPool(first.spec, 1) as second:

        def work(pool: IncidentPool, mine: Sequence[World]) -> None:
            for world in mine:
                stored[str(world)] = explore(pool, world)
                if file is not None:
                    file.write_text(json.dumps(stored))

        with ThreadPoolExecutor(2) as executor:
            halves = [executor.submit(work, first, missing[::2]), executor.submit(work, second, missing[1::2])]
            for half in halves:
                half.result()
    return {world: stored[str(world)] for world in worlds}


def vocabulary_of(seen: Sequence[Sequence[str]]) -> list[str]:
    """Words of at least two worlds: those of one alone are mostly names of pods."""
    counts = Counter(word for words in seen for word in words)
    return sorted(word for word, count in counts.items() if 1 < count < len(seen))


class Policy:
    """Softmax over runbooks, linear in the words of several training worlds that are not in all."""

    def __init__(self, seen: Sequence[Sequence[str]]) -> None:
        """`seen` has the words of the training worlds."""
        self._vocabulary = vocabulary_of(seen)
        self._mean = np.mean([self._present(words) for words in seen], axis=0)
        self._weights = np.zeros((len(RUNBOOKS), len(self._vocabulary) + 1))

    def _present(self, words: Sequence[str]) -> np.ndarray:
        return np.array([float(word in words) for word in self._vocabulary])

    def features(self, words: Sequence[str]) -> np.ndarray:
        """How a world differs from the mean of the training worlds, at length 1, and a constant."""
        difference = self._present(words) - self._mean
        length = float(np.linalg.norm(difference))
        return np.append(difference / length if length else difference, 1.0)

    def chances(self, features: np.ndarray) -> np.ndarray:
        scores = self._weights @ features
        weights = np.exp(scores - scores.max())
        return np.asarray(weights / weights.sum())

    def learn(self, features: np.ndarray, rewards: Sequence[float], random: np.random.Generator) -> None:
        """One group of rollouts from one world: each is as good as it is better than the mean of the group."""
        chances = self.chances(features)
        explored = (1 - EXPLORED) * chances + EXPLORED / len(RUNBOOKS)
        chosen = random.choice(len(RUNBOOKS), size=GROUP, p=explored)
        weights = chances[chosen] / explored[chosen]  # what is explored would be chosen less often by the policy itself
        earned = np.array(rewards)[chosen]
        advantages = weights * (earned - (weights * earned).sum() / weights.sum())
        for one, advantage in zip(chosen, advantages, strict=True):
            gradient = -chances
            gradient[one] += 1.0
            self._weights += RATE * advantage * np.outer(gradient, features)


def curve(train: Sequence[World], tests: Mapping[str, Sequence[World]], table: Mapping[World, Any]) -> dict[str, Any]:
    """The expected reward of each world after each number of groups: of `REPEATS` trainings, by name of the test."""
    known = [table[world]["words"] for world in train]
    found: dict[str, list[np.ndarray]] = {name: [] for name in tests}
    for repeat in range(REPEATS):
        random, policy, done = np.random.default_rng(repeat), Policy(known), 0
        seen = {world: policy.features(table[world]["words"]) for world in table}
        rows: dict[str, list[list[float]]] = {name: [] for name in tests}
        for groups in BATCHES:
            while done < groups:
                world = train[random.integers(len(train))]
                policy.learn(seen[world], table[world]["rewards"], random)
                done += 1
            for name, worlds in tests.items():
                rows[name].append([float(policy.chances(seen[one]) @ table[one]["rewards"]) for one in worlds])
        for name in tests:
            found[name].append(np.array(rows[name]))
    return {name: np.array(values) for name, values in found.items()}


def interval(values: np.ndarray) -> tuple[float, float, float]:
    """Mean and 95 % interval, by drawing trainings and worlds anew."""
    random, (repeats, worlds) = np.random.default_rng(0), values.shape
    draws = [
        values[random.integers(repeats, size=repeats)][:, random.integers(worlds, size=worlds)].mean()
        for _ in range(RESAMPLES)
    ]
    low, high = np.percentile(draws, [2.5, 97.5])
    return float(values.mean()), float(low), float(high)


def report(train: Sequence[World], tests: Mapping[str, Sequence[World]], table: Mapping[World, Any]) -> Iterator[str]:
    curves = curve(train, tests, table)
    yield f"| rollouts | {' | '.join(tests)} |"
    yield "| --- |" + " --- |" * len(tests)
    for number, groups in enumerate(BATCHES):
        cells = ["{:.2f} ({:.2f} to {:.2f})".format(*interval(curves[name][:, number, :])) for name in tests]
        yield f"| {groups * GROUP} | {' | '.join(cells)} |"
    constant = int(np.argmax(np.mean([table[world]["rewards"] for world in train], axis=0)))
    for label, choose in (
        (f"always `{RUNBOOKS[constant].__name__}`", lambda rewards: rewards[constant]),
        ("best runbook", max),
    ):
        cells = [f"{np.mean([choose(table[world]['rewards']) for world in worlds]):.2f}" for worlds in tests.values()]
        yield f"| {label} | {' | '.join(cells)} |"
    yield ""
    yield "| family | best runbook | learned |"
    yield "| --- | --- | --- |"
    for problem in (*FAMILIES, *HELD_OUT):
        for name, worlds in tests.items():
            mine = [number for number, world in enumerate(worlds) if world.problem == problem]
            if mine and name != "training seeds":
                best = np.mean([max(table[worlds[number]]["rewards"]) for number in mine])
                yield f"| `{problem}` | {best:.2f} | {curves[name][:, -1, mine].mean():.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, nargs=2, default=(2, 1), help="seeds per family to train on, and to test")
    parser.add_argument("--table", type=Path, help="file for what was played")
    arguments = parser.parse_args()
    seeds, others = arguments.worlds
    train = [World(problem, seed) for problem in FAMILIES for seed in range(seeds)]
    fresh = range(seeds, seeds + others)
    tests = {
        "training seeds": train,
        "held-out seeds": [World(problem, seed) for problem in FAMILIES for seed in fresh],
        "held-out families": [World(problem, seed) for problem in HELD_OUT for seed in range(seeds)],
    }
    table = table_of([world for worlds in tests.values() for world in worlds], arguments.table)
    print(f"{len(table)} worlds, {len(table) * len(RUNBOOKS)} graded episodes, {REPEATS} trainings")
    print("\n".join(report(train, tests, table)))


if __name__ == "__main__":
    main()
