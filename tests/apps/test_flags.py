"""Flag definitions: what a file means, in whichever of the two forms it is written."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from srearena.service.apps.astronomy_shop.programs.flag_definitions import BadDefinitions, FlagDefinitions, FlagError

VALUES = st.one_of(st.booleans(), st.integers(-(2**53), 2**53), st.text(max_size=10))
NAMES = st.text("abcdefghijklmnopqrstuvwxyz-0123456789", min_size=1, max_size=12)


@st.composite
def flags(draw: st.DrawFn) -> dict[str, Any]:
    variants = draw(st.dictionaries(NAMES, VALUES, min_size=1, max_size=4))
    default = draw(st.sampled_from(sorted(variants)))
    return {"state": draw(st.sampled_from(["ENABLED", "DISABLED"])), "variants": variants, "defaultVariant": default}


@given(st.dictionaries(NAMES, flags(), max_size=5))
def test_a_flag_is_its_default_variant_in_json_and_in_yaml(definitions: dict[str, Any]) -> None:
    document = {"flags": definitions}
    written = (
        FlagDefinitions.parse(json.dumps(document).encode(), "flags.json"),
        FlagDefinitions.parse(yaml.safe_dump(document).encode(), "flags.yaml"),
    )
    for parsed in written:
        for name, flag in definitions.items():
            if flag["state"] == "DISABLED":
                with pytest.raises(FlagError) as refused:
                    parsed.evaluate(name)
                assert refused.value.code == "FLAG_DISABLED"
            else:
                found = parsed.evaluate(name)
                assert (found.variant, found.value) == (
                    flag["defaultVariant"],
                    flag["variants"][flag["defaultVariant"]],
                )


@given(st.binary(max_size=200), st.sampled_from(["flags.json", "flags.yaml"]))
def test_any_bytes_are_flags_or_refused(data: bytes, path: str) -> None:
    try:
        parsed = FlagDefinitions.parse(data, path)
    except BadDefinitions:
        return
    assert isinstance(parsed.names, list)


def test_on_and_off_are_words() -> None:
    text = b"flags:\n  a:\n    state: ENABLED\n    variants: {on: true, off: false}\n    defaultVariant: on\n"
    found = FlagDefinitions.parse(text, "flags.yaml").evaluate("a")
    assert (found.variant, found.value) == ("on", True)


@pytest.mark.parametrize(
    ("flag", "complaint"),
    [
        ({"variants": {"on": True}, "defaultVariant": "on"}, "state is required"),
        ({"state": "MAYBE", "variants": {"on": True}, "defaultVariant": "on"}, "state must be one of"),
        ({"state": "ENABLED", "variants": {}, "defaultVariant": "on"}, "Must have at least 1 properties"),
        ({"state": "ENABLED", "variants": {"on": True}, "defaultVariant": "of"}, "isn't a valid variant"),
    ],
)
def test_a_wrong_flag_is_named(flag: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadDefinitions, match=complaint) as refused:
        FlagDefinitions.parse(json.dumps({"flags": {"a": flag}}).encode(), "flags.json")
    assert "flags.a" in str(refused.value)
