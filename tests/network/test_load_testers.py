"""Load testers that keep connections open until a node's table or a program's descriptors are full."""

from __future__ import annotations

from tests.network.whole_cluster import WholeCluster


def test_a_full_table_drops_new_connections_until_the_load_tester_ends() -> None:
    whole_cluster = WholeCluster()
    whole_cluster.deploy("web", "nginx:1.27")
    whole_cluster.expose("web", 80, 80)
    whole_cluster.deploy("echo", "fortio/fortio:1.69.5")
    whole_cluster.expose("echo", 8080, 8080)
    (web,) = whole_cluster.pods("default", app="web")
    node = web["spec"]["nodeName"]
    whole_cluster.network.fabric.flows.set_limit(node, 40_000)
    placement = {"nodeSelector": {"kubernetes.io/hostname": node}}
    whole_cluster.deploy("client", "busybox:1.36", command=["sleep", "1000000"], **placement)
    (client,) = whole_cluster.pods("default", app="client")
    assert whole_cluster.sh(client, "wget -T 5 -qO- http://web")[0] == 0

    words = ["/usr/bin/fortio", "load", "-c", "50000", "http://echo:8080/"]
    whole_cluster.deploy("soak", "fortio/fortio:1.69.5", command=words, **placement)
    tracked = whole_cluster.network.fabric.flows.table(node).count(whole_cluster.world.clock.now)
    assert 28_232 <= tracked < 40_000, "one tester has no more local ports than that"
    assert whole_cluster.sh(client, "wget -T 5 -qO- http://web")[0] == 0
    whole_cluster.scale("default", "soak", 2)
    assert whole_cluster.sh(client, "wget -T 5 -qO- http://web")[0] == 1
    whole_cluster.scale("default", "soak", 0)
    whole_cluster.pass_time(130)
    assert whole_cluster.sh(client, "wget -T 5 -qO- http://web")[0] == 0


def test_a_program_without_descriptors_takes_no_more_connections_until_others_are_closed() -> None:
    whole_cluster = WholeCluster()
    whole_cluster.deploy("web", "nginx:1.27", command=["sh", "-c", "ulimit -n 64; exec nginx -g 'daemon off;'"])
    whole_cluster.expose("web", 80, 80)
    whole_cluster.deploy("client", "busybox:1.36", command=["sleep", "1000000"])
    (client,) = whole_cluster.pods("default", app="client")
    ask = "wget -T 5 -qO- http://web"
    assert whole_cluster.sh(client, ask)[0] == 0
    words = ["/usr/bin/fortio", "load", "-c", "100", "http://web:80/"]
    whole_cluster.deploy("soak", "fortio/fortio:1.69.5", command=words)
    assert whole_cluster.sh(client, ask) == (1, "wget: download timed out\n")
    whole_cluster.scale("default", "web", 0)
    whole_cluster.scale("default", "web", 1)
    assert whole_cluster.sh(client, ask)[0] == 1, "it connects again"
    whole_cluster.scale("default", "soak", 0)
    assert whole_cluster.sh(client, ask)[0] == 0
