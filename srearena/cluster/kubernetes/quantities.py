"""Parsing Kubernetes quantities (`250m`, `1Gi`)."""

from __future__ import annotations

_SUFFIXES = {
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    "": 1.0,
    **{letter: 1000.0**power for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", 1)},
}


def parse_quantity(text: object) -> float:
    """Parse a quantity; 0 where the text is none."""
    word = str(text if text is not None else "")
    number = word.rstrip("numkKMGTPEi") if not word[-1:].isdigit() else word
    try:
        return float(number) * _SUFFIXES[word[len(number) :]]
    except (ValueError, KeyError):
        return 0.0
