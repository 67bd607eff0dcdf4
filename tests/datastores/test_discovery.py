"""Consul and Nacos: who offers a service, over their HTTP APIs and for an application's traffic."""

from __future__ import annotations

import json
from typing import Any

from srearena.cluster.embedded.machine.containers.container import Container
from srearena.cluster.embedded.programs.datastores.datastore import Discovery, Instance
from tests.containers.machine import Machine

from .stores import served


def registry(machine: Machine, port: int) -> Discovery:
    found = served(machine, port)
    assert isinstance(found, Discovery)
    return found


def curl(machine: Machine, container: Container, *words: str) -> Any:
    return machine.run(container, ["curl", "-s", *words]).out


def test_consul_keeps_who_registered_until_somebody_deregisters_it(machine: Machine) -> None:
    container = machine.container("hashicorp/consul")
    shell = machine.idle("curlimages/curl")
    machine.clock.advance(5)
    catalogue = registry(machine, 8500)
    before = catalogue.epoch
    catalogue.register("srv-geo", "10.244.1.7", 8083)
    assert catalogue.epoch > before
    listed = json.loads(curl(machine, shell, "localhost:8500/v1/health/service/srv-geo"))
    assert [(row["Service"]["Address"], row["Service"]["Port"]) for row in listed] == [("10.244.1.7", 8083)]
    body = json.dumps({"ID": "u-1", "Name": "srv-geo", "Address": "10.244.2.9", "Port": 8083})
    curl(machine, shell, "-X", "PUT", "-d", body, "localhost:8500/v1/agent/service/register")
    machine.clock.advance(3600)
    assert catalogue.instances("srv-geo") == [
        Instance("srv-geo", "10.244.1.7", 8083),
        Instance("srv-geo", "10.244.2.9", 8083),
    ]
    curl(machine, shell, "-X", "PUT", "localhost:8500/v1/agent/service/deregister/u-1")
    catalogue.deregister("srv-geo", "10.244.1.7", 8083)
    assert catalogue.instances("srv-geo") == []
    assert container.running


def test_nacos_forgets_who_falls_silent(machine: Machine) -> None:
    machine.container("nacos/nacos-server:2.0.1", env={"MODE": "standalone"})
    shell = machine.idle("curlimages/curl")
    machine.clock.advance(40)
    names = registry(machine, 8848)
    names.register("ts-order-service", "10.244.1.7", 12031)
    base = "localhost:8848/nacos/v1/ns"
    assert curl(machine, shell, "-X", "POST", f"{base}/instance?serviceName=ts-user-service&ip=10.1.1.1&port=1") == "ok"
    assert json.loads(curl(machine, shell, f"{base}/service/list?pageNo=1&pageSize=10"))["doms"] == [
        "ts-order-service",
        "ts-user-service",
    ]
    for _ in range(5):
        machine.clock.advance(5)
        names.register("ts-order-service", "10.244.1.7", 12031)
    assert names.instances("ts-order-service") == [Instance("ts-order-service", "10.244.1.7", 12031)]
    assert names.instances("ts-user-service") == []
    before = names.epoch
    machine.clock.advance(20)
    assert names.instances("ts-order-service") == []
    assert names.epoch > before
    [host] = json.loads(curl(machine, shell, f"{base}/instance/list?serviceName=ts-order-service"))["hosts"]
    assert host["healthy"] is False
    machine.clock.advance(30)
    assert json.loads(curl(machine, shell, f"{base}/instance/list?serviceName=ts-order-service"))["hosts"] == []


def test_nacos_needs_its_database(machine: Machine) -> None:
    env = {"SPRING_DATASOURCE_PLATFORM": "mysql", "MYSQL_SERVICE_HOST": "10.244.1.5", "MYSQL_SERVICE_PORT": "3306"}
    env |= {"MYSQL_SERVICE_USER": "nacos", "MYSQL_SERVICE_PASSWORD": "n", "MYSQL_SERVICE_DB_NAME": "nacos"}
    container = machine.container("nacos/nacos-server:2.0.1", env=env)
    machine.clock.advance(40)
    assert container.done.value.code == 1
    assert "No DataSource set" in container.log.text()
    environment = {"MYSQL_ROOT_PASSWORD": "r", "MYSQL_DATABASE": "nacos", "MYSQL_USER": "nacos", "MYSQL_PASSWORD": "n"}
    machine.container("radondb/percona:5.7.34", env=environment)
    machine.clock.advance(20)
    again = machine.container("nacos/nacos-server:2.0.1", env=env)
    machine.clock.advance(40)
    assert again.running, again.log.text()
    assert "Nacos started successfully" in again.log.text()
