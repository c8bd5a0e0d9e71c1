"""PolicyView: what a retention policy sees of an entry, through a reader."""

from __future__ import annotations

import keras

from lemn_tf.readers.base import Reader


@keras.saving.register_keras_serializable("lemn_tf")
class PolicyView(keras.layers.Layer):
    """phi: what the retention policy sees of an entry, through the reader's encoding.

    Args:
        reader: encodes the entries.
        matching: the reader's attention, if the policy uses it.
    """

    def __init__(self, reader: Reader, matching: keras.layers.Layer | None = None, **kwargs):
        super().__init__(**{"autocast": False, **kwargs})
        self.reader, self.matching = reader, matching
        self.built = True

    def call(self, entries):
        if self.matching is not None:
            return self.matching.view(entries)
        return self.reader.vectors(self.reader.encode(entries))

    def get_config(self):
        own = "reader" if self.matching is None else "matching"  # which holds its reader
        part = keras.saving.serialize_keras_object(getattr(self, own))
        return {**super().get_config(), "reader": None, "matching": None, own: part}

    @classmethod
    def from_config(cls, config):
        parts = ("reader", "matching")
        made = {key: keras.saving.deserialize_keras_object(config[key]) for key in parts}
        reader = made["reader"] or made["matching"].reader
        return cls(**{**config, **made, "reader": reader})
