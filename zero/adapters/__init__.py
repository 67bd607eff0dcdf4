"""Adapters: one module per coding CLI."""

from zero.adapters.base import Adapter, Event, Invocation, Plan
from zero.adapters.registry import adapter, adapters, find

__all__ = ["Adapter", "Event", "Invocation", "Plan", "adapter", "adapters", "find"]
