"""Somebody keeps connections open, and a node has room for no more of them."""

from __future__ import annotations

from tests.network.town import Town


def test_a_full_table_turns_new_connections_away_until_the_tester_is_gone() -> None:
    town = Town()
    town.deploy("web", "nginx:1.27")
    town.expose("web", 80, 80)
    town.deploy("echo", "fortio/fortio:1.69.5")
    town.expose("echo", 8080, 8080)
    (web,) = town.pods("default", app="web")
    node = web["spec"]["nodeName"]
    town.network.fabric.flows.set_limit(node, 40_000)
    here = {"nodeSelector": {"kubernetes.io/hostname": node}}
    town.deploy("client", "busybox:1.36", command=["sleep", "1000000"], **here)
    (client,) = town.pods("default", app="client")
    assert town.sh(client, "wget -T 5 -qO- http://web")[0] == 0

    words = ["/usr/bin/fortio", "load", "-c", "50000", "http://echo:8080/"]
    town.deploy("soak", "fortio/fortio:1.69.5", command=words, **here)
    held = town.network.fabric.flows.table(node).count(town.world.clock.now)
    assert 28_232 <= held < 40_000, "one tester has no more local ports than that"
    assert town.sh(client, "wget -T 5 -qO- http://web")[0] == 0
    town.scale("default", "soak", 2)
    assert town.sh(client, "wget -T 5 -qO- http://web")[0] == 1
    town.scale("default", "soak", 0)
    town.pass_time(130)
    assert town.sh(client, "wget -T 5 -qO- http://web")[0] == 0


def test_a_program_without_descriptors_takes_no_more_connections_until_others_are_closed() -> None:
    town = Town()
    town.deploy("web", "nginx:1.27", command=["sh", "-c", "ulimit -n 64; exec nginx -g 'daemon off;'"])
    town.expose("web", 80, 80)
    town.deploy("client", "busybox:1.36", command=["sleep", "1000000"])
    (client,) = town.pods("default", app="client")
    ask = "wget -T 5 -qO- http://web"
    assert town.sh(client, ask)[0] == 0
    words = ["/usr/bin/fortio", "load", "-c", "100", "http://web:80/"]
    town.deploy("soak", "fortio/fortio:1.69.5", command=words)
    assert town.sh(client, ask) == (1, "wget: download timed out\n")
    town.scale("default", "web", 0)
    town.scale("default", "web", 1)
    assert town.sh(client, ask)[0] == 1, "it connects again"
    town.scale("default", "soak", 0)
    assert town.sh(client, ask)[0] == 0
