"""Sockets: who may listen where, what a client gets, and how the network tools tell it."""

from __future__ import annotations

import errno

import pytest

from srearena.cluster.embedded.machine.containers.container import Container
from srearena.cluster.embedded.machine.networking.reachability import DnsRecord, DnsStatus, GrpcHealth, Resolution
from srearena.cluster.embedded.machine.networking.reachability import Outcome as Reached
from srearena.cluster.embedded.machine.networking.sockets import Connection, HttpRequest, HttpResponse, TlsIdentity
from tests.containers.machine import Machine


async def hello(request: HttpRequest) -> HttpResponse:
    return HttpResponse.text(f"{request.method} {request.target} from {request.peer}\n")


def listening(machine: Machine, port: int = 8080, **settings: object) -> Container:
    container = machine.idle()
    assert container.main is not None
    machine.namespace.listen(container.main, port, **(settings or {"http": hello}))  # type: ignore[arg-type]
    return container


# --- binding ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "conflict"),
    [
        (("0.0.0.0", 80), ("0.0.0.0", 80), True),
        (("0.0.0.0", 80), ("127.0.0.1", 80), True),
        (("127.0.0.1", 80), ("10.244.1.5", 80), False),
        (("127.0.0.1", 80), ("127.0.0.1", 81), False),
        (("127.0.0.1", 80), ("0.0.0.0", 80), True),
    ],
)
def test_two_listeners_conflict_where_their_addresses_overlap(
    machine: Machine, first: tuple[str, int], second: tuple[str, int], conflict: bool
) -> None:
    owner = machine.idle().main
    assert owner is not None
    machine.namespace.listen(owner, first[1], address=first[0], http=hello)
    if conflict:
        with pytest.raises(OSError, match="Address already in use"):
            machine.namespace.listen(owner, second[1], address=second[0], http=hello)
    else:
        machine.namespace.listen(owner, second[1], address=second[0], http=hello)


def test_tcp_and_udp_do_not_get_in_each_others_way(machine: Machine) -> None:
    owner = machine.idle().main
    assert owner is not None
    machine.namespace.listen(owner, 53, http=hello)
    machine.namespace.listen(owner, 53, protocol="UDP")
    with pytest.raises(OSError) as failure:
        machine.namespace.listen(owner, 53, address="192.168.7.7")
    assert failure.value.errno in (errno.EADDRNOTAVAIL, errno.EADDRINUSE)


def test_a_listener_on_loopback_is_not_reached_over_the_pods_address(machine: Machine) -> None:
    container = listening(machine, address="127.0.0.1", http=hello)
    assert machine.sh("wget -qO- http://127.0.0.1:8080/", container).out == "GET / from 10.244.1.5\n"
    assert "Connection refused" in machine.sh("wget -qO- http://10.244.1.5:8080/", container).err


def test_the_end_of_a_process_closes_its_ports(machine: Machine) -> None:
    container = machine.idle()
    server = container.exec(["nc", "-l", "-p", "7000"])
    machine.clock.advance(0.1)
    assert machine.namespace.find("10.244.1.5", 7000) is not None
    server.raise_signal(9)
    machine.clock.advance(0.1)
    assert machine.namespace.find("10.244.1.5", 7000) is None


# --- conversations ---------------------------------------------------------------------------------------------


def test_http_over_a_raw_connection_and_raw_bytes_to_an_http_server(machine: Machine) -> None:
    container = listening(machine)
    outcome = machine.sh("printf 'GET /x HTTP/1.0\\r\\n\\r\\n' | nc localhost 8080", container)
    assert outcome.out.startswith("HTTP/1.1 200 OK\r\n")
    assert outcome.out.endswith("GET /x from 10.244.1.5\n")
    assert "400 Bad Request" in machine.sh("printf 'nonsense\\r\\n\\r\\n' | nc localhost 8080", container).out


def test_two_programs_talk_over_tcp(machine: Machine) -> None:
    outcome = machine.sh(
        "(nc -l -p 9000 > /tmp/got; cat /tmp/got) & sleep 1; echo over the wire | nc localhost 9000; wait"
    )
    assert outcome.out == "over the wire\n"


def test_a_server_that_dies_resets_its_clients(machine: Machine) -> None:
    container = machine.idle()
    server = container.exec(["sh", "-c", "sleep 1000"])

    async def hang(request: HttpRequest) -> HttpResponse:
        await machine.clock.sleep(1000)
        return HttpResponse()

    machine.namespace.listen(server, 8080, http=hang)
    client = container.exec(["wget", "-qO-", "http://localhost:8080/"])
    machine.clock.advance(5)
    server.raise_signal(9)
    machine.clock.advance(1)
    assert client.done.value == 1


