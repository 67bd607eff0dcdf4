"""The session of the conductor, under the name users of the original project know."""

from srearena.conductor.session import Session, read_session

__all__ = ["Session", "read_session"]
