"""Authors of changes: the field managers under which people and deployment pipelines write to a cluster.

Faults and innocent changes draw their author from the same distribution, so that `managedFields` do not tell them
apart. Names are those that the tools send: Argo CD, Helm, Rancher Fleet, Terraform, k9s, and kubectl's commands.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

__all__ = ["OPERATOR", "Author", "draw_author", "managers"]


@dataclass(frozen=True, slots=True)
class Author:
    """Who writes: the field managers of its updates and of the objects that it creates."""

    updates_as: str
    creates_as: str


OPERATOR = Author("kubectl-edit", "kubectl-create")
"""A person with an editor; the author where none is drawn."""
_AUTHORS: tuple[tuple[Author, int], ...] = (
    (Author("argocd-controller", "argocd-controller"), 4),
    (Author("helm", "helm"), 4),
    (Author("fleetagent", "fleetagent"), 2),
    (Author("Terraform", "Terraform"), 2),
    (Author("kubectl-client-side-apply", "kubectl-client-side-apply"), 3),
    (OPERATOR, 3),
    (Author("kubectl-patch", "kubectl-create"), 2),
    (Author("k9s", "k9s"), 1),
)
"""Each with its weight: somewhat more changes come from pipelines than from people."""


def managers() -> frozenset[str]:
    """The field managers of all authors."""
    return frozenset(name for author, _ in _AUTHORS for name in (author.updates_as, author.creates_as))


def draw_author(stream: random.Random) -> Author:
    authors, weights = zip(*_AUTHORS, strict=True)
    chosen: Author = stream.choices(authors, weights)[0]
    return chosen