def test_a_stopped_server_accepts_but_never_answers(machine: Machine) -> None:
    container = machine.idle("nicolaka/netshoot")
    server = container.exec(["sleep", "1000"])
    machine.namespace.listen(server, 8080, http=hello)
    machine.clock.advance(0.1)
    server.raise_signal(19)
    outcome = machine.sh("curl -sS -m 3 http://localhost:8080/", container)
    assert outcome.err == "curl: (28) Operation timed out after 3000 milliseconds with 0 bytes received\n"
    assert outcome.status == 28


def test_a_server_out_of_descriptors_leaves_connections_waiting(machine: Machine) -> None:
    container = machine.idle("nicolaka/netshoot")
    server = container.exec(["sleep", "1000"])
    server.nofile = len(server.fds) + 2  # a listening socket, and one connection
    holding: list[Connection] = []

    async def hold(connection: Connection) -> None:
        holding.append(connection)
        await connection.read()

    listener = machine.namespace.listen(server, 8080, stream=hold)
    first = listener.connect(("10.244.1.5", 1000), ("10.244.1.5", 8080))
    listener.connect(("10.244.1.5", 1001), ("10.244.1.5", 8080))
    machine.clock.advance(1)
    assert (len(holding), listener.waiting) == (1, 1)
    first.close_writing()
    machine.clock.advance(1)
    assert (len(holding), listener.waiting) == (2, 0)


def test_health_over_grpc(machine: Machine) -> None:
    async def health(service: str) -> GrpcHealth:
        return GrpcHealth.SERVING if service in ("", "known") else GrpcHealth.SERVICE_UNKNOWN

    listening(machine, 5000, grpc_health=health)
    listening(machine, 5001, http=hello)
    answers = []
    for port, service in ((5000, ""), (5000, "other"), (5001, ""), (5002, "")):
        task = machine.clock.spawn(machine.network.grpc_health("10.244.1.5", port, service))
        machine.clock.advance(1)
        assert task.done.value is not None
        answers.append((task.done.value.outcome, task.done.value.health))
    assert answers[0] == (Reached.CONNECTED, GrpcHealth.SERVING)
    assert answers[1] == (Reached.CONNECTED, GrpcHealth.SERVICE_UNKNOWN)
    assert answers[2][0] is Reached.PROTOCOL_ERROR
    assert answers[3][0] is Reached.REFUSED


# --- what the tools say ----------------------------------------------------------------------------------------


def test_curl_prints_bodies_heads_and_codes(machine: Machine) -> None:
    machine.idle()
    container = machine.idle("nicolaka/netshoot")
    assert container.main is not None
    machine.namespace.listen(container.main, 8080, http=hello)
    assert machine.sh("curl -s http://web-0:8080/a?b=c", container).out == "GET /a?b=c from 10.244.1.5\n"
    assert machine.sh("curl -s -o /dev/null -w '%{http_code}\\n' localhost:8080", container).out == "200\n"
    assert machine.sh("curl -sI localhost:8080 | head -1", container).out == "HTTP/1.1 200 OK\r\n"
    assert "POST /x" in machine.sh("curl -s -X POST -d a=1 -H 'X-A: b' localhost:8080/x", container).out
    verbose = machine.sh("curl -sv localhost:8080/v", container).err
    assert "* Connected to localhost (127.0.0.1) port 8080" in verbose
    assert "> GET /v HTTP/1.1" in verbose and "< HTTP/1.1 200 OK" in verbose
    machine.sh("curl -s -o /tmp/saved localhost:8080/s", container)
    assert container.files.read_text("/tmp/saved").startswith("GET /s")


