"""`srearena record --itbench-names`: the shop's namespace as ITBench's data set has it, in every file."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from sre_tools.offline_incident_analysis import Workspace, call_tool
from srearena.observer.recording.itbench_names import rename_namespaces
from srearena.snapshots.examples import unpack


def test_whole_names_are_replaced_in_files_and_file_names(tmp_path: Path) -> None:
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "namespace_astronomy-shop_raw.tsv").write_text("not a whole name: my-astronomy-shop-2\n")
    (tmp_path / "objects.tsv").write_text('"namespace": "astronomy-shop"\thttp://cart.astronomy-shop.svc:8080\n')
    (tmp_path / "other.tsv").write_bytes(b"\xff hotel-reservation")
    key = tmp_path / "ground_truth.yaml"
    key.write_text("namespace: astronomy-shop\n")
    rename_namespaces(tmp_path / "metrics", tmp_path / "objects.tsv", tmp_path / "other.tsv", key)
    assert (tmp_path / "objects.tsv").read_text() == '"namespace": "otel-demo"\thttp://cart.otel-demo.svc:8080\n'
    assert [path.read_text() for path in (tmp_path / "metrics").iterdir()] == [
        "not a whole name: my-astronomy-shop-2\n"
    ]
    assert (tmp_path / "other.tsv").read_bytes() == b"\xff hotel-reservation"
    assert key.read_text() == "namespace: otel-demo\n"


def test_a_recording_of_the_shop_becomes_one_of_itbenchs_namespace(tmp_path: Path) -> None:
    scenarios = unpack(tmp_path / "data")
    shop = next(path for path in scenarios if "astronomy-shop" in (path / "ground_truth.yaml").read_text())
    rename_namespaces(shop)
    for path in shop.rglob("*"):
        assert not re.search(r"(?<![\w-])astronomy-shop(?![\w-])", path.name), path
        assert not path.is_file() or not re.search(rb"(?<![\w-])astronomy-shop(?![\w-])", path.read_bytes()), path
    key = yaml.safe_load((shop / "ground_truth.yaml").read_text())
    assert {group["namespace"] for group in key["groups"]} == {"otel-demo"}
    injected = [injection["args"]["kubernetesObject"] for row in key["disruptions"] for injection in row["injections"]]
    assert {obj["metadata"]["namespace"] for obj in injected} == {"otel-demo"}
    with Workspace(shop, cache=tmp_path / "cache") as workspace:
        for table in ("alerts", "events", "objects", "logs", "metrics"):
            rows = workspace.snapshot().rows(f"SELECT DISTINCT namespace FROM {table}")
            assert "otel-demo" in {row["namespace"] for row in rows}, table
        entities = [row["entity"] for row in call_tool(workspace, "change_impact")["data"]]
        assert any(entity.startswith("otel-demo/") for entity in entities)
