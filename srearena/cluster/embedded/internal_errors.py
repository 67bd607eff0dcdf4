"""Errors in the simulator's own code: logged and survived, and kept for the harness.

A process whose program fails by an error of ours ends as on a segmentation fault, and a request as with status 500. To
an agent these look like symptoms, so the harness must know that they are not.
"""

from __future__ import annotations

import logging

_KEPT = 20


class InternalErrors(logging.Handler):
    """Records what the embedded cluster logs as an error, while it runs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []
        """The first ones, one line each."""

    def install(self) -> None:
        logging.getLogger(__package__).addHandler(self)

    def remove(self) -> None:
        logging.getLogger(__package__).removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        if len(self.texts) < _KEPT:
            error = record.exc_info[1] if record.exc_info else None
            reason = f": {type(error).__name__}: {error}" if error is not None else ""
            self.texts.append(f"{record.getMessage()}{reason}".replace("\n", " "))