@pytest.mark.parametrize(
    ("url", "flags", "status", "text"),
    [
        ("http://nowhere.example/", "", 6, "Could not resolve host: nowhere.example"),
        ("http://localhost:1/", "", 7, "Failed to connect to localhost port 1 after 0 ms: Couldn't connect to server"),
        ("http://localhost:8404/", "-f", 22, "The requested URL returned error: 404"),
        ("http://localhost:8052/", "", 52, "Empty reply from server"),
        ("http://localhost:8009/", "", 1, "Received HTTP/0.9 when not allowed"),
        ("https://localhost:8404/", "", 35, "OpenSSL/3.0.13: error:0A00010B:SSL routines::wrong version number"),
        ("https://localhost:8443/", "", 60, "SSL certificate problem: unable to get local issuer certificate"),
        ("gopher://x/", "", 1, 'Protocol "gopher" not supported or disabled in libcurl'),
    ],
)
def test_curl_fails_with_its_numbers(machine: Machine, url: str, flags: str, status: int, text: str) -> None:
    container = machine.idle("nicolaka/netshoot")
    owner = container.main
    assert owner is not None

    async def missing(request: HttpRequest) -> HttpResponse:
        return HttpResponse(404)

    async def silent(connection: Connection) -> None:
        await connection.read()

    async def rude(connection: Connection) -> None:
        await connection.write(b"-ERR what?\r\n")

    machine.namespace.listen(owner, 8404, http=missing)
    machine.namespace.listen(owner, 8052, stream=silent)
    machine.namespace.listen(owner, 8009, stream=rude)
    machine.namespace.listen(owner, 8443, http=hello, tls=TlsIdentity(("localhost",), "ca", b"CERT"))
    outcome = machine.sh(f"curl -sS {flags} {url}", container)
    assert (outcome.err.splitlines()[0], outcome.status) == (f"curl: ({status}) {text}", status)


def test_curl_trusts_the_authority_it_is_given(machine: Machine) -> None:
    container = machine.idle("nicolaka/netshoot")
    assert container.main is not None
    identity = TlsIdentity(("localhost", "*.svc"), "ca", b"CERT\n")
    machine.namespace.listen(container.main, 8443, http=hello, tls=identity)
    container.files.write_bytes("/ca.crt", b"CERT\n")
    assert machine.sh("curl -s --cacert /ca.crt https://localhost:8443/", container).status == 0
    assert machine.sh("curl -sk https://localhost:8443/", container).status == 0
    assert machine.sh("curl -s --cacert /ca.crt https://10.244.1.5:8443/", container).status == 60
    assert "HTTP request to an HTTPS server" in machine.sh("curl -s http://localhost:8443/", container).out


@pytest.mark.parametrize(
    ("script", "out", "err", "status"),
    [
        ("wget -qO- http://localhost:8080/p", "GET /p from 10.244.1.5\n", "", 0),
        ("wget http://nope/", "", "wget: bad address 'nope'\n", 1),
        ("wget -q http://localhost:1/", "", "wget: can't connect to remote host (127.0.0.1): Connection refused\n", 1),
        ("nc -zv localhost 8080", "", "localhost (127.0.0.1:8080) open\n", 0),
        ("nc -zv localhost 1", "", "nc: localhost (127.0.0.1:1): Connection refused\n", 1),
        ("nc -z nope 80", "", "nc: bad address 'nope'\n", 1),
        ("getent hosts web-0", "10.244.1.5      web-0\n", "", 0),
        ("getent hosts nope", "", "", 2),
        ("ping -c1 nope", "", "ping: bad address 'nope'\n", 1),
    ],
)
def test_busybox_tools_report_the_network_in_their_words(
    machine: Machine, script: str, out: str, err: str, status: int
) -> None:
    listening(machine)
    outcome = machine.sh(script, machine.idle("alpine"))
    assert (outcome.out, outcome.err, outcome.status) == (out, err, status)


def test_wget_saves_and_says_so(machine: Machine) -> None:
    listening(machine)
    container = machine.idle("busybox")
    outcome = machine.sh("cd /tmp; wget http://localhost:8080/file.txt; cat file.txt", container)
    assert outcome.err.startswith("Connecting to localhost:8080 (127.0.0.1:8080)\nsaving to 'file.txt'\n")
    assert outcome.out == "GET /file.txt from 10.244.1.5\n"


def test_listeners_are_listed(machine: Machine) -> None:
    container = listening(machine)
    assert "0.0.0.0:8080" in machine.sh("netstat -tln", container).out
    assert "1/sleep" in machine.sh("netstat -tlnp", container).out
    assert "0.0.0.0:8080" in machine.sh("ss -tln", machine.idle("nicolaka/netshoot")).out
    assert "10.244.1.5/24" in machine.sh("ip addr", container).out
    assert "1F90" in machine.sh("cat /proc/net/tcp", container).out


def test_sockets_are_among_the_descriptors_of_their_process(machine: Machine) -> None:
    container = listening(machine)
    count = "ls /proc/1/fd | wc -l"
    before = int(machine.sh(count, container).out)
    for _ in range(40):
        assert container.main is not None and container.main.take_descriptor()
    assert int(machine.sh(count, container).out) == before + 40
    assert machine.sh(f"readlink /proc/1/fd/{before + 39}", container).out.startswith("socket:[")


