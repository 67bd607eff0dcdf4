"""The applications: one folder each, with manifests, a model of what its programs do, metadata, and a small class."""

from srearena.service.apps.base import Application
from srearena.service.apps.registry import all_applications, find_application

__all__ = ["Application", "all_applications", "find_application"]
