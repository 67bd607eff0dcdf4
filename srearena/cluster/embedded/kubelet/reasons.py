"""Why a container is not running: the reasons that appear in its waiting state, and how they are raised."""

from __future__ import annotations

ERR_IMAGE_PULL = "ErrImagePull"
IMAGE_PULL_BACK_OFF = "ImagePullBackOff"
ERR_IMAGE_NEVER_PULL = "ErrImageNeverPull"
INVALID_IMAGE_NAME = "InvalidImageName"
CREATE_CONFIG_ERROR = "CreateContainerConfigError"
CREATE_ERROR = "CreateContainerError"
RUN_ERROR = "RunContainerError"
CRASH_LOOP = "CrashLoopBackOff"
POST_START_ERROR = "PostStartHookError"


class NotStarted(Exception):
    """A container could not be started; `message` goes into its status."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message
