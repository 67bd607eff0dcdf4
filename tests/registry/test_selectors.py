"""Selectors: what they match, how they print, and that nothing a client sends breaks them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.registry.field_selectors import (
    custom_field_labels,
    field_labels,
    parse_field_selector,
)
from srearena.cluster.embedded.registry.selectors import (
    LabelSelector,
    Operator,
    Requirement,
    SelectorError,
    label_selector_of,
    label_set_selector,
    parse_label_selector,
)

names = st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,8}[A-Za-z0-9])?", fullmatch=True)
label_keys = names | st.builds("{}/{}".format, st.sampled_from(["example.com", "k8s.io"]), names)
label_values = names | st.just("")
labels = st.dictionaries(label_keys, label_values, max_size=4)


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    key, operator = draw(label_keys), draw(st.sampled_from(list(Operator)))
    if operator in (Operator.EXISTS, Operator.ABSENT):
        return Requirement(key, operator)
    if operator in (Operator.GREATER, Operator.LESS):
        return Requirement(key, operator, (str(draw(st.integers(0, 10**6))),))
    most = 3 if operator in (Operator.IN, Operator.NOT_IN) else 1
    values = draw(st.sets(label_values, min_size=1, max_size=most))
    return Requirement(key, operator, tuple(sorted(values)))


selectors = st.lists(requirements(), max_size=4).map(lambda found: LabelSelector(tuple(found)))


@given(selectors)
def test_a_selector_printed_and_parsed_is_the_same(selector: LabelSelector) -> None:
    assert parse_label_selector(str(selector)) == selector


@given(selectors, labels)
def test_a_selector_matches_when_each_of_its_requirements_does(selector: LabelSelector, found: dict[str, str]) -> None:
    assert selector.matches(found) == all(requirement.matches(found) for requirement in selector.requirements)


@given(st.text(max_size=30))
def test_any_text_is_a_selector_or_a_bad_request(text: str) -> None:
    for parse in (parse_label_selector, parse_field_selector):
        try:
            parse(text)
        except ApiError as refusal:
            assert refusal.code == 400


@given(st.text("ab=!()<>, in\\.", max_size=30))
def test_whatever_parses_prints_as_something_that_parses_to_the_same(text: str) -> None:
    for parse in (parse_label_selector, parse_field_selector):
        try:
            parsed = parse(text)
        except SelectorError:
            continue
        assert parse(str(parsed)) == parsed


@given(labels, labels)
def test_plain_labels_select_their_supersets(wanted: dict[str, str], found: dict[str, str]) -> None:
    expected = wanted.items() <= found.items()
    assert label_set_selector(wanted).matches(found) is expected
    assert label_selector_of({"matchLabels": wanted}).matches(found) is expected
    assert label_set_selector(wanted).matches({**found, **wanted})


@pytest.mark.parametrize(
    ("text", "found", "expected"),
    [
        ("", {}, True),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("a!=b", {}, True),
        ("a notin (b)", {"a": "b"}, False),
        ("a>3", {"a": "4"}, True),
        ("a>3", {"a": "x"}, False),
        ("a<3", {"a": "2"}, True),
        ("a in (b, c)", {"a": "c"}, True),
        ("a in (b,)", {"a": ""}, True),
    ],
)
def test_label_selectors_match(text: str, found: dict[str, str], expected: bool) -> None:
    assert parse_label_selector(text).matches(found) is expected


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert not label_selector_of(None).matches({"a": "b"})
    assert label_selector_of({}).matches({"a": "b"})
    assert label_selector_of({}).empty
    assert not label_selector_of(None).empty


def test_expressions_are_compiled_and_unknown_operators_refused() -> None:
    selector = label_selector_of(
        {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["a", "b"]},
                {"key": "old", "operator": "DoesNotExist"},
            ],
        }
    )
    assert str(selector) == "app=web,!old,tier in (a,b)"
    assert selector.matches({"app": "web", "tier": "b"})
    assert not selector.matches({"app": "web", "tier": "b", "old": ""})
    with pytest.raises(SelectorError, match='"Near" is not a valid label selector operator'):
        label_selector_of({"matchExpressions": [{"key": "a", "operator": "Near"}]})
    with pytest.raises(SelectorError, match="values set can't be empty"):
        label_selector_of({"matchExpressions": [{"key": "a", "operator": "In"}]})


def test_exact_values_can_be_asked_for() -> None:
    assert parse_label_selector("a=b,c in (d),e in (f,g)").exact("c") == "d"
    assert parse_label_selector("a=b").exact("x") is None
    assert parse_field_selector("metadata.name=x,spec.nodeName!=y").exact("metadata.name") == "x"
    assert parse_field_selector("metadata.name=x,spec.nodeName!=y").exact("spec.nodeName") is None


POD = {
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"nodeName": "n1", "restartPolicy": "Always", "hostNetwork": True},
    "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.7"}]},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("metadata.name=web", True),
        ("metadata.namespace!=shop", False),
        ("spec.nodeName=n1,status.phase!=Failed", True),
        ("spec.hostNetwork=true", True),
        ("status.podIP==10.0.0.7", True),
        ("status.nominatedNodeName=", True),
        ("status.podIPs=10.0.0.7", False),
        ("spec.host=n1", True),
    ],
)
def test_pods_are_selected_by_their_fields(text: str, expected: bool) -> None:
    assert parse_field_selector(text).bind(field_labels("", "Pod"))(POD) is expected


@pytest.mark.parametrize(
    ("group", "kind", "field", "message"),
    [
        ("", "Pod", "spec.x", "field label not supported: spec.x"),
        ("", "Node", "metadata.namespace", "field label not supported: metadata.namespace"),
        ("batch", "Job", "a", 'field label "a" not supported for Job'),
        (
            "apps",
            "Deployment",
            "status.replicas",
            '"status.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
    ],
)
def test_other_fields_are_refused_in_the_words_of_the_kind(group: str, kind: str, field: str, message: str) -> None:
    with pytest.raises(SelectorError) as refusal:
        parse_field_selector(f"{field}=1").bind(field_labels(group, kind))
    assert refusal.value.message == message


def test_fields_that_are_not_set_have_their_zero_value() -> None:
    assert parse_field_selector("spec.unschedulable=false").bind(field_labels("", "Node"))({"metadata": {}})
    assert parse_field_selector("status.successful=0").bind(field_labels("batch", "Job"))({})


def test_an_event_is_found_by_either_spelling() -> None:
    event = {"involvedObject": {"kind": "Pod", "name": "web"}, "source": {"component": "kubelet"}, "type": "Normal"}
    core, events = field_labels("", "Event"), field_labels("events.k8s.io", "Event")
    assert parse_field_selector("involvedObject.name=web,source=kubelet").bind(core)(event)
    assert parse_field_selector("regarding.name=web,type=Normal").bind(events)(event)


def test_custom_resources_offer_the_fields_their_definition_names() -> None:
    offered = custom_field_labels([".spec.color", ".spec.size"])
    assert parse_field_selector("spec.color=red,spec.size=3").bind(offered)({"spec": {"color": "red", "size": 3}})
    with pytest.raises(SelectorError, match=r"field label not supported: metadata\.namespace"):
        parse_field_selector("metadata.namespace=x").bind(custom_field_labels(namespaced=False))
