"""Expressions of CEL: their types, values and errors."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from srearena.cluster.embedded.cel.compiled import Expression, compile
from srearena.cluster.embedded.cel.errors import CompileError, CostExceeded, EvaluationError
from srearena.cluster.embedded.cel.types import DYN, INT, STRING, ObjectType, list_of, map_of

OBJECT = {"spec": {"replicas": 3, "paused": False, "containers": [{"image": "a:1"}, {"image": "b:2"}]}, "data": {}}
VARIABLES = {"object": OBJECT, "number": 7, "self": {"size": 2, "tags": ["x", "y"]}}
TYPES = {
    "object": DYN,
    "number": INT,
    "self": ObjectType.of("Thing", {"size": INT, "tags": list_of(STRING), "labels": map_of(STRING, STRING)}),
}


def expression(source: str) -> Expression:
    return compile(source, TYPES)


def value(source: str) -> Any:
    return expression(source).evaluate(VARIABLES).value


@pytest.mark.parametrize(
    "source",
    [
        "object.spec.replicas == 3 && has(object.spec.paused) && !has(object.spec.minReadySeconds)",
        "object.spec.containers.all(c, c.image.contains(':')) && !object.spec.containers.exists(c, c.image == 'z')",
        "object.spec.containers.exists_one(c, c.image.startsWith('a')) && self.tags.size() == self.size",
        "object.spec.containers.map(c, c.image.split(':')[0]) == ['a', 'b']",
        "[1, 2, 3, 4].filter(n, n % 2 == 0).map(n, n * n) == [4, 16]",
        "['a', 'b'].transformMap(i, v, v + string(i)) == {0: 'a0', 1: 'b1'}",
        "object.?spec.?missing.orValue(5) == 5 && object.spec[?'replicas'].hasValue()",
        "-7 / 2 == -3 && -7 % 2 == -1 && 7.0 / 2.0 == 3.5 && 1 < 1.5 && 2u + 1u == 3u",
        "duration('90s') + duration('30s') == duration('2m') && timestamp('2024-02-29T12:00:00Z').getMonth() == 1",
        "timestamp('2024-01-01T00:00:00Z') + duration('24h') > timestamp('2024-01-01T23:59:59Z')",
        "'%s has %d'.format(['web', 3]) == 'web has 3'",
        "'Hello'.lowerAscii() == 'hello' && 'a-b-c'.replace('-', '.') == 'a.b.c' && 'abc'.substring(1, 2) == 'b'",
        "'image:v1.2'.find('v[0-9.]+') == 'v1.2' && 'aXbXc'.findAll('[a-c]') == ['a', 'b', 'c']",
        "[1, 2, 2].isSorted() && [1, 2].sum() == 3 && [3, 1].min() == 1 && ['b', 'a'].sort() == ['a', 'b']",
        "sets.contains(['a', 'b'], ['a']) && sets.intersects([1], [1, 2]) && sets.equivalent([1, 1], [1])",
        "quantity('1.5Gi').isGreaterThan(quantity('1Gi')) && quantity('500m').add(quantity('1')).compareTo(quantity('1500m')) == 0",  # noqa: E501
        "isQuantity('10Mi') && !isQuantity('ten') && quantity('5').asInteger() == 5",
        "ip('10.1.2.3').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.2.3') && !isIP('10.1')",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && cidr('192.168.3.4/24').masked() == cidr('192.168.3.0/24')",
        "url('https://example.com:80/a?b=c').getHostname() == 'example.com' && !isURL('example')",
        "semver('1.9.0').isLessThan(semver('1.10.0')) && isSemver('v1.2', true) && semver('1.2.3-rc.1').major() == 1",
        "type(1) == int && type('') != type(b'') && type(object) == map",
        "true || object.nothing && (object.nothing == 1 || true)",
        r"'\u00e9\n' == 'é' + '\n' && r'\d' == '\\d' && b'\x41' == b'A' && '''a'b''' == 'a\'b'",
        "{'a': 1, ?'b': optional.none()}.size() == 1 && [?optional.of(1)] == [1]",
        "null == object.?spec.?missing.orValue(null)",
        "!(dyn(1) in {true: 2}) && dyn(1.0) in {1: 2} && dyn(1) == dyn(1.0) && dyn(1) != dyn('1')",
    ],
)
def test_it_holds(source: str) -> None:
    assert value(source) is True


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("self.size > '1'", "found no matching overload for '_>_' applied to '(int, string)'"),
        ("'a' + number", "found no matching overload for '_+_' applied to '(string, int)'"),
        ("self.colour", "undefined field 'colour'"),
        ("nobody == 1", "undeclared reference to 'nobody' (in container '')"),
        ("number.startsWith('a')", "found no matching overload for 'startsWith' applied to 'int.(string)'"),
        ("shout('a')", "undeclared reference to 'shout' (in container '')"),
        ("number.size", "type 'int' does not support field selection"),
        ("[1, 'a']", "expected type 'int' but found 'string'"),
        ("number.all(x, x)", "expression of type 'int' cannot be range of a comprehension"),
        ("'a'.matches('[')", "invalid matches argument"),
        ("duration('soon')", "invalid duration argument"),
        ("1 +", "Syntax error: mismatched input '<EOF>' expecting"),
        ("(1", "Syntax error: missing ')' at '<EOF>'"),
        ("[1, 2", "Syntax error: mismatched input '<EOF>' expecting {']', ','}"),
        ("{'a' 1}", "Syntax error: missing ':' at '1'"),
        ("object.", "Syntax error: no viable alternative at input '.'"),
        ("&& true", "Syntax error: extraneous input '&&' expecting {"),
        ("'open", "Syntax error: token recognition error at: ''open'"),
        ("cel.bind(n, 1, n)", "undeclared reference to 'cel' (in container '')"),
        ("[1].all(x, x)", "expected type 'bool' but found 'int'"),
        ("1 2", "Syntax error: extraneous input '2' expecting <EOF>"),
        ("number ; 1", "Syntax error: token recognition error at: ';'"),
        ("package", "reserved identifier: package"),
        ("has(number)", "invalid argument to has() macro"),
        ("9223372036854775808", "invalid int literal"),
    ],
)
def test_it_does_not_compile(source: str, problem: str) -> None:
    with pytest.raises(CompileError) as raised:
        expression(source)
    assert problem in str(raised.value)


def test_problems_are_shown_at_their_place() -> None:
    with pytest.raises(CompileError) as raised:
        expression("self.size > 0 &&\n  self.colour == 'red'")
    assert str(raised.value) == ("ERROR: <input>:2:7: undefined field 'colour'\n |   self.colour == 'red'\n | ......^")


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("object.spec.nothing == 1", "no such key: nothing"),
        ("object.spec.containers[5]", "index out of bounds: 5"),
        ("number / 0", "division by zero"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("object.spec.replicas + 'a'", "no such overload"),
        ("!object.spec.replicas", "no such overload"),
        ("quantity('ten')", "quantities must match the regular expression"),
        ("int('x')", "type conversion error from 'string' to 'int'"),
        ("object.spec.containers.all(c, c.name == 'a')", "no such key: name"),
        ("optional.none().value()", "optional.none() dereference"),
    ],
)
def test_it_has_no_value(source: str, problem: str) -> None:
    with pytest.raises(EvaluationError) as raised:
        value(source)
    assert problem in str(raised.value)


def test_endless_work_is_cut_short() -> None:
    nested = "lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).all(c, a + b + c >= 0)))"
    with pytest.raises(CostExceeded, match="operation cancelled: actual cost limit exceeded"):
        value(nested)


def test_a_cluster_without_expressions_does_not_load_the_language() -> None:
    code = (
        "import sys, srearena.cluster.embedded.assembly\n"
        "sys.exit(any(name.startswith('srearena.cluster.embedded.cel.') and not name.endswith('.errors') "
        "for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
