"""Tools of netshoot: paths, ports, and the kernel's view of the network."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse, TlsIdentity
from tests.containers.machine import Machine


def test_tools_know_the_kernel_settings(machine: Machine) -> None:
    container = machine.container("nicolaka/netshoot", args=["sleep", "1000"])
    machine.clock.advance(1)
    assert machine.run(container, ["sysctl", "-n", "net.core.somaxconn"]).out == "4096\n"
    missing = machine.run(container, ["sysctl", "net.core.nothing"])
    assert missing.err == "sysctl: cannot stat /proc/sys/net/core/nothing: No such file or directory\n"
    container.namespace.tracked = lambda: (7, 131072)
    assert machine.run(container, ["cat", "/proc/sys/net/netfilter/nf_conntrack_count"]).out == "7\n"
    assert machine.run(container, ["sysctl", "net.netfilter.nf_conntrack_max"]).out == (
        "net.netfilter.nf_conntrack_max = 131072\n"
    )


def test_tc_shows_the_discipline_of_the_interface(machine: Machine) -> None:
    container = machine.container("nicolaka/netshoot", args=["sleep", "1000"])
    machine.clock.advance(1)
    assert "qdisc noqueue 0: dev eth0 root refcnt 2" in machine.run(container, ["tc", "qdisc", "show"]).out
    container.namespace.discipline = "delay 300ms loss 5%"
    shown = machine.run(container, ["tc", "qdisc", "show", "dev", "eth0"]).out
    assert shown == "qdisc netem 8001: dev eth0 root refcnt 2 limit 1000 delay 300ms loss 5% \n"
    refused = machine.run(container, ["tc", "qdisc", "del", "dev", "eth0", "root"])
    assert refused.err == "RTNETLINK answers: Operation not permitted\n"


def test_nmap_finds_what_listens(machine: Machine) -> None:
    container = machine.container("nicolaka/netshoot", args=["sh", "-c", "nc -l -p 8080 & sleep 1000"])
    machine.clock.advance(1)
    printed = machine.run(container, ["nmap", "-p", "8080,9090", "127.0.0.1"]).out
    assert "8080/tcp  open     http-proxy" in printed
    assert "9090/tcp  closed   zeus-admin" in printed
    assert "1 host up" in printed


def test_traceroute_and_mtr_reach_the_pod_itself(machine: Machine) -> None:
    container = machine.container("nicolaka/netshoot", args=["sleep", "1000"])
    machine.clock.advance(1)
    own = container.namespace.address
    printed = machine.run(container, ["traceroute", own]).out.splitlines()
    assert printed[0] == f"traceroute to {own} ({own}), 30 hops max, 46 byte packets"
    assert printed[1].startswith(f" 1  {own} ({own})  ")
    assert " 0.0%     3" in machine.run(container, ["mtr", "-r", "-c", "3", own]).out


def test_ping_waits_its_interval_and_computes_its_deviation(machine: Machine) -> None:
    container = machine.container("jessie-dnsutils", args=["sleep", "1000"])
    machine.clock.advance(1)
    began = machine.clock.now
    printed = machine.run(container, ["ping", "-c", "4", "-i", "0.5", container.namespace.address]).out
    assert machine.clock.now - began >= 1.5
    times = [float(line.rpartition("time=")[2].split()[0]) for line in printed.splitlines() if "icmp_seq" in line]
    minimum, mean, maximum, deviation = map(float, printed.splitlines()[-1].split()[3].split("/"))
    assert (len(times), minimum, maximum) == (4, min(times), max(times))
    mean_square = sum((time - mean) ** 2 for time in times) / len(times)
    assert abs(deviation - mean_square**0.5) <= 0.001


def test_netshoots_tools_are_those_of_their_packages(machine: Machine) -> None:
    container = machine.idle("nicolaka/netshoot")
    assert "56(84) bytes of data." in machine.sh("ping -c1 web-0", container).out
    assert machine.sh("ping -c1 nope", container).err == "ping: nope: Name or service not known\n"
    assert machine.sh("wget http://nope/", container).err == "wget: bad address 'nope'\n", "BusyBox's"
    assert "Usage: netstat" in machine.sh("netstat --nonsense", container).err


def test_ss_and_ip_summarise(machine: Machine) -> None:
    container = machine.idle("nicolaka/netshoot")
    assert container.main is not None
    container.namespace.listen(container.main, 8080)
    assert "TCP:   1 (estab 0," in machine.sh("ss -s", container).out
    container.namespace.carried.add(1234.5, 7.9, 4321, 9)
    container.namespace.carried.lost_packets = 3.0
    shown = machine.sh("ip -s link show eth0", container).out
    assert "1234       7        0" in shown and "4321       9        0       3" in shown
    got = machine.sh("ip route get 10.96.0.10", container).out
    assert got.startswith("10.96.0.10 via 10.244.1.1 dev eth0 src 10.244.1.5 uid 0")
    assert machine.sh("ip rule", container).out.endswith("from all lookup default\n")
    assert machine.sh("fping web-0", container).out == "web-0 is alive\n"
    assert "Speed: 10000Mb/s" in machine.sh("ethtool eth0", container).out
    assert machine.sh("route -n", machine.idle("busybox")).out.splitlines()[2].startswith("0.0.0.0         10.244.1.1")


@pytest.mark.parametrize(
    ("image", "script", "error", "status"),
    [
        ("debian:12", "apt-get update", "W: Failed to fetch http://deb.debian.org/debian/dists/bookworm/InRelease", 0),
        ("debian:12", "apt-get install -y curl", "E: Unable to locate package curl", 100),
        ("ubuntu:24.04", "apt update", "W: Failed to fetch http://security.ubuntu.com/ubuntu/dists/noble-security", 0),
        ("alpine:3.20", "apk add curl", "ERROR: unable to select packages:\n  curl (no such package)", 1),
    ],
)
def test_package_managers_cannot_reach_their_repositories(
    machine: Machine, image: str, script: str, error: str, status: int
) -> None:
    outcome = machine.sh(script, machine.idle(image))
    assert error in outcome.err
    assert outcome.status == status


def test_openssl_shows_the_certificate_of_a_server(machine: Machine) -> None:
    container = machine.idle("nicolaka/netshoot")
    assert container.main is not None
    ends = machine.clock.now + 3600
    identity = TlsIdentity(("shop.example", "localhost"), "CN=shop-ca", expires_at=ends, starts_at=1.76e9)
    requests: list[HttpRequest] = []

    async def hello(request: HttpRequest) -> HttpResponse:
        requests.append(request)
        return HttpResponse.text("hello")

    container.namespace.listen(container.main, 8443, http=hello, tls=identity)
    container.namespace.listen(container.main, 8080, http=hello)
    shown = machine.sh("openssl s_client -connect localhost:8443 -servername shop.example </dev/null", container)
    assert "subject=CN=shop.example\nissuer=CN=shop-ca" in shown.out
    assert "Verify return code: 20 (unable to get local issuer certificate)" in shown.out
    piped = "openssl s_client -connect localhost:8443 </dev/null 2>/dev/null | openssl x509 -noout "
    dates = machine.sh(piped + "-dates", container).out
    assert dates == f"notBefore={_openssl_date(1.76e9)}\nnotAfter={_openssl_date(ends)}\n"
    assert "DNS:shop.example, DNS:localhost" in machine.sh(piped + "-ext subjectAltName", container).out
    assert machine.sh(piped + "-checkend 60", container).status == 0
    assert machine.sh(piped + "-checkend 7200", container).out == "Certificate will expire\n"
    assert "wrong version number" in machine.sh("openssl s_client -connect localhost:8080 </dev/null", container).err
    assert "connect:errno=111" in machine.sh("openssl s_client -connect localhost:1 </dev/null", container).err
    assert not requests, "a handshake is no request"


def _openssl_date(moment: float) -> str:
    return datetime.fromtimestamp(int(moment), UTC).strftime("%b %e %H:%M:%S %Y GMT")


def test_iperf3_measures_what_the_path_carries(machine: Machine) -> None:
    container = machine.idle("nicolaka/netshoot")
    assert "Connection refused" in machine.sh("iperf3 -c web-0 -t 2", container).err
    machine.container("nicolaka/netshoot", "iperf3", "-s")
    began = machine.clock.now
    printed = machine.sh("iperf3 -c web-0 -t 3", container).out
    assert machine.clock.now - began >= 3
    assert len([line for line in printed.splitlines() if line.startswith("[  5] ") and "Retr" not in line]) == 6
    assert "Gbits/sec" in printed and printed.endswith("iperf Done.\n")
    assert container.namespace.carried.sent_bytes > 1e8