def test_bash_opens_sockets_as_files(machine: Machine) -> None:
    listening(machine)
    container = machine.idle("debian")
    good = "exec 3<>/dev/tcp/localhost/8080; printf 'GET /b HTTP/1.0\\r\\n\\r\\n' >&3; tail -1 <&3"
    assert machine.run(container, ["bash", "-c", good]).out == "GET /b from 10.244.1.5\n"
    refused = machine.run(container, ["bash", "-c", "echo > /dev/tcp/localhost/1"])
    assert refused.err == "bash: connect: Connection refused\nbash: line 1: /dev/tcp/localhost/1: Connection refused\n"
    assert refused.status == 1


# --- name lookups ----------------------------------------------------------------------------------------------


class FakeDns:
    """A resolver with one name, for the tools' formats."""

    def __init__(self, machine: Machine) -> None:
        self._network = machine.network
        self.asked: list[str] = []

    async def resolve(
        self, name: str, kind: str = "A", *, search: bool = True, server: str | None = None
    ) -> Resolution:
        self.asked.append(name)
        if server == "10.0.0.99":
            return Resolution(DnsStatus.TIMEOUT, name)
        full = f"{name}.default.svc.cluster.local" if search and "." not in name else name
        if full == "web.default.svc.cluster.local":
            records = (DnsRecord(full, "A", "10.96.0.7"),) if kind == "A" else ()
            return Resolution(DnsStatus.NOERROR, full, records, "10.96.0.10")
        return Resolution(DnsStatus.NXDOMAIN, name, (), "10.96.0.10")


@pytest.fixture
def dns(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> FakeDns:
    fake = FakeDns(machine)
    monkeypatch.setattr(machine.network, "resolve", fake.resolve)
    return fake


RESOLV_CONF = b"search default.svc.cluster.local svc.cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n"


def test_busybox_nslookup_asks_with_every_search_domain(machine: Machine, dns: FakeDns) -> None:
    container = machine.idle("busybox")
    container.files.write_bytes("/etc/resolv.conf", RESOLV_CONF)
    outcome = machine.sh("nslookup web", container)
    assert outcome.out.startswith("Server:\t\t10.96.0.10\nAddress:\t10.96.0.10:53\n\n")
    assert "Name:\tweb.default.svc.cluster.local\nAddress: 10.96.0.7\n" in outcome.out
    assert "** server can't find web.svc.cluster.local: NXDOMAIN" in outcome.out
    dotted = machine.sh("nslookup web.default", container)
    assert "** server can't find web.default: NXDOMAIN" in dotted.out
    assert dotted.status == 1


def test_the_other_nslookup_and_dig_use_the_resolver(machine: Machine, dns: FakeDns) -> None:
    container = machine.idle("tutum/dnsutils")
    container.files.write_bytes("/etc/resolv.conf", RESOLV_CONF)
    assert "Address:\t10.96.0.10#53" in machine.sh("nslookup web", container).out
    assert machine.sh("dig +short web.default.svc.cluster.local", container).out == "10.96.0.7\n"
    assert "status: NXDOMAIN" in machine.sh("dig nope.example", container).out
    assert "no servers could be reached" in machine.sh("nslookup web 10.0.0.99", container).out


def test_netshoots_nslookup_is_that_of_bind(machine: Machine, dns: FakeDns) -> None:
    container = machine.idle("nicolaka/netshoot")
    container.files.write_bytes("/etc/resolv.conf", RESOLV_CONF)
    found = machine.sh("nslookup web", container).out
    assert "Address:\t10.96.0.10#53" in found and "can't find web.svc" not in found, "BIND's, with the search list"


def test_a_web_server_refuses_what_is_no_request_with_its_own_page(machine: Machine) -> None:
    machine.container("nginx:1.27.2")
    answer = machine.sh("printf 'nonsense\\r\\n\\r\\n' | nc -w 2 localhost 80").out
    assert answer.startswith("HTTP/1.1 400 Bad Request\r\nServer: nginx/1.27.2\r\n")
    assert "<center>nginx/1.27.2</center>" in answer


def test_curl_retries_what_it_is_told_to(machine: Machine) -> None:
    retry = "curl -sS --retry 2 --retry-delay 3"
    for options, retries in (("", 0), ("--retry-all-errors", 2), ("--retry-all-errors --retry-max-time 4", 1)):
        before = machine.clock.now
        outcome = machine.sh(f"{retry} {options} http://localhost:1/", machine.idle("curlimages/curl"))
        assert outcome.status == 7 and outcome.err.count("Will retry in 3 seconds") == retries
        assert machine.clock.now - before == pytest.approx(3 * retries, abs=1)
