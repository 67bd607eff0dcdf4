"""The application model (`model.yaml`): the behaviour of an application's programs, as data for the simulator."""

from srearena.application_model.loading import ModelError, load_model
from srearena.application_model.schema import ApplicationModel, ProgramModel

__all__ = ["ApplicationModel", "ModelError", "ProgramModel", "load_model"]
