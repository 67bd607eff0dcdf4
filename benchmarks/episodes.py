"""What forked episodes cost: the first observation, memory, a branch, and complete scripted episodes per hour.

    python -m benchmarks.episodes               # the usual size
    python -m benchmarks.episodes --episodes 3  # a small one
    python -m benchmarks.episodes --soak 1000   # mixed episodes in one go: does anything grow?

Times are CPU times of all processes of the episode, so that other load on the machine does not count: what one core
would take if it had nothing else to do. Memory is the unique set size: pages that no other process shares.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.worlds import EpisodeProcess, prepare
from srearena.config import Config
from srearena.service.kubernetes import Kubernetes

PROBLEM = "scale_pod_zero_social_net"
NAMESPACE = "social-network"
SERVICE = "user-service"
SOAKED = (PROBLEM, "wrong_service_selector_hotel_reservation", "noop_astronomy_shop")
"""Problems of the soak, of three applications."""
KINDS = 4
_LISTEN = "0A"
"""The state of a listening socket in /proc/net/tcp."""
TICKS = os.sysconf("SC_CLK_TCK")


def processes() -> dict[int, tuple[int, float]]:
    """Parent and CPU seconds of every process of this machine, with those of children that have been waited for."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            found[int(entry.name)] = (int(fields[1]), sum(map(int, fields[11:15])) / TICKS)
    return found


def descendants() -> dict[int, float]:
    """CPU seconds of the processes that this one has started, directly or not."""
    every, family = processes(), {os.getpid()}
    while more := {pid for pid, (parent, _) in every.items() if parent in family} - family:
        family |= more
    return {pid: every[pid][1] for pid in family - {os.getpid()}}


def unique_set_size(pid: int) -> float:
    """Megabytes that only this process has."""
    return _megabytes(pid, "Private_")


def proportional_set_size(pid: int) -> float:
    """Megabytes of this process, of what it shares with others its share."""
    return _megabytes(pid, "Pss:")


def _megabytes(pid: int, field: str) -> float:
    rows = (Path("/proc") / str(pid) / "smaps_rollup").read_text().splitlines()
    return sum(int(row.split()[1]) for row in rows if row.startswith(field)) / 1024


def cpu_of(work: Callable[[], object]) -> float:
    """CPU seconds of all our processes during `work`; those that end meanwhile are counted by who waits for them."""
    before = sum(descendants().values()) + sum(os.times()[:2])
    work()
    return sum(descendants().values()) + sum(os.times()[:2]) - before


def wait_for_ends(count: int) -> None:
    """Wait until only so many processes are left: a closed episode ends on its own, and its end is not measured."""
    while sum(state != "Z" for state in map(state_of, descendants())) > count:
        os.sched_yield()


def state_of(pid: int) -> str:
    """R, S, Z (ended) and so on, as in proc(5)."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def repair(episode: EpisodeProcess) -> None:
    with Kubernetes(Path(episode.connect()["kubeconfig"])) as api:
        api.scale("deployments", SERVICE, 1, NAMESPACE)
    episode.act("wait(60)")


def answer(episode: EpisodeProcess) -> dict[str, object]:
    episode.submit("Yes")
    episode.submit([SERVICE])
    episode.submit(None)
    return episode.grade()


def scripted(episode: EpisodeProcess, kubectl: int) -> None:
    """Detect, localize, repair and grade, with so many kubectl processes on the way."""
    episode.act("get_alerts()")
    for _ in range(kubectl):
        episode.act(f'kubectl("get pods -n {NAMESPACE}")')
    repair(episode)
    result = answer(episode)
    if result["outcome"] != "pass":
        raise SystemExit(f"the scripted episode did not pass: {result['reason']}")


def measure(template: EpisodeProcess, episodes: int) -> None:
    first, memory, branches = [], [], []
    for _ in range(episodes):
        wait_for_ends(2)  # the template, and the process that waits for its copies
        known = set(descendants())
        copies: list[EpisodeProcess] = []

        def observe(copies: list[EpisodeProcess] = copies) -> None:
            copies.extend(template.fork())
            copies[0].act("get_alerts()")

        first.append(cpu_of(observe))
        with copies[0] as episode:
            for _ in range(9):
                episode.act("get_alerts()")
            memory += [unique_set_size(pid) for pid in descendants().keys() - known]

            def branch(episode: EpisodeProcess = episode) -> None:
                with episode.fork()[0] as copy:
                    copy.status()

            branches.append(cpu_of(branch))
    print(f"first observation of a forked episode: {1000 * statistics.median(first):.0f} ms of CPU time")
    print(f"memory of a further episode after ten steps: {statistics.median(memory):.0f} MB unique set size")
    print(f"branch at step ten: {1000 * statistics.median(branches):.0f} ms of CPU time")
    for kubectl, name in ((0, "in-process actions"), (10, "ten kubectl processes each")):

        def run(kubectl: int = kubectl) -> None:
            for _ in range(episodes):
                with template.fork()[0] as episode:
                    scripted(episode, kubectl)
            template.fork()[0].close()  # the template waits for the processes that have ended

        seconds = cpu_of(run) / episodes
        print(f"complete scripted episodes with {name}: {3600 / seconds:.0f} per hour and core, {seconds:.2f} s each")


def measure_concurrent(template: EpisodeProcess, count: int) -> None:
    """So many scripted episodes at the same time: whether all pass, and the memory of all processes together."""
    peak = 0.0
    began = monotonic()
    copies = template.fork(count)
    with ThreadPoolExecutor(count) as pool:
        running = [pool.submit(scripted, copy, 0) for copy in copies]
        while not all(one.done() for one in running):
            peak = max(peak, total_megabytes())
            wait(running, timeout=1.0)
        for one in running:
            one.result()
    seconds = monotonic() - began
    for copy in copies:
        copy.close()
    print(f"{count} concurrent episodes: all passed after {seconds:.0f} s, {seconds / count:.2f} s of wall time each")
    print(f"memory of all their processes at most: {peak / 1024:.1f} GB (proportional set size)")


def total_megabytes() -> float:
    total = 0.0
    for pid in descendants():
        with contextlib.suppress(OSError):  # it may have ended
            total += proportional_set_size(pid)
    return total


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a series of episodes could leave behind."""

    processes: int
    listening: int
    """Ports on which one of our processes accepts connections."""
    files: int
    """In the temporary folder."""
    descriptors: int
    """Of this process and of the templates'."""
    megabytes: float
    """The largest unique set size of a process that stays."""

    @classmethod
    def measure(cls, folder: Path) -> Footprint:
        ours = [pid for pid in descendants() if state_of(pid) != "Z"]
        opened = [link for pid in (os.getpid(), *ours) for link in descriptors_of(pid)]
        sockets = listening_sockets()
        return cls(
            processes=len(ours),
            listening=len({link for link in opened if link in sockets}),
            files=sum(1 for _ in folder.rglob("*")),
            descriptors=len(opened),
            megabytes=max(unique_set_size(pid) for pid in ours),
        )

    def growth(self, before: Footprint) -> list[str]:
        """In what this is larger than an earlier one; memory may differ by what an allocator keeps."""
        grown = []
        for name in ("processes", "listening", "files", "descriptors"):
            now, then = getattr(self, name), getattr(before, name)
            if now > then:
                grown.append(f"{name}: {then} before, {now} now")
        if self.megabytes > 1.1 * before.megabytes + 10:
            grown.append(f"memory: {before.megabytes:.0f} MB before, {self.megabytes:.0f} MB now")
        return grown


