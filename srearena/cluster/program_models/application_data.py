"""What an application's requests do to its data, for modules beside the application."""

from srearena.cluster.embedded.traffic.data_handlers import Exchange, StoreFailed, consumes, handles
from srearena.cluster.embedded.traffic.data_sets import data_set
from srearena.cluster.embedded.traffic.load_samples import load_sample

__all__ = ["Exchange", "StoreFailed", "consumes", "data_set", "handles", "load_sample"]
