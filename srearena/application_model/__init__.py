"""What an application's programs do, as data: `model.yaml`, read by the simulator, checked before anything starts."""

from srearena.application_model.loading import ModelError, load_model
from srearena.application_model.schema import ApplicationModel, ProgramModel

__all__ = ["ApplicationModel", "ModelError", "ProgramModel", "load_model"]
