"""FleetCast's database: what the operator makes of a TidbCluster, and how a wrong wish shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from srearena.service.kubectl import KubeCtl
from tests.apps.deployed import Deployed, deployed, is_ready

DATABASE, OPERATOR = "tidb-cluster", "tidb-operator"
CLUSTERS = "tidbclusters.pingcap.com"
CONTROLLER = "app.kubernetes.io/component=controller-manager"


@pytest.fixture(scope="module")
def fleet() -> Iterator[Deployed]:
    with deployed("fleetcast") as running:
        yield running


def wish(fleet: Deployed, **spec: Any) -> None:
    fleet.api.patch(CLUSTERS, "basic", {"spec": spec}, DATABASE)


def cluster(fleet: Deployed) -> dict[str, Any]:
    return fleet.api.get(CLUSTERS, "basic", DATABASE)


def ready(fleet: Deployed) -> str:
    conditions = cluster(fleet)["status"]["conditions"]
    return next(str(c["status"]) for c in conditions if c["type"] == "Ready")


def stateful_set(fleet: Deployed, component: str) -> dict[str, Any]:
    return fleet.api.get("statefulsets", f"basic-{component}", DATABASE)


def members(fleet: Deployed, component: str) -> set[str]:
    return set(fleet.pods(DATABASE, f"app.kubernetes.io/component={component}"))


def operator_log(fleet: Deployed) -> str:
    return fleet.log(OPERATOR, CONTROLLER)


def sql(fleet: Deployed, statement: str, host: str = "basic-tidb") -> str:
    """Ask the database from a pod beside it."""
    if fleet.api.find("pods", "console", DATABASE) is None:
        container = {"name": "main", "image": "mysql:8.0", "command": ["sleep", "infinity"]}
        metadata = {"name": "console", "namespace": DATABASE}
        fleet.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}})
        fleet.wait(30)
    command = ["mysql", "-h", host, "-P", "4000", "-u", "root", "-N", "-e", statement]
    done = fleet.api.exec("console", command, DATABASE)
    return f"{done.output}{done.errors}"


def test_the_database_is_up(fleet: Deployed) -> None:
    assert ready(fleet) == "True"
    pods = fleet.pods(DATABASE)
    assert members(fleet, "pd") == {"basic-pd-0"}
    assert members(fleet, "tikv") == {"basic-tikv-0"}
    assert members(fleet, "tidb") == {"basic-tidb-0"}
    assert all(is_ready(pod) for pod in pods.values())
    status = cluster(fleet)["status"]
    assert status["pd"]["leader"]["name"] == "basic-pd-0"
    assert [store["state"] for store in status["tikv"]["stores"].values()] == ["Up"]
    assert status["tidb"]["members"]["basic-tidb-0"]["health"] is True


def test_pd_comes_before_tikv_and_tikv_before_tidb(fleet: Deployed) -> None:
    log = operator_log(fleet)
    assert log.index("waiting for PD cluster running") < log.index("waiting for TiKV cluster running")
    began = [stateful_set(fleet, component)["metadata"]["creationTimestamp"] for component in ("pd", "tikv", "tidb")]
    assert began == sorted(began)


def test_services_are_those_of_the_real_operator(fleet: Deployed) -> None:
    found = {
        service["metadata"]["name"]: [(port["name"], port["port"]) for port in service["spec"]["ports"]]
        for service in fleet.api.list("services", DATABASE)
    }
    assert found["basic-tidb"] == [("mysql-client", 4000), ("status", 10080)]
    assert found["basic-pd"] == [("client", 2379)]
    assert found["basic-tikv-peer"] == [("peer", 20160)]
    assert {"basic-pd-peer", "basic-tidb-peer", "basic-discovery"} <= set(found)


@pytest.mark.kubectl
def test_the_printed_columns_tell_the_state(fleet: Deployed) -> None:
    columns, row = KubeCtl(fleet.cluster.kubeconfig).run("get", "tc", "-n", DATABASE).splitlines()
    wanted = "NAME READY PD STORAGE READY DESIRE TIKV STORAGE READY DESIRE TIDB READY DESIRE AGE"
    assert columns.split() == wanted.split()
    assert row.split()[:-1] == (
        "basic True pingcap/pd:v8.1.0 1Gi 1 1 pingcap/tikv:v8.1.0 1Gi 1 1 pingcap/tidb:v8.1.0 1 1".split()
    )


@pytest.mark.parametrize(
    ("path", "body"), [("stores", b"{garbage"), ("stores", b"[]"), ("members", b"5"), ("stores", b"")]
)
def test_pd_refuses_what_makes_no_sense(fleet: Deployed, path: str, body: bytes) -> None:
    reply = fleet.api.request_service("basic-pd", 2379, f"/pd/api/v1/{path}", DATABASE, method="POST", body=body)
    assert reply.status == 400
    assert ready(fleet) == "True"


def test_a_cluster_grows_and_shrinks(fleet: Deployed) -> None:
    wish(fleet, pd={"replicas": 3}, tikv={"replicas": 3}, tidb={"replicas": 2})
    fleet.wait(180)
    assert ready(fleet) == "True"
    assert len(members(fleet, "pd")) == len(members(fleet, "tikv")) == 3
    answer = fleet.api.request_service("basic-pd", 2379, "/pd/api/v1/health", DATABASE)
    assert [row["health"] for row in json.loads(answer.text)] == [True, True, True]
    wish(fleet, pd={"replicas": 1}, tikv={"replicas": 1}, tidb={"replicas": 1})
    fleet.wait(180)
    assert ready(fleet) == "True"
    assert members(fleet, "pd") == {"basic-pd-0"}
    stores = json.loads(fleet.api.request_service("basic-pd", 2379, "/pd/api/v1/stores", DATABASE).text)
    assert stores["count"] == 1


@pytest.mark.parametrize(
    ("fault", "complaint", "remedy"),
    [
        (
            {"tolerations": [{"key": "a", "operator": "Exists", "effect": "TAKE_SOME_EFFECT"}]},
            'spec.template.spec.tolerations[0].effect: Unsupported value: "TAKE_SOME_EFFECT"',
            {"tolerations": None},
        ),
        (
            {"podSecurityContext": {"runAsUser": -1}},
            "spec.template.spec.securityContext.runAsUser: Invalid value: -1",
            {"podSecurityContext": None},
        ),
        (
            {"statefulSetUpdateStrategy": "SomeStrategyForUpdate"},
            "must be 'RollingUpdate' or 'OnDelete'",
            {"statefulSetUpdateStrategy": None},
        ),
    ],
)
def test_a_wish_that_the_api_refuses_is_logged_and_told_and_changes_nothing(
    fleet: Deployed, fault: dict[str, Any], complaint: str, remedy: dict[str, Any]
) -> None:
    before = stateful_set(fleet, "tidb")["spec"]
    wish(fleet, tidb={**fault, "replicas": 2})
    fleet.wait(60)
    last = operator_log(fleet).splitlines()[-1]
    assert last.startswith("E")
    assert "TidbCluster: tidb-cluster/basic, sync failed" in last
    assert complaint in last
    assert any(complaint in message for message in fleet.warnings(DATABASE, "TidbCluster"))
    assert stateful_set(fleet, "tidb")["spec"] == before, "the last good state stays"
    wish(fleet, tidb={**remedy, "replicas": 2})
    fleet.wait(60)
    assert members(fleet, "tidb") == {"basic-tidb-0", "basic-tidb-1"}
    wish(fleet, tidb={"replicas": 1})
    fleet.wait(60)
    assert ready(fleet) == "True"


def test_an_upgrade_goes_pod_by_pod(fleet: Deployed) -> None:
    wish(fleet, tidb={"replicas": 2, "version": "v8.1.1"})
    fleet.wait(240)
    images = {
        name: pod["spec"]["containers"][1]["image"]
        for name, pod in fleet.pods(DATABASE, "app.kubernetes.io/component=tidb").items()
    }
    assert images == {"basic-tidb-0": "pingcap/tidb:v8.1.1", "basic-tidb-1": "pingcap/tidb:v8.1.1"}
    assert ready(fleet) == "True"


def test_a_bad_version_stops_at_the_first_pod_and_heals(fleet: Deployed) -> None:
    wish(fleet, tidb={"version": "v99.99.99999"})
    fleet.wait(120)
    pods = fleet.pods(DATABASE, "app.kubernetes.io/component=tidb")
    assert is_ready(pods["basic-tidb-0"])
    assert not is_ready(pods["basic-tidb-1"])
    assert "upgraded tidb pod: [basic-tidb-1] is not ready" in operator_log(fleet)
    wish(fleet, tidb={"version": None, "replicas": 1})
    fleet.wait(180)
    assert ready(fleet) == "True"


def test_a_storage_class_that_is_not_there_leaves_pd_pending(fleet: Deployed) -> None:
    wish(fleet, pd={"storageClassName": "no-such-class"})
    fleet.wait(60)
    assert is_ready(fleet.pods(DATABASE)["basic-pd-0"]), "claims are made with the set and not changed later"
    fleet.api.delete("statefulsets", "basic-pd", DATABASE)
    fleet.wait(20)
    fleet.api.delete("persistentvolumeclaims", "pd-basic-pd-0", DATABASE)
    fleet.api.delete("pods", "basic-pd-0", DATABASE)
    fleet.wait(120)
    assert fleet.pods(DATABASE)["basic-pd-0"]["status"]["phase"] == "Pending"
    assert ready(fleet) == "False"
    wish(fleet, pd={"storageClassName": None})
    fleet.wait(10)
    fleet.api.delete("statefulsets", "basic-pd", DATABASE)
    fleet.api.delete("persistentvolumeclaims", "pd-basic-pd-0", DATABASE)
    fleet.wait(240)
    assert is_ready(fleet.pods(DATABASE)["basic-pd-0"])
    assert ready(fleet) == "True"


def test_without_an_operator_nothing_is_reconciled(fleet: Deployed) -> None:
    def run(image: str) -> None:
        containers = [{"name": "tidb-operator", "image": image}]
        change = {
            "strategy": {"type": "Recreate", "rollingUpdate": None},
            "template": {"spec": {"containers": containers}},
        }
        fleet.api.patch("deployments", "tidb-controller-manager", {"spec": change}, OPERATOR)

    run("pingcap/tidb-operatorr:v1.6.3")
    fleet.wait(60)
    (pod,) = fleet.pods(OPERATOR).values()
    assert pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] in ("ErrImagePull", "ImagePullBackOff")
    wish(fleet, tidb={"replicas": 2})
    fleet.wait(120)
    assert members(fleet, "tidb") == {"basic-tidb-0"}
    run("pingcap/tidb-operator:v1.6.3")
    fleet.wait(120)
    assert members(fleet, "tidb") == {"basic-tidb-0", "basic-tidb-1"}


def test_without_its_rights_the_operator_says_what_it_may_not(fleet: Deployed) -> None:
    name = "tidb-controller-manager"
    binding = fleet.api.get("rolebindings", name, DATABASE)
    fleet.api.delete("rolebindings", name, DATABASE)
    wish(fleet, tidb={"replicas": 1})
    fleet.wait(60)
    assert 'User "system:serviceaccount:tidb-operator:tidb-controller-manager" cannot' in operator_log(fleet)
    binding["metadata"] = {"name": name}
    fleet.api.create(binding, DATABASE)
    fleet.wait(120)
    assert members(fleet, "tidb") == {"basic-tidb-0"}


def test_servers_share_their_data_and_a_new_one_finds_them(fleet: Deployed) -> None:
    assert sql(fleet, "SHOW TABLES IN satellite_sim").split() == ["contact_windows", "telemetry"]
    wish(fleet, tidb={"replicas": 2})
    fleet.wait(60)
    peer = "basic-tidb-{}.basic-tidb-peer"
    sql(fleet, "CREATE TABLE satellite_sim.notes (text VARCHAR(20))", peer.format(0))
    sql(fleet, "INSERT INTO satellite_sim.notes VALUES ('hello')", peer.format(0))
    assert sql(fleet, "SELECT text FROM satellite_sim.notes", peer.format(1)).strip() == "hello"
    wish(fleet, tidb={"replicas": 1})
    fleet.api.delete("pods", "basic-tidb-0", DATABASE)
    fleet.api.delete("pods", "basic-tikv-0", DATABASE)
    fleet.wait(120)
    assert sql(fleet, "SELECT text FROM satellite_sim.notes").strip() == "hello"


def test_without_its_stores_a_running_server_answers_nothing(fleet: Deployed) -> None:
    sql(fleet, "CREATE TABLE satellite_sim.kept (text VARCHAR(20))")
    sql(fleet, "INSERT INTO satellite_sim.kept VALUES ('hello')")
    fleet.api.patch("deployments", "tidb-controller-manager", {"spec": {"replicas": 0}}, OPERATOR)
    fleet.api.scale("statefulsets", "basic-tikv", 0, DATABASE)
    fleet.wait(60)
    assert "ERROR 9001 (HY000): PD server timeout" in sql(fleet, "SELECT 1")
    fleet.api.scale("statefulsets", "basic-tikv", 1, DATABASE)
    fleet.api.patch("deployments", "tidb-controller-manager", {"spec": {"replicas": 1}}, OPERATOR)
    fleet.wait(120)
    assert sql(fleet, "SELECT text FROM satellite_sim.kept").strip() == "hello"


def test_tidb_does_not_start_without_its_stores(fleet: Deployed) -> None:
    for name in ("basic-pd", "basic-tikv"):
        fleet.api.scale("statefulsets", name, 0, DATABASE)
    fleet.api.delete("pods", "basic-tidb-0", DATABASE)
    fleet.wait(80)
    log = fleet.log(DATABASE, "app.kubernetes.io/component=tidb", "tidb")
    assert "open store failed" in log
    for name in ("basic-pd", "basic-tikv"):
        fleet.api.scale("statefulsets", name, 1, DATABASE)
    fleet.wait(400)
    assert ready(fleet) == "True"


def test_a_database_without_its_volumes_is_broken_until_it_is_made_anew(fleet: Deployed) -> None:
    fleet.api.scale("statefulsets", "basic-tikv", 0, DATABASE)
    fleet.wait(30)
    fleet.api.delete("persistentvolumeclaims", "tikv-basic-tikv-0", DATABASE)
    fleet.wait(30)
    fleet.api.scale("statefulsets", "basic-tikv", 1, DATABASE)
    fleet.wait(30)
    assert "duplicated store address" in fleet.log(DATABASE, "app.kubernetes.io/component=tikv", "tikv")
    assert "ERROR 9001 (HY000): PD server timeout" in sql(fleet, "SELECT 1")
    for component in ("tikv", "pd"):
        fleet.api.scale("statefulsets", f"basic-{component}", 0, DATABASE)
    fleet.wait(30)
    for component in ("tikv", "pd"):
        fleet.api.delete("persistentvolumeclaims", f"{component}-basic-{component}-0", DATABASE)
    fleet.wait(30)
    for component in ("tikv", "pd"):
        fleet.api.scale("statefulsets", f"basic-{component}", 1, DATABASE)
    fleet.wait(420)
    assert ready(fleet) == "True"
    assert "satellite_sim" not in sql(fleet, "SHOW DATABASES")
