"""Which program an image runs, and how others add theirs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

from srearena.cluster.embedded.machine.images.image_names import ImageReference
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs import registry
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.generic import GenericServer
from srearena.cluster.embedded.programs.registry import program, program_for, registered_images
from tests.containers.machine import Machine


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nginx", ("docker.io", "nginx", "latest", "")),
        ("nginx:1.27-alpine", ("docker.io", "nginx", "1.27-alpine", "")),
        ("library/redis:7", ("docker.io", "redis", "7", "")),
        ("docker.io/library/busybox", ("docker.io", "busybox", "latest", "")),
        ("localhost:5000/team/app:v1", ("localhost:5000", "team/app", "v1", "")),
        ("registry.k8s.io/pause@sha256:abcd", ("registry.k8s.io", "pause", "", "sha256:abcd")),
        ("ghcr.io/a/b/c:1@sha256:00", ("ghcr.io", "a/b/c", "1", "sha256:00")),
    ],
)
def test_image_references_are_understood(text: str, expected: tuple[str, str, str, str]) -> None:
    reference = ImageReference.parse(text)
    assert (reference.registry, reference.repository, reference.tag, reference.digest) == expected


@pytest.mark.parametrize(
    "image", ["nginx", "docker.io/library/nginx:1", "mirror.corp:5000/hub/library/nginx@sha256:00", "NGINX:latest"]
)
def test_an_image_is_known_in_any_registry_and_tag(image: str) -> None:
    assert type(program_for(image)).__name__ == "Nginx"


def test_a_tag_may_change_the_userland() -> None:
    assert program_for("redis:7").family.name == "debian"
    assert program_for("redis:7-alpine").family.name == "alpine"
    assert program_for("busybox:1.36-glibc").family.name == "busybox"
    assert program_for("nginx:1.27.2").version == "1.27.2"


def test_an_unknown_image_is_a_generic_server() -> None:
    assert isinstance(program_for("acme/whatever:3"), GenericServer)
    assert "acme/whatever" not in registered_images()


@pytest.fixture
def clean_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    registered_images()
    monkeypatch.setattr(registry, "_programs", dict(registry._programs))
    program_for.cache_clear()
    yield
    program_for.cache_clear()


def test_an_application_plugs_its_program_in(machine: Machine, clean_registry: None) -> None:
    @program("acme/greeter")
    class Greeter(Program):
        entrypoint = ("/greet",)
        base = "distroless"
        binaries = ("/greet",)

        async def run(self, process: Process) -> int:
            await process.write(f"hello {process.env.get('WHO', 'world')}\n")
            return 0

    container = machine.container("registry.example/acme/greeter:9", env={"WHO": "you"})
    machine.clock.advance(1)
    assert container.log.text() == "hello you\n"
    assert "acme/greeter" in registered_images()


def test_programs_are_found_through_entry_points_and_a_broken_plugin_only_warns(
    monkeypatch: pytest.MonkeyPatch, clean_registry: None
) -> None:
    entries = [
        EntryPoint("good", "tests.containers.plugin", registry.ENTRY_POINTS),
        EntryPoint("broken", "tests.containers.no_such_module", registry.ENTRY_POINTS),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: entries if group == registry.ENTRY_POINTS else [])
    registry._discover.cache_clear()
    with pytest.warns(UserWarning, match="programs of broken"):
        found = program_for("acme/from-a-plugin:1")
    assert type(found).__name__ == "FromPlugin"
