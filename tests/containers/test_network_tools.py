"""Tools of netshoot: paths, ports, and the kernel's view of the network."""

from __future__ import annotations

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
