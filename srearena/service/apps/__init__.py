"""The applications: one folder each, with metadata, manifests, a model of its programs, and an optional class."""

from srearena.service.apps.base import Application
from srearena.service.apps.registry import all_applications, find_application

__all__ = ["Application", "all_applications", "find_application"]
