"""What kubectl ends with when it does not do what was asked."""

from __future__ import annotations

from srearena.cluster.embedded.programs.toolboxes.cluster_api import ApiFailure


class KubectlError(Exception):
    """Ends the command with status 1; the text is the whole message."""


def from_server(failure: ApiFailure) -> KubectlError:
    """In kubectl's words."""
    if failure.status == 0:
        return KubectlError(f"Unable to connect to the server: {failure.message.partition(': ')[2]}")
    reason = failure.reason
    return KubectlError(f"Error from server ({reason}): {failure.message}" if reason else f"error: {failure.message}")
