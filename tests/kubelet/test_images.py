"""Pulling images: what is there, what is not, and how the kubelet loses patience."""

from __future__ import annotations

import base64
from itertools import pairwise

import orjson
import pytest

from srearena.cluster.embedded.image_references import InvalidReference, parse_reference
from srearena.cluster.embedded.machine.images.catalogue import Catalogue, PullError, register_images
from tests.kubelet.harness import Lab

_NOT_FOUND = (
    'rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/nginx:1.99": '
    'failed to resolve reference "docker.io/library/nginx:1.99": docker.io/library/nginx:1.99: not found'
)


def test_an_unknown_tag_is_an_error_first_and_then_a_back_off(lab: Lab) -> None:
    lab.run(image="nginx:1.99")
    lab.pass_time(4)
    assert lab.status()["phase"] == "Pending"
    assert lab.waiting() == ("ErrImagePull", _NOT_FOUND)
    lab.pass_time(14)
    assert lab.waiting() == ("ImagePullBackOff", f'Back-off pulling image "nginx:1.99": ErrImagePull: {_NOT_FOUND}')
    failures = lab.messages(reason="Failed")
    assert f'Failed to pull image "nginx:1.99": {_NOT_FOUND}' in failures
    assert "Error: ErrImagePull" in failures
    assert "Error: ImagePullBackOff" in failures
    assert lab.messages(reason="BackOff") == ['Back-off pulling image "nginx:1.99"']
    assert lab.events(reason="BackOff")[0]["type"] == "Normal"


def test_pulls_are_tried_again_less_and_less_often(lab: Lab) -> None:
    lab.run(image="nginx:1.99")
    pulls: list[float] = []
    images = lab.kubelet.machine.images
    pull = images.pull

    async def counted(*arguments: object) -> object:
        pulls.append(lab.clock.now)
        return await pull(*arguments)  # type: ignore[arg-type]

    images.pull = counted  # type: ignore[assignment,method-assign]
    lab.pass_time(1500)
    gaps = [later - earlier for earlier, later in pairwise(pulls)]
    for gap, least in zip(gaps, (10, 20, 40, 80, 160, 300, 300), strict=False):
        assert least <= gap <= least + 20


def test_fixing_the_image_lets_the_pod_start(lab: Lab) -> None:
    lab.run(image="nginx:1.99")
    lab.pass_time(30)
    lab.client.modify("pods", "default", "web", lambda pod: pod["spec"]["containers"][0].update(image="nginx:1.27"))
    lab.pass_time(8)
    assert lab.is_ready()
    assert lab.container()["restartCount"] == 0


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (
            "acme/secret-sauce",
            "pull access denied, repository does not exist or may require authorization: server message: "
            "insufficient_scope: authorization failed",
        ),
        (
            "registry.nowhere.example/team/app:1",
            'failed to do request: Head "https://registry.nowhere.example/v2/team/app/manifests/1": dial tcp: '
            "lookup registry.nowhere.example on 172.18.0.1:53: no such host",
        ),
        ("quay.io/acme/none:1", "unexpected status from HEAD request to https://quay.io/v2/acme/none/manifests/1: 401"),
        ("ghcr.io/acme/none:1", "failed to authorize: failed to fetch anonymous token: unexpected status from GET"),
        ("registry.k8s.io/none:v1", "registry.k8s.io/none:v1: not found"),
    ],
)
def test_each_registry_refuses_in_its_own_words(lab: Lab, image: str, words: str) -> None:
    lab.run(image=image)
    lab.pass_time(4)
    reason, message = lab.waiting()
    assert reason == "ErrImagePull"
    assert words in message


def test_a_malformed_name_is_never_pulled(lab: Lab) -> None:
    lab.run(image="Nginx")
    lab.pass_time(4)
    problem = (
        'Failed to apply default image tag "Nginx": couldn\'t parse image name "Nginx": '
        "invalid reference format: repository name (library/Nginx) must be lowercase"
    )
    assert lab.waiting() == ("InvalidImageName", problem)
    assert lab.messages(reason="InspectFailed") == [problem]
    assert not lab.events(reason="Pulling")