def descriptors_of(pid: int) -> list[str]:
    """What a process has open, as in /proc/PID/fd."""
    found = []
    with contextlib.suppress(OSError):  # it may have ended
        for entry in (Path("/proc") / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                found.append(str(entry.readlink()))
    return found


def listening_sockets() -> set[str]:
    """All sockets of this machine that accept TCP connections, as in /proc/PID/fd."""
    rows = [row.split() for name in ("tcp", "tcp6") for row in Path("/proc/net", name).read_text().splitlines()[1:]]
    return {f"socket:[{row[9]}]" for row in rows if row[3] == _LISTEN}


def soak(folder: Path, episodes: int) -> list[str]:
    """Mixed episodes of several applications in one go; what has grown, and what has failed."""
    templates = [prepare(problem, EpisodeSpec(seed=1, fixed=True, config=Config())) for problem in SOAKED]
    failed: list[str] = []
    first: Footprint | None = None
    last = None
    try:
        for number in range(episodes):
            template = templates[number % len(templates)]
            with template.fork()[0] as episode:
                failed += mixed(episode, number // len(templates))
            if number == len(templates) * KINDS - 1 or number == episodes - 1 or number % max(1, episodes // 10) == 0:
                for one in templates:
                    one.fork()[0].close()  # a template waits for the copies that have ended
                wait_for_ends(2 * len(templates))
                last = Footprint.measure(folder)
                print(f"after {number + 1}: {last}", flush=True)
                if first is None and number >= len(templates) * KINDS - 1:
                    first = last  # every kind has been met in every application
    finally:
        for template in templates:
            template.close()
    return failed + (last.growth(first) if first is not None and last is not None else [])


def mixed(episode: EpisodeProcess, kind: int) -> list[str]:
    """One of several kinds of episodes; the reason where it ended in an environment error."""
    result: dict[str, object] = {}
    match kind % KINDS:
        case 0:  # looks around with programs of its own, answers, and repairs nothing
            episode.act("get_alerts()")
            episode.act('kubectl("get pods -A")')
            result = answer(episode)
        case 1:  # a branch, which is graded
            episode.act("wait(30)")
            with episode.fork()[0] as branch:
                branch.act('kubectl("get events -A")')
                result = answer(branch)
        case 2:  # gives up at once
            result = episode.grade()
        case _:  # the client leaves without a word
            episode.act("wait(5)")
    return [str(result["reason"])] if result.get("outcome") == "environment error" else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=10, help="how many of each kind")
    parser.add_argument("--concurrent", type=int, metavar="EPISODES", help="only so many episodes at the same time")
    parser.add_argument("--soak", type=int, metavar="EPISODES", help="only mixed episodes, this many in one go")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        if arguments.soak:
            complaints = soak(Path(folder), arguments.soak)
            print("\n".join(complaints) or "no environment error, and nothing has grown")
            raise SystemExit(1 if complaints else 0)
        with prepare(PROBLEM, EpisodeSpec(seed=1, fixed=True, config=Config())) as template:
            if arguments.concurrent:
                measure_concurrent(template, arguments.concurrent)
            else:
                measure(template, arguments.episodes)


if __name__ == "__main__":
    main()
