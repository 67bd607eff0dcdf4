"""Kubernetes objects, times and quantities for program models that talk to the Kubernetes API."""

from srearena.cluster.embedded.durations import format_micro_time, format_time, parse_time
from srearena.cluster.embedded.objects import (
    Obj,
    annotations_of,
    condition_is,
    controller_of,
    copy_of,
    dig,
    is_terminating,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
    uid_of,
    with_condition,
)
from srearena.cluster.embedded.programs.toolboxes.cluster_api import (
    JSON_PATCH,
    MERGE_PATCH,
    ApiFailure,
    ApiPath,
    ClusterApi,
    NotInCluster,
)
from srearena.cluster.embedded.quantity import parse

__all__ = [
    "JSON_PATCH",
    "MERGE_PATCH",
    "ApiFailure",
    "ApiPath",
    "ClusterApi",
    "NotInCluster",
    "Obj",
    "annotations_of",
    "condition_is",
    "controller_of",
    "copy_of",
    "dig",
    "format_micro_time",
    "format_time",
    "is_terminating",
    "key_of",
    "labels_of",
    "name_of",
    "namespace_of",
    "owner_reference",
    "parse",
    "parse_time",
    "uid_of",
    "with_condition",
]