def test_pull_policy_never_needs_the_image_on_the_machine(lab: Lab) -> None:
    lab.run(image="redis:7", imagePullPolicy="Never")
    lab.pass_time(4)
    message = 'Container image "redis:7" is not present with pull policy of Never'
    assert lab.waiting() == ("ErrImageNeverPull", message)
    lab.kubelet.machine.images.preload("redis:7")
    lab.pass_time(20)
    assert lab.is_ready()


def test_large_images_take_longer_and_hold_up_the_queue(lab: Lab) -> None:
    lab.run("large", "acme/large:1.0")
    lab.run("small", "busybox:1.36", command=["sleep", "1000"])
    lab.pass_time(4)
    assert not lab.is_ready("large")
    assert not lab.is_ready("small")
    lab.pass_time(10)
    assert lab.is_ready("small")
    [pulled] = lab.messages("large", "Pulled")
    assert pulled.startswith('Successfully pulled image "acme/large:1.0" in ')
    assert pulled.endswith("Image size: 370000217 bytes.")


def test_a_registry_out_of_reach_times_out_until_it_is_back(lab: Lab) -> None:
    lab.nodes.catalogue.unreachable["docker.io"] = "i/o timeout"
    lab.run()
    lab.pass_time(4)
    assert "lookup registry-1.docker.io: i/o timeout" in lab.waiting()[1]
    lab.nodes.catalogue.unreachable.clear()
    lab.pass_time(40)
    assert lab.is_ready()


def test_a_private_image_needs_a_pull_secret(lab: Lab) -> None:
    register_images("registry.acme-test.io/team/app", tags=["1.0"], private=True)
    lab.run(image="registry.acme-test.io/team/app:1.0", spec={"imagePullSecrets": [{"name": "regcred"}]})
    lab.pass_time(3)
    assert lab.waiting()[0] == "ErrImagePull"
    assert lab.messages(reason="FailedToRetrieveImagePullSecret") == [
        "Unable to retrieve some image pull secrets (regcred); attempting to pull the image may not succeed."
    ]
    config = orjson.dumps({"auths": {"registry.acme-test.io": {"auth": "YTpi"}}})
    lab.create(
        "secrets",
        {
            "kind": "Secret",
            "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": "regcred"},
            "data": {".dockerconfigjson": base64.b64encode(config).decode()},
        },
    )
    lab.pass_time(30)
    assert lab.is_ready()


def test_references_are_normalized_as_containerd_does() -> None:
    assert str(parse_reference("nginx")) == "docker.io/library/nginx:latest"
    assert str(parse_reference("acme/web:1")) == "docker.io/acme/web:1"
    assert str(parse_reference("localhost:5000/web")) == "localhost:5000/web:latest"
    digest = "sha256:" + "a" * 64
    assert str(parse_reference(f"quay.io/acme/web@{digest}")) == f"quay.io/acme/web@{digest}"


@pytest.mark.parametrize("text", ["", "acme/UPPER", "nginx:", "nginx:bad tag", "a//b", "nginx@sha256:short", "a" * 300])
def test_malformed_references_are_refused(text: str) -> None:
    with pytest.raises(InvalidReference):
        parse_reference(text)


@pytest.mark.parametrize("image", ["nginx:1.27-alpine", "postgres:16", "busybox:1.36", "redis:7.2.4", "mongo:4.4"])
def test_common_tags_are_known(image: str) -> None:
    assert Catalogue().find(parse_reference(image)).size > 0


def test_images_differ_in_size_and_known_sizes_are_exact() -> None:
    catalogue = Catalogue()
    images = [parse_reference(name) for name in ("redis:7.2.4", "redis:7.2.5", "mongo:4.4", "postgres:16")]
    sizes = [catalogue.find(image).size_of(image) for image in images]
    assert len(set(sizes)) == len(sizes)
    for image, size in zip(images, sizes, strict=True):
        assert 1 <= size / catalogue.find(image).size <= 1.05
    large = parse_reference("acme/large:1.0")
    assert catalogue.find(large).size_of(large) == 370_000_217


@pytest.mark.parametrize("image", ["nginx:v1.27", "postgres:99", "busybox:9", "redis:latestt", "mongo:4.4.x"])
def test_mistyped_tags_are_not(image: str) -> None:
    with pytest.raises(PullError, match="not found"):
        Catalogue().find(parse_reference(image))
