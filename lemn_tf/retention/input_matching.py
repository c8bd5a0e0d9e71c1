"""IM-LEMN: evicts by how well each memory cell matches the current input, LRU style."""

from __future__ import annotations

from typing import Any, ClassVar

import keras
import tensorflow as tf

from lemn_tf.retention.base import Cells, RetentionPolicy


@keras.saving.register_keras_serializable("lemn_tf")
class Similarity(keras.layers.Layer):
    """z_{t,i} = (W_c c_t) . (W_e e_{t,i}) / sqrt(d): a learned similarity of input and memory.

    Call arguments:
        inputs: `(newcomer [..., D], vectors [..., M, D], ids [..., M])`; ids are not used here.

    Returns:
        `(c [..., d], z [..., M])`, the encoded input and its match with every cell.
    """

    def __init__(self, units: int | None = None, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, shapes):
        units = self.units or shapes[0][-1]
        own = {"dtype": self.dtype_policy}
        self.input_encoding = keras.layers.Dense(units, name="input_encoding", **own)
        self.memory_encoding = keras.layers.Dense(
            units, use_bias=False, name="memory_encoding", **own
        )
        self.input_encoding.build(shapes[0])
        self.memory_encoding.build(shapes[1])

    def call(self, inputs):
        newcomer, vectors, _ = inputs
        c = self.input_encoding(newcomer)
        e = self.memory_encoding(vectors)
        scale = tf.sqrt(tf.cast(tf.shape(c)[-1], c.dtype))
        return c, tf.einsum("...d,...md->...m", c, e) / scale

    def get_config(self):
        return {**super().get_config(), "units": self.units}


@keras.saving.register_keras_serializable("lemn_tf")
class InputMatching(RetentionPolicy):
    """IM-LEMN (section 3.1): the input's match with each cell, less its usual match.

        v_{t,i} = 0.1 v_{t-1,i} + 0.9 z_{t,i}
        gamma_t = sigma(W_gamma c_t + b_gamma)
        g_{t,i} = z_{t,i} - gamma_t v_{t-1,i}

    The last of the N + 1 places is the NOP cell: a learned vector replaces the newcomer there, and
    choosing it means that the newcomer is not stored. The paper prints sigma(z) = 1 / (1 +
    exp(z)); this is the standard sigmoid, and W_gamma absorbs the difference in sign.

    Args:
        similarity: layer from `(newcomer, vectors, ids)` to `(c, z)`. Default: the attention of
            its reader, as in the paper with MemN2N, if the reader has a `matching` layer, else a
            learned `Similarity`.
        skip: adds a linear score of each entry by itself to the logits, as in `Spatial`.
    """

    # Its logits begin far apart, so it needs a push to explore.
    suited: ClassVar[dict[str, Any]] = {"entropy": 0.5}

    def __init__(self, similarity: keras.layers.Layer | None = None, skip: bool = False, **kwargs):
        super().__init__(**kwargs)
        self._given, self.skip = similarity, skip
        self.similarity: Any = similarity
        own = {"dtype": self.dtype_policy}
        self.gate = keras.layers.Dense(1, activation="sigmoid", name="gamma", **own)
        if skip:
            self.alone = keras.layers.Dense(
                1, use_bias=False, kernel_initializer="zeros", name="alone", **own
            )

    def meet(self, reader):
        if self.question_aware:
            return super().meet(reader)
        if self.similarity is None and hasattr(reader, "matching"):
            self.similarity = reader.matching()
        return self.similarity if hasattr(self.similarity, "view") else None

    def build(self, shape):
        width = shape[-1]
        if self.similarity is None:
            self.similarity = Similarity(name="similarity", dtype=self.dtype_policy)
        self.nop = self.add_weight(shape=(width,), initializer="glorot_uniform", name="nop")
        if not self.similarity.built:
            self.similarity.build([(None, width), (None, None, width), (None, None)])
        one = tf.zeros([1, 1, width])
        c, _ = self.similarity((one[:, 0], one, tf.zeros([1, 1], tf.int64)))
        self.gate.build((None, c.shape[-1]))
        if self.skip:
            self.alone.build((None, width))

    def carry_spec(self):
        return tf.TensorSpec([], tf.float32)

    def look(self, cells: Cells):
        newcomer = cells.vectors[..., -1, :]
        nop = tf.broadcast_to(tf.cast(self.nop, newcomer.dtype), tf.shape(newcomer))
        vectors = tf.concat([cells.vectors[..., :-1, :], nop[..., None, :]], axis=-2)
        c, z = self.similarity((newcomer, vectors, cells.ids))
        c = tf.cast(c, self.compute_dtype)
        return z, self.gate(c), c

    def score(self, seen, cells, carry):
        z, gamma, c = seen
        z, gate = (tf.cast(x, carry.dtype) for x in (z, gamma))
        v = 0.1 * carry + 0.9 * z
        # The NOP cell is no entry: a newcomer that is stored has no usage yet.
        v = tf.concat([v[..., :-1], tf.zeros_like(v[..., :1])], axis=-1)
        logits = z - gate * carry
        if self.skip:
            logits += tf.cast(tf.squeeze(self.alone(cells.vectors), axis=-1), logits.dtype)
        return self.opinion(logits, v, tf.concat([c, gamma], axis=-1))

    def get_config(self):
        similarity = keras.saving.serialize_keras_object(self._given)
        return {**super().get_config(), "similarity": similarity, "skip": self.skip}

    @classmethod
    def from_config(cls, config):
        similarity = keras.saving.deserialize_keras_object(config["similarity"])
        return cls(**{**config, "similarity": similarity})
