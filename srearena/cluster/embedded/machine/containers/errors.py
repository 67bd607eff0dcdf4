"""Errors of containerd and runc for containers and commands that cannot be started, in their wording."""

from __future__ import annotations

import errno
import os
from random import Random

from srearena.cluster.embedded.machine.processes.execution import ExecError

_START = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
    "unable to start container process: error during container init: "
)


class RuntimeFailure(Exception):
    """A request failed; the message is the one the kubelet receives."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class CreateError(RuntimeFailure):
    """The container could not be created (CreateContainerError)."""


class StartError(RuntimeFailure):
    """The container was created but its process could not be started (RunContainerError, StartError, exit code 128)."""

    def __init__(self, cause: str) -> None:
        super().__init__(_START + cause)
        self.cause = cause

    @classmethod
    def of(cls, error: ExecError) -> StartError:
        return cls(lookup_error(error))


class ExecFailure(RuntimeFailure):
    """A command could not be started in a running container."""


def lookup_error(error: ExecError) -> str:
    """The message of Go's exec.LookPath."""
    if error.searched:
        return f'exec: "{error.name}": executable file not found in $PATH'
    text = os.strerror(error.number).lower()
    if error.number in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
        return f'exec: "{error.name}": stat {error.name}: {text}'
    return f'exec: "{error.name}": {text}'


def exec_failure(error: ExecError, random: Random) -> ExecFailure:
    identifier = f"{random.getrandbits(256):064x}"
    return ExecFailure(
        f'failed to exec in container: failed to start exec "{identifier}": OCI runtime exec failed: exec failed: '
        f"unable to start container process: {lookup_error(error)}"
    )


def mount_error(source: str, target: str) -> StartError:
    """A directory mounted over a file, or a file over a directory."""
    return StartError(
        f'error mounting "{source}" to rootfs at "{target}": mount src={source}, dst={target}, '
        "dstFd=/proc/thread-self/fd/11, flags=MS_BIND|MS_REC: not a directory: Are you trying to mount a directory "
        "onto a file (or vice-versa)? Check if the specified host path exists and is the expected type"
    )
