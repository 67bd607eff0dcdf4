"""Label selectors as Go prints them, for messages that carry one in full."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj


def printed_selector(selector: Obj | None) -> str:
    """A pointer to a LabelSelector, as `%v` shows it."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{e.get('key')},Operator:{e.get('operator')},Values:[{' '.join(_values(e))}],}},"
        for e in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def _values(expression: Obj) -> list[str]:
    return [str(value) for value in expression.get("values") or ()]
