"""Names of resources that amounts are given for: which exist, which are whole numbers, which may be overcommitted."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from srearena.cluster.embedded.quantity import Quantity, QuantityError, parse
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.label_syntax import qualified_name_errors
from srearena.cluster.embedded.registry.strategies.checks import NEGATIVE, Problems

HUGE_PAGES: Final = "hugepages-"
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
CONTAINER: Final = frozenset(_COMPUTE)
COUNTED: Final = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
QUOTA: Final = frozenset(
    {
        *_COMPUTE,
        *(f"requests.{name}" for name in _COMPUTE),
        *(f"limits.{name}" for name in _COMPUTE),
        "requests.storage",
        *COUNTED,
    }
)
STANDARD: Final = QUOTA | {"storage"}


def is_huge_pages(name: str) -> bool:
    return name.startswith(HUGE_PAGES)


def is_quota_huge_pages(name: str) -> bool:
    return name.startswith((HUGE_PAGES, "requests.hugepages-"))


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


@lru_cache(maxsize=1024)
def is_extended(name: str) -> bool:
    """A resource of a device plug-in, such as `nvidia.com/gpu`."""
    if is_native(name) or name.startswith("requests."):
        return False
    return not qualified_name_errors(f"requests.{name}")


def is_overcommittable(name: str) -> bool:
    return is_native(name) and not is_huge_pages(name)


@lru_cache(maxsize=1024)
def name_errors(name: str) -> tuple[str, ...]:
    """What keeps a name from being any resource at all."""
    found = qualified_name_errors(name)
    if not found and "/" not in name and name not in STANDARD and not is_quota_huge_pages(name):
        return ("must be a standard resource type or fully qualified",)
    return found


@lru_cache(maxsize=1024)
def container_name_errors(name: str) -> tuple[str, ...]:
    found = list(name_errors(name))
    if "/" not in name:
        if name not in CONTAINER and not is_huge_pages(name):
            found.append("must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        found.append("doesn't follow extended resource name standard")
    return tuple(found)


@lru_cache(maxsize=4096)
def _amount_errors(name: str, text: str) -> tuple[str, ...]:
    amount = parse(text)
    found = [NEGATIVE] if amount.nano < 0 else []
    if (name in COUNTED or is_extended(name)) and amount.milli_value() % 1000:
        found.append("must be an integer")
    return tuple(found)


def amount(problems: Problems, path: str, name: str, text: str) -> None:
    """What an amount of a resource may be."""
    for error in _amount_errors(name, text):
        problems.append(FieldError.invalid(path, text, error))


@lru_cache(maxsize=256)
def _page_size(name: str) -> Quantity | None:
    try:
        return parse(name.removeprefix(HUGE_PAGES))
    except QuantityError:
        return None


def huge_pages_error(name: str, text: str) -> str:
    """Huge pages come whole."""
    size = _page_size(name)
    whole = size is not None and size.nano > 0 and size.milli_value() % 1000 == 0
    if whole and size is not None and parse(text).value() % size.value() == 0:
        return ""
    return f"{text} is not positive integer multiple of {name}"
