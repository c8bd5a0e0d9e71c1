"""Serving: SavedModels whose memory travels with the caller, a server and a client for them."""

from lemn_tf.export.savedmodel import export
from lemn_tf.export.servable import Servable, text_servable

__all__ = ["Servable", "export", "text_servable"]
