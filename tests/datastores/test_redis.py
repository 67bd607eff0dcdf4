"""Redis and Valkey as an operator meets them through the client, and as an application's traffic asks them."""

from __future__ import annotations

from pathlib import Path

from srearena.cluster.embedded.machine.containers.container import Container, Mount
from srearena.cluster.embedded.machine.files.streams import BytesFile, Capture
from srearena.cluster.embedded.programs.datastores.datastore import Cache, Login
from srearena.cluster.embedded.programs.datastores.redis.server import RedisServer
from tests.containers.machine import Machine, Outcome

from .stores import folder, served, stopped
from .traffic_reports import slow_statements

GOLDEN = Path(__file__).parent / "golden"
MIB = 1024 * 1024
VALKEY = "valkey/valkey:9.0.1-alpine3.23"


def cart(machine: Machine, *args: str, memory: int | None = None) -> Container:
    container = machine.container(VALKEY, args=list(args) or None, memory_limit=memory)
    machine.clock.advance(2)
    return container


def cli(machine: Machine, container: Container, *words: str) -> Outcome:
    return machine.run(container, ["valkey-cli", *words])


def server(machine: Machine) -> Cache:
    found = served(machine, 6379)
    assert isinstance(found, Cache)
    return found


def test_prints_what_the_real_one_prints(machine: Machine) -> None:
    """golden/redis.txt is what redis-cli and redis-server 7.0 made of golden/redis.commands."""
    container = machine.container("redis:7.2")
    machine.clock.advance(2)
    script = (GOLDEN / "redis.commands").read_bytes()
    printed = machine.run(container, ["sh", "-c", "redis-cli 2>&1"], stdin=script).out
    assert printed == (GOLDEN / "redis.txt").read_text()


def test_a_password_set_later_shuts_out_new_clients_and_leaves_old_ones(machine: Machine) -> None:
    container = cart(machine)
    store = server(machine)
    assert store.attach("cart-1", None, 2) is None
    before = store.epoch
    assert cli(machine, container, "CONFIG", "SET", "requirepass", "invalid_pass").out == "OK\n"
    assert store.epoch > before
    assert store.attached("cart-1") == 2
    refusal = store.attach("cart-2", None, 1)
    assert refusal is not None
    assert (refusal.kind, refusal.message) == ("auth", "NOAUTH Authentication required.")
    assert cli(machine, container, "PING").out == "NOAUTH Authentication required.\n\n"
    wrong = cli(machine, container, "-a", "nope", "PING")
    assert "AUTH failed: WRONGPASS invalid username-password pair or user is disabled." in wrong.err
    right = ("-a", "invalid_pass", "--no-auth-warning")
    assert cli(machine, container, *right, "CONFIG", "GET", "requirepass").out == "requirepass\ninvalid_pass\n"
    assert store.refuses(Login(password="invalid_pass"), "write", "cart") is None
    assert cli(machine, container, *right, "CONFIG", "SET", "requirepass", "").out == "OK\n"
    assert store.refuses(None, "connect", "") is None


