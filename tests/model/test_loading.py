"""Models as people write them: what is right loads, and what is wrong is named with file, place and reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.application_model import ModelError, load_model
from srearena.application_model.amounts import seconds, size
from srearena.cluster import start_embedded

APPLICATIONS = Path(__file__).parents[2] / "srearena" / "service" / "apps"

GOOD = """
application: shop
programs:
  - name: base
    abstract: true
    runtime: go
    settings: {port: {env: PORT, default: 8080}}
    operations: {work: {cpu: 1ms}}
  - name: web
    extends: base
    images: [acme/web]
    settings: {peer: {env: PEER}}
    dependencies: {peer: {address: '${peer}', protocol: grpc}}
    listen: [{port: '${port}'}]
    operations: {page: {route: GET /, does: [{call: peer work}]}}
"""


def written(folder: Path, text: str) -> Path:
    (folder / "model.yaml").write_text(text)
    return folder


@pytest.mark.parametrize(
    "folder", sorted(path.parent for path in APPLICATIONS.glob("*/model.yaml")), ids=lambda p: p.name
)
def test_every_application_has_a_model_that_loads(folder: Path) -> None:
    model = load_model(folder)
    assert model.programs
    assert all(program.images for program in model.programs)


def test_a_program_takes_over_what_it_extends(tmp_path: Path) -> None:
    (web,) = load_model(written(tmp_path, GOOD)).programs
    assert set(web.settings) == {"port", "peer"}
    assert set(web.operations) == {"work", "page"}


@pytest.mark.parametrize(
    ("old", "new", "place", "reason"),
    [
        ("cpu: 1ms", "cpu: soon", "programs[web].operations.work.cpu", "is not a duration"),
        ("call: peer work", "call: pear work", "programs[web]", "'pear'"),
        ("runtime: go", "runtime: cobol", "programs[web].runtime", "go"),
        ("extends: base", "extends: bass", "programs[1].extends", "'bass'"),
        ("address: '${peer}', ", "", "programs[web].dependencies.peer", "address"),
        ("route: GET /,", "route: GET /, colour: red,", "programs[web].operations.page.colour", "not permitted"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, old: str, new: str, place: str, reason: str) -> None:
    folder = written(tmp_path, GOOD.replace(old, new))
    with pytest.raises(ModelError) as caught:
        load_model(folder)
    message = str(caught.value)
    assert str(folder / "model.yaml") in message and place in message and reason in message
    assert "\n" not in message


def test_broken_yaml_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"model\.yaml, line [34]"):
        load_model(written(tmp_path, "application: shop\nprograms:\n  - name: [web\n"))


def test_a_missing_or_empty_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read"):
        load_model(tmp_path)
    with pytest.raises(ModelError, match="programs"):
        load_model(written(tmp_path, ""))


def test_a_bad_model_starts_nothing(tmp_path: Path) -> None:
    folder = written(tmp_path, GOOD.replace("cpu: 1ms", "cpu: soon"))
    with pytest.raises(ModelError, match="is not a duration"):
        start_embedded(models=[folder])


@given(st.text())
def test_any_text_is_a_model_or_a_clear_error(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.yaml"
        path.write_text(text, encoding="utf-8", newline="")
        try:
            load_model(path)
        except ModelError as problem:
            assert str(path) in str(problem)


@given(st.floats(0, 1e6, allow_nan=False))
def test_durations_and_sizes_mean_the_same_in_all_units(value: float) -> None:
    text = f"{value:.6f}"
    assert seconds(f"{text}s") == pytest.approx(float(text))
    assert seconds(f"{text}ms") == pytest.approx(float(text) / 1000)
    assert seconds(f"{text}m") == pytest.approx(float(text) * 60)
    assert size(f"{text}Ki") == pytest.approx(float(text) * 1024, abs=1)
