"""Real applications and telemetry in images of our own, under the names that the shipped manifests use.

What the registries of Go modules and Debian packages offer is compiled or taken from this machine; the source of an
application comes from its project, as a folder that the caller names. Where a program stands in for another one, its
comment says so, and `LEFT_OUT` names the problems that would mean something else with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from srearena.generators.fault.actors import KUBECTL as ACTOR_IMAGE
from tests.real_cluster.compiling import SOURCES, Dependency, Program, SourceFolder
from tests.real_cluster.images import Image, debian_image, program_image, tar_layer
from tests.real_cluster.machines import RealClusterError

DASH = Path("/bin/dash")
MEMCACHED = Path("/usr/bin/memcached")
WRK = Path("/usr/bin/wrk")
KUBECTL = Path("/usr/bin/kubectl")
NODE_EXPORTER = Path("/usr/bin/prometheus-node-exporter")
PACKAGES = {
    DASH: "dash",
    MEMCACHED: "memcached",
    WRK: "wrk",
    KUBECTL: "kubernetes-client",
    NODE_EXPORTER: "prometheus-node-exporter",
}
"""Programs of this machine, and the Debian packages they come from."""

CONSUL = Dependency("consul", "github.com/hashicorp/consul", "v1.19.2", "docker.io/hashicorp/consul:latest")
JAEGER = Dependency(
    "all-in-one",
    "github.com/jaegertracing/jaeger/cmd/all-in-one",
    "v1.57.0",
    "docker.io/jaegertracing/all-in-one:1.57",
)
# MongoDB itself is in no registry of modules or packages.
MONGOD = Dependency(
    "mongod", "github.com/FerretDB/FerretDB/ferretdb", "v1.24.2", "docker.io/library/mongo:4.4.6", main="mongod"
)
KUBE_STATE_METRICS = Dependency(
    "kube-state-metrics",
    "k8s.io/kube-state-metrics/v2",
    "v2.18.0",
    "registry.k8s.io/kube-state-metrics/kube-state-metrics:v2.16.0",
)
# Debian's is built without service discovery for Kubernetes. The module's pages are not in it: there is only the API.
PROMETHEUS = Dependency(
    "prometheus",
    "github.com/prometheus/prometheus/cmd/prometheus",
    "v0.315.0",
    "docker.io/prom/prometheus:v3.5.0",
    tags="remove_all_sd,enable_kubernetes_sd",
)
_CONTRIB = "github.com/open-telemetry/opentelemetry-collector-contrib"
COLLECTOR = Dependency(
    "otelcol",
    f"{_CONTRIB}/connector/spanmetricsconnector",
    "v0.155.0",
    "docker.io/otel/opentelemetry-collector-contrib:0.132.0",
    main="otelcol",
    also=(
        f"{_CONTRIB}/receiver/jaegerreceiver",
        f"{_CONTRIB}/exporter/prometheusexporter",
        f"{_CONTRIB}/extension/healthcheckextension",
        "go.opentelemetry.io/collector/otelcol",
        "go.opentelemetry.io/collector/receiver/otlpreceiver",
        "go.opentelemetry.io/collector/processor/batchprocessor",
        "go.opentelemetry.io/collector/exporter/otlpexporter",
    ),
)
FORTIO = Dependency("fortio", "fortio.org/fortio", "v1.66.5", "docker.io/fortio/fortio:1.69.5")
NETCAT = Dependency("nc", "", "1", main="nc")
PROBE = "docker.io/library/busybox:1.36"

LEFT_OUT = {
    "misconfig_app_hotel_res": "its fault is a build with a bug, which cannot be made from the source",
    "faulty_image_correlated": "its fault is a build with a bug, which cannot be made from the source",
    "update_incompatible_correlated": "FerretDB reads its files in every version",
    "feature_flag_latent_bug": "the source has no such flag",
    "search_rate_retry_collapse": "the source does not read the settings that are its fault",
    "expired_tls": "no image of the ingress controller can be made",
    "ingress_misroute": "no image of the ingress controller can be made",
    "node_conntrack_exhaustion": "the nodes share the limit of one kernel, which the fault would reach for the machine",
    "auth_miss_mongodb": "FerretDB with SQLite has no users and no TLS",
    "revoke_auth_mongodb": "FerretDB with SQLite has no users",
    "storage_user_unregistered": "FerretDB with SQLite has no users",
}
"""Problems by the beginning of their ids, and why they mean nothing with these programs."""


@dataclass(frozen=True)
class Bundle:
    """Programs and images that belong together."""

    programs: Sequence[Program]
    images: Mapping[str, Image]
    machine: Sequence[Path] = ()

    def build(self) -> None:
        missing = sorted(PACKAGES[path] for path in self.machine if not path.exists())
        if missing:
            raise RealClusterError(f"missing on this machine: apt-get install {' '.join(missing)}")
        for program in self.programs:
            program.build()


def hotel_reservation(source: SourceFolder) -> Bundle:
    """DeathStarBench's Hotel Reservation with its stores, its registry, its traces and its load generator."""

    def services() -> bytes:
        return tar_layer(
            folders=("go", "go/bin", "workspace"),
            files={
                **{f"go/bin/{name}": content for name, content in source.programs().items()},
                "workspace/config.json": (source.folder / "config.json").read_bytes(),
            },
        )

    def paced_wrk() -> bytes:
        return tar_layer(
            folders=("usr/local", "usr/local/bin"),
            files={
                "usr/local/bin/wrk": (SOURCES / "wrk" / "wrk").read_bytes(),
                str(DASH).lstrip("/"): DASH.read_bytes(),
            },
            links={"bin/bash": "dash"},
        )

    search = "PATH=/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    wrk = debian_image(WRK, {"WorkingDir": "/tmp"})
    return Bundle(
        (CONSUL, JAEGER, MONGOD),
        {
            "docker.io/yinfangchen/hotelreservation:latest": Image(
                {"Env": [search], "WorkingDir": "/workspace"}, (services,)
            ),
            CONSUL.image: program_image(CONSUL, {"Cmd": ["agent", "-dev", "-client", "0.0.0.0"]}),
            JAEGER.image: program_image(JAEGER),
            MONGOD.image: program_image(MONGOD),
            "docker.io/library/memcached:latest": debian_image(
                MEMCACHED, {"Cmd": [str(MEMCACHED)], "User": "65534:65534"}
            ),
            "docker.io/deathstarbench/wrk2-client:latest": Image(wrk.config, (*wrk.layers, paced_wrk)),
        },
        (DASH, MEMCACHED, WRK),
    )


