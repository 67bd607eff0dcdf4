"""Workloads by the names of their objects: controllers append generated suffixes to the names of what they create."""

from __future__ import annotations

import re

_SAFE = "[bcdfghjklmnpqrstvwxz2456789]"  # the alphabet of names that Kubernetes generates: no vowels, no words
_HASH, _RANDOM = f"-{_SAFE}{{6,10}}", f"-{_SAFE}{{5}}"
_ORDINAL, _SCHEDULED = r"-\d{1,3}", r"-\d{8,10}"
# Of pods: those of Deployments, of CronJobs, of StatefulSets, of DaemonSets and Jobs; the first match is cut off.
_SUFFIXES = {
    "Pod": rf"({_HASH}{_RANDOM}|{_SCHEDULED}{_RANDOM}|{_ORDINAL}|{_RANDOM})$",
    "ReplicaSet": rf"{_HASH}$",
    "Job": rf"{_SCHEDULED}$",
    "": rf"{_HASH}{_RANDOM}$",
}
_PATTERNS = {kind: re.compile(suffix) for kind, suffix in _SUFFIXES.items()}
_NUMBERED = re.compile(rf"{_ORDINAL}$")


def workload_of(name: str, kind: str = "") -> str:
    """The name of the workload that an object's name points to; the name itself if it was not generated."""
    return _PATTERNS.get(kind, _PATTERNS[""]).sub("", name)


def is_numbered(name: str) -> bool:
    """Whether a pod's name is one of a StatefulSet."""
    return bool(_NUMBERED.search(name))


def workload_sql(name: str, kind: str) -> str:
    """`workload_of` as a SQL expression over the expressions of a name and of a kind in any case."""
    cases = " ".join(
        f"WHEN lower({kind}) = '{of.lower()}' THEN regexp_replace({name}, '{suffix}', '')"
        for of, suffix in _SUFFIXES.items()
        if of
    )
    return f"CASE {cases} ELSE {name} END"
