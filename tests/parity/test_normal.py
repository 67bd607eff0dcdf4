"""The normaliser takes out what a cluster draws or measures, and keeps what an operator acts on."""

from __future__ import annotations

import pytest

from tests.parity.normal import normal_events, normal_text, replaced


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pod/web-5d8f7c9b6-x2x4z created", "pod/web-<hash>-<id> created"),
        ("replicaset.apps/web-5d8f7c9b6", "replicaset.apps/web-<hash>"),
        ("kube-api-access-b7c2x", "kube-api-access-<id>"),
        ("dial tcp 10.244.1.7:81: connect: connection refused", "dial tcp <ip>:81: connect: connection refused"),
        ("delay=0s timeout=1s period=10s", "delay=0s timeout=1s period=10s"),
        ("0/3 nodes are available: 3 Insufficient cpu.", "0/3 nodes are available: 3 Insufficient cpu."),
        ("pod-runs crash-loop missing-secret-volume", "pod-runs crash-loop missing-secret-volume"),
    ],
)
def test_placeholders(text: str, expected: str) -> None:
    assert replaced(text) == expected


def test_tables_keep_every_cell_but_ages_and_sort_their_rows() -> None:
    table = (
        "NAME                  READY   STATUS    RESTARTS     AGE\n"
        "web-5d8f7c9b6-zzz2z   0/1     Error     2 (3s ago)   9s\n"
        "web-5d8f7c9b6-x2x4z   1/1     Running   0            12m\n"
    )
    assert normal_text(table).splitlines() == [
        "NAME | READY | STATUS | RESTARTS | AGE",
        "web-<hash>-<id> | 0/1 | Error | 2 (<age> ago) | <age>",
        "web-<hash>-<id> | 1/1 | Running | 0 | <age>",
    ]


def test_the_data_of_a_secret_have_no_order() -> None:
    shown = "Type:  Opaque\n\nData\n====\nuser:      3 bytes\npassword:  1 bytes\n"
    assert normal_text(shown) == "Type:  Opaque\n\nData\n====\npassword:  1 bytes\nuser:  3 bytes\n"


def test_objects_lose_their_identity_only() -> None:
    shown = normal_text(
        '{"kind":"Pod","metadata":{"name":"a","uid":"x","resourceVersion":"7"},"status":{"phase":"Failed"}}'
    )
    assert shown == "kind: Pod\nmetadata:\n  name: a\nstatus:\n  phase: Failed\n"


def test_events_of_one_kind_are_one_line() -> None:
    event = {"type": "Warning", "reason": "BackOff", "involvedObject": {"kind": "Pod", "name": "a"}, "message": "m"}
    assert normal_events([event, dict(event)]) == "Warning BackOff Pod/a: m\n"