def test_a_memory_limit_refuses_or_evicts_as_the_policy_says(machine: Machine) -> None:
    container = cart(machine)
    store = server(machine)
    cli(machine, container, "CONFIG", "SET", "maxmemory", "12mb")
    assert 0 < store.fill("flood:", 50, MIB) < 50
    refusal = store.refuses(None, "write", "cart")
    assert refusal is not None
    assert (refusal.kind, refusal.message) == ("full", "OOM command not allowed when used memory > 'maxmemory'.")
    assert cli(machine, container, "SET", "k", "v").out.startswith("OOM command not allowed")
    assert store.refuses(None, "read", "cart") is None
    cli(machine, container, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    assert cli(machine, container, "SET", "k", "v").out == "OK\n"
    assert store.evictions > 0
    assert store.refuses(None, "write", "cart") is None


def test_a_flood_outgrows_the_container(machine: Machine) -> None:
    container = cart(machine, memory=20 * MIB)
    for _ in range(40):
        if container.done.is_set:
            break
        server(machine).fill("flood:", 1, MIB)
        machine.clock.advance(0.1)
    assert container.done.value.code == 137


def test_a_script_can_be_that_flood(machine: Machine) -> None:
    container = cart(machine, memory=20 * MIB)
    script = "i=0; while head -c 1048576 /dev/zero | valkey-cli -h 10.244.1.5 -x SET k$i; do i=$((i+1)); done"
    flood = machine.run(machine.container(VALKEY, "sleep", "1000"), ["sh", "-c", script])
    assert flood.out.count("OK\n") > 5
    assert container.done.value.code == 137


def test_what_was_flushed_is_gone_and_counted(machine: Machine) -> None:
    container = cart(machine)
    store = server(machine)
    store.put("0", "user-1", [{"cart": "abc"}])
    assert cli(machine, container, "HGET", "user-1", "cart").out == "abc\n"
    assert store.count("0", "user-") == 1
    cli(machine, container, "FLUSHALL")
    assert store.count("0", "user-") == 0
    assert store.losses == 1


def test_clients_and_statistics_are_listed(machine: Machine) -> None:
    container = cart(machine)
    server(machine).attach("cart-1", None, 2)
    listed = cli(machine, container, "CLIENT", "LIST").out
    assert listed.count(f"addr=cart-1 laddr={container.namespace.address}:6379 ") == 2
    info = cli(machine, container, "INFO").out
    assert "connected_clients:3\r\n" in info
    assert "valkey_version:9.0.1\r\n" in info
    assert "db0:" not in info
    cli(machine, container, "-n", "3", "SET", "k", "v")
    assert "db3:keys=1,expires=0,avg_ttl=0" in cli(machine, container, "INFO", "keyspace").out
    assert int(cli(machine, container, "-n", "3", "MEMORY", "USAGE", "k").out) > 0


def test_a_volume_keeps_the_keys_and_a_read_only_one_stops_writes(machine: Machine) -> None:
    data = folder()
    container = machine.container(VALKEY, mounts=[Mount("/data", data)])
    machine.clock.advance(2)
    cli(machine, container, "SET", "k", "v")
    assert stopped(machine, container) == 0
    again = machine.container(VALKEY, args=["valkey-server", "--save", "60", "1"], mounts=[Mount("/data", data)])
    machine.clock.advance(2)
    assert cli(machine, again, "GET", "k").out == "v\n"
    data.read_only = True
    cli(machine, again, "SET", "k", "w")
    machine.clock.advance(130)
    refusal = server(machine).refuses(None, "write", "k")
    assert refusal is not None
    assert refusal.kind == "readonly"
    assert "for saving: Read-only file system" in again.log.text()
    data.read_only = False
    assert cli(machine, again, "BGSAVE").out == "Background saving started\n"
    assert server(machine).refuses(None, "write", "k") is None


def test_a_bad_directive_keeps_it_from_starting(machine: Machine) -> None:
    config = folder(redis__conf="io-threads 8\nmaxmemory lots\n")
    container = machine.container("redis:6.2.4", args=["/conf/redis.conf"], mounts=[Mount("/conf", config)])
    machine.clock.advance(2)
    assert container.done.value.code == 1
    assert "*** FATAL CONFIG FILE ERROR (Redis 6.2.4) ***\nReading the configuration file, at line 2\n" in (
        container.log.text()
    )


def test_monitor_shows_commands_of_clients_and_of_traffic(machine: Machine) -> None:
    container = cart(machine)
    store = server(machine)
    assert isinstance(store, RedisServer)
    seen = Capture()
    process = container.exec(["valkey-cli", "monitor"], stdin=BytesFile(b""), stdout=seen, stderr=Capture())
    machine.clock.advance(1)
    cli(machine, container, "SET", "a", "1")
    store.attach("cart-0/1", None, 1, "10.244.1.7")
    store.report_statements([slow_statements("cart-0/1", operation="HGET", target="cart", calls=2.0)])
    machine.clock.advance(2)
    printed = seen.text.splitlines()
    assert printed[0] == "OK"
    assert printed[1].endswith('"set" "a" "1"')
    assert printed[2].endswith('"HGET" "cart"') and "10.244.1.7" in printed[2]
    process.raise_signal(9)
    machine.clock.advance(3)
    assert store.observation.monitors == []


def test_slow_commands_and_latency(machine: Machine) -> None:
    container = cart(machine)
    store = server(machine)
    assert isinstance(store, RedisServer)
    store.attach("cart-0/1", None, 1, "10.244.1.7")
    cli(machine, container, "CONFIG", "SET", "latency-monitor-threshold", "100")
    assert cli(machine, container, "SLOWLOG", "LEN").out == "0\n"
    store.report_statements([slow_statements("cart-0/1", operation="hgetall", target="cart")])
    assert cli(machine, container, "SLOWLOG", "LEN").out == "10\n"
    entry = cli(machine, container, "SLOWLOG", "GET", "1").out.splitlines()
    assert entry[0] == "9"
    assert 1_000_000 < int(entry[2]) < 4_000_000
    assert entry[3:5] == ["hgetall", "cart"]
    assert cli(machine, container, "LATENCY", "LATEST").out.startswith("command\n")
    assert "cmdstat_hgetall:calls=10,usec=20000000" in cli(machine, container, "INFO", "commandstats").out


def test_transactions_and_messages(machine: Machine) -> None:
    container = cart(machine)
    script = b"MULTI\nSET a 1\nINCR a\nEXEC\nEXEC\nPUBLISH news hello\n"
    printed = machine.run(container, ["valkey-cli"], stdin=script).out.splitlines()
    assert printed[:6] == ["OK", "QUEUED", "QUEUED", "OK", "2", "ERR EXEC without MULTI"]
    assert printed[-1] == "0"
