"""ST-LEMN: S-LEMN with a memory of its own for each cell, so that history counts too."""

from __future__ import annotations

import keras
import tensorflow as tf

from lemn_tf.retention import gru
from lemn_tf.retention.spatial import Spatial


@keras.saving.register_keras_serializable("lemn_tf")
class SpatioTemporal(Spatial):
    """ST-LEMN (section 3.1): importance of a cell relative to the others and over its history.

        f_{t,i} = ReLU(W_f [e_fw_{t,i}, e_bw_{t,i}] + b_f)
        h_{t,i} = GRU(f_{t,i}, h_{t-1,i})
        g_{t,i} = W_g h_{t,i} + b_g

    h is the carry: it travels with its entry when slots shift, and is zero for a newcomer. The
    paper covers only full memories; here the GRU also runs while the memory fills, so an entry's
    history begins with its arrival.

    Args: as `Spatial`; `hidden` is the width of the GRU over time.
    """

    def build_hidden(self, units):
        self.history = keras.layers.GRUCell(
            self.hidden_width, dtype=self.dtype_policy, name="history"
        )
        self.history.build((None, units))

    def carry_spec(self):
        if not self.built:
            raise ValueError(
                "ST-LEMN has no carry before it is built: its width depends on the items"
            )
        return tf.TensorSpec([self.hidden_width], tf.float32)

    def look(self, cells):
        f = super().look(cells)
        return f, gru.project(f, self.history)

    def score(self, seen, cells, carry):
        f, projected = seen
        h = gru.step(tf.cast(projected, carry.dtype), carry, self.history)
        return self._opinion(f, h, cells, h)
