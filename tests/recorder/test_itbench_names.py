"""`srearena record --itbench-names`: the shop's namespace as ITBench's data set has it, in every file."""

from __future__ import annotations

from pathlib import Path

from srearena.observer.recording.itbench_names import rename_namespaces


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
