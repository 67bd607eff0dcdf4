"""The tests of the suite outside [Conformance]: which of them are run, and why the others are not."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import yaml

HERE = Path(__file__).parent
NAMES = HERE / "others.txt"
EXCLUSIONS = HERE / "others.yaml"
CONFORMANCE = "[Conformance]"


class Exclusion(NamedTuple):
    pattern: re.Pattern[str]
    reason: str


def exclusions() -> list[Exclusion]:
    rows = yaml.safe_load(EXCLUSIONS.read_text())
    return [Exclusion(re.compile(row["pattern"]), row["reason"]) for row in rows]


def why_not(name: str, rules: Iterable[Exclusion]) -> str:
    """Why a test is not run; empty for one that is."""
    return next((rule.reason for rule in rules if rule.pattern.search(name)), "")


def all_names(program: Path, folder: Path) -> list[str]:
    """The names of all tests of the compiled suite."""
    report = folder / "all.json"
    words = ["--ginkgo.dry-run", f"--ginkgo.json-report={report}", "--ginkgo.silence-skips", "--provider=skeleton"]
    subprocess.run([str(program), *words], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    specs = json.loads(report.read_text())[0]["SpecReports"]
    return sorted({name_of(spec) for spec in specs if spec["LeafNodeType"] == "It"})


def name_of(spec: dict[str, object]) -> str:
    texts = spec.get("ContainerHierarchyTexts") or []
    assert isinstance(texts, list)
    return " ".join([*texts, str(spec["LeafNodeText"])])


def write_names(names: Iterable[str]) -> Counter[str]:
    """Write the names of the tests that are run; how many there are by why they are not run."""
    rules = exclusions()
    found = {name: why_not(name, rules) for name in names if CONFORMANCE not in name}
    NAMES.write_text("".join(f"{name}\n" for name, reason in found.items() if not reason))
    return Counter(found.values())