def probes() -> Bundle:
    """The image of the oracles' probes, with a `nc -z` as the published one has.

    The shell of Debian's busybox prefers its own nc to any other program of that name, so here `sh` is dash.
    """

    def tools() -> bytes:
        return tar_layer(
            files={
                str(DASH).lstrip("/"): DASH.read_bytes(),
                NETCAT.inside.lstrip("/"): NETCAT.path.read_bytes(),
            },
            links={"bin/sh": "dash"},
        )

    return Bundle((NETCAT,), {PROBE: Image({"Cmd": ["sh"]}, (tools,))}, (DASH,))


def actors() -> Bundle:
    """The images of faults that act in the cluster: a shell with kubectl and a load generator."""
    return Bundle(
        (FORTIO,),
        {
            f"docker.io/{ACTOR_IMAGE}": debian_image(KUBECTL, {"Entrypoint": ["kubectl"]}),
            FORTIO.image: program_image(FORTIO),
        },
        (KUBECTL,),
    )


def telemetry() -> Bundle:
    """The programs that are installed into `observe`, as far as they can be made here."""
    return Bundle(
        (KUBE_STATE_METRICS, PROMETHEUS, COLLECTOR, JAEGER),
        {
            COLLECTOR.image: program_image(COLLECTOR),
            # The second version differs in its configuration, of which nothing is used.
            "docker.io/jaegertracing/jaeger:2.9.0": program_image(JAEGER),
            KUBE_STATE_METRICS.image: program_image(KUBE_STATE_METRICS),
            PROMETHEUS.image: program_image(PROMETHEUS),
            "quay.io/prometheus/node-exporter:v1.9.1": debian_image(
                NODE_EXPORTER, {"Entrypoint": [str(NODE_EXPORTER)]}
            ),
        },
        (NODE_EXPORTER,),
    )


APPLICATIONS = {"hotel_reservation": hotel_reservation}
"""Applications that can be made from source, by the name that `--source` knows."""


def parse_source(text: str) -> SourceFolder:
    """`NAME=FOLDER`, as `--source` takes it."""
    name, separator, folder = text.partition("=")
    if not separator or name not in APPLICATIONS:
        raise RealClusterError(f"--source takes NAME=FOLDER, with NAME one of {', '.join(APPLICATIONS)}; not {text!r}")
    if not Path(folder).is_dir():
        raise RealClusterError(f"--source {name}: there is no folder {folder}")
    return SourceFolder(name, Path(folder).resolve())


def bundles(sources: Sequence[SourceFolder]) -> list[Bundle]:
    """What these sources need, built; with an application come probes, actors and telemetry."""
    chosen = [APPLICATIONS[source.name](source) for source in sources]
    if chosen:
        chosen += [probes(), actors(), telemetry()]
    for source in sources:
        source.build()
    for bundle in chosen:
        bundle.build()
    return chosen
