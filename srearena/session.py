"""The session of the conductor, under its name in the original project."""

from srearena.conductor.session import Session, read_session

__all__ = ["Session", "read_session"]
