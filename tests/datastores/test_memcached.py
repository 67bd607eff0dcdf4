"""memcached over its text protocol, and as an application's traffic asks it."""

from __future__ import annotations

from pathlib import Path

from srearena.cluster.embedded.machine.containers.container import Container
from srearena.cluster.embedded.programs.datastores.datastore import Cache
from srearena.cluster.embedded.programs.datastores.memcached import MemcachedServer
from tests.containers.machine import Machine

from .stores import served

GOLDEN = Path(__file__).parent / "golden"
MIB = 1024 * 1024


def cache(machine: Machine, *args: str) -> MemcachedServer:
    machine.container("memcached", args=list(args) or None)
    machine.clock.advance(1)
    found = served(machine, 11211)
    assert isinstance(found, Cache)
    assert isinstance(found, MemcachedServer)
    return found


def talk(machine: Machine, text: bytes, shell: Container | None = None) -> str:
    inside = shell if shell is not None else machine.idle()
    return machine.run(inside, ["nc", "10.244.1.5", "11211"], stdin=text).out


def test_says_what_the_real_one_says(machine: Machine) -> None:
    """golden/memcached.txt is what memcached 1.6 answered to golden/memcached.commands."""
    cache(machine)
    output = talk(machine, (GOLDEN / "memcached.commands").read_bytes())
    assert output.encode() == (GOLDEN / "memcached.txt").read_bytes()


def test_statistics_count_what_traffic_did(machine: Machine) -> None:
    store = cache(machine)
    store.attach("rate-1", None, 4)
    store.fill("hotel:", 80, 400)
    store.statistics.update(cmd_get=1000, get_hits=900, get_misses=100)
    rows = dict(
        line.split()[1:3] for line in talk(machine, b"stats\r\nquit\r\n").splitlines() if line.startswith("STAT")
    )
    assert (rows["curr_items"], rows["get_hits"], rows["get_misses"], rows["cmd_set"]) == ("80", "900", "100", "80")
    assert rows["curr_connections"] == "6"
    assert rows["limit_maxbytes"] == str(64 * MIB)


def test_the_oldest_goes_when_the_limit_is_reached(machine: Machine) -> None:
    store = cache(machine, "-m", "1")
    store.fill("k", 30, 100_000)
    assert store.evictions > 0
    assert store.count("", "k") < 11
    assert store.refuses(None, "write", "k") is None


def test_flushing_is_a_loss_and_expiry_is_not(machine: Machine) -> None:
    store = cache(machine)
    store.put("", "a", [{"x": 1}])
    assert talk(machine, b"set b 0 10 1\r\nz\r\nquit\r\n") == "STORED\r\n"
    machine.clock.advance(11)
    assert talk(machine, b"get a b\r\nquit\r\n") == "VALUE a 0 3\r\nx=1\r\nEND\r\n"
    assert store.losses == 0
    talk(machine, b"flush_all\r\nquit\r\n")
    assert (store.losses, store.count("", "")) == (1, 0)


def test_connections_are_limited(machine: Machine) -> None:
    store = cache(machine, "-c", "5")
    assert store.attach("a", None, 5) is None
    refusal = store.attach("b", None, 1)
    assert refusal is not None
    assert refusal.kind == "busy"
    store.attach("a", None, 0)
    assert store.attach("b", None, 1) is None
