"""MQN and FRMQN (Oh et al., 2016): readers of a memory of frames that say what to do next.

The networks of "Control of Memory, Active Perception, and Action in Minecraft" (ICML 2016). A frame
x goes through a small convolutional network to features phi; the memory holds earlier frames x_i:

    k_i = W_k phi(x_i) + b_k        p = softmax(h . k_i)        D = C h + o
    v_i = W_v phi(x_i) + b_v        o = sum_i p_i v_i           half of D linear, half through ReLU

MQN takes its context h from the current frame alone, FRMQN from an LSTM that is also fed what was
read the step before. The memory holds *past* frames: the current one is the context, and is offered
to the memory only after it has been acted on. Unused slots are masked; the original filled them
with black images. With nothing in memory o = 0. To observe something other than frames, pass other
`eyes`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from lemn_tf.memory import EMPTY
from lemn_tf.readers.base import Answer, Reader
from lemn_tf.readers.feedback import attend, read, recurrence
from lemn_tf.readers.recurrent import lstm_step
from lemn_tf.retention.base import swap_time


class Glance(NamedTuple):
    """What a reader computes from one frame and its memory.

    Attributes:
        output: `[..., units]`, D after its half ReLU: what action and value are computed from.
        attention: `[..., N]`, p; all 0 if the memory is empty.
        carry: what a recurrent reader takes to the next step; `()` for MQN.
    """

    output: tf.Tensor
    attention: tf.Tensor
    carry: Any


def initial(inputs: int) -> dict[str, keras.initializers.Initializer]:
    """Initial weights within 1 / sqrt(inputs), as the original networks had."""
    limit = inputs**-0.5
    return {
        "kernel_initializer": keras.initializers.RandomUniform(-limit, limit),
        "bias_initializer": keras.initializers.RandomUniform(-limit, limit),
    }


def dense(units: int, inputs: int, name: str, **options: Any) -> keras.layers.Dense:
    """A built linear layer with the original's initial weights."""
    layer = keras.layers.Dense(units, name=name, **initial(inputs), **options)
    layer.build((None, inputs))
    return layer


@keras.saving.register_keras_serializable("lemn_tf")
class FrameEncoder(keras.layers.Layer):
    """phi: two convolutions (4x4, stride 2, padding 1) with ReLU, and nothing after.

    Like any eyes of a reader it has a `width`, that of its features, and an `item`, the spec of
    one.

    Args:
        size: height and width of a frame, multiples of 4.
        filters: of the two convolutions.

    Call arguments:
        frames: `[..., H, W, 3]`, uint8 0 to 255 or float 0 to 1.

    Returns:
        `[..., H / 4 * W / 4 * filters[1]]`: 4096 features of a 32x32 frame.

    Example:

    >>> FrameEncoder()(tf.zeros([5, 32, 32, 3], tf.uint8)).shape
    TensorShape([5, 4096])
    """

    def __init__(
        self, size: tuple[int, int] = (32, 32), filters: tuple[int, int] = (32, 64), **kwargs: Any
    ) -> None:
        super().__init__(**{"autocast": False, **kwargs})
        if any(side % 4 or side < 4 for side in size):
            raise ValueError(f"expected a frame whose sides are multiples of 4, got {tuple(size)}")
        self.size, self.filters = tuple(size), tuple(filters)
        self.convolutions, channels = [], 3
        for number, count in enumerate(self.filters):
            layer = keras.layers.Conv2D(
                count,
                4,
                strides=2,
                padding="same",  # with even sides, one pixel on each side
                activation="relu",
                name=f"convolution_{number}",
                dtype=self.dtype_policy,
                **initial(16 * channels),
            )
            layer.build((None, None, None, channels))
            self.convolutions.append(layer)
            channels = count
        self.width = size[0] // 4 * (size[1] // 4) * channels
        self.item = tf.TensorSpec([*size, 3], tf.uint8)
        self.built = True

    def call(self, frames):
        frames = tf.convert_to_tensor(frames)
        if tuple(frames.shape[-3:]) != (*self.size, 3):
            expected = [*self.size, 3]
            raise ValueError(f"expected frames [..., {expected}], got shape {frames.shape}")
        scale = 1.0 / 255.0 if frames.dtype.is_integer else 1.0
        x = tf.reshape(tf.cast(frames, tf.float32) * scale, [-1, *self.size, 3])
        x = tf.cast(x, self.compute_dtype)
        for layer in self.convolutions:
            x = layer(x)
        lead = frames.shape[:-3].as_list()
        if None in lead:
            lead = tf.unstack(tf.shape(frames)[:-3])
        return tf.reshape(x, [*lead, self.width])

    def get_config(self):
        return {**super().get_config(), "size": self.size, "filters": self.filters}


@keras.saving.register_keras_serializable("lemn_tf")
class MQN(Reader):
    """Memory Q-Network: the context is the current frame alone.

    Like every reader it encodes entries and questions separately; here both are frames, and the
    "answer" is what to do. `query` and `codes` start from features, so that a frame that is both
    goes through the convolutions once.

    Args:
        units: width of context, keys and values.
        actions: how many there are.
        eyes: layer from frames, or whatever else is observed, to features, with a `width`;
            default a `FrameEncoder` of 32 x 32 frames.

    Example:

    >>> reader, frames = MQN(units=8), tf.zeros([2, 32, 32, 3], tf.uint8)
    >>> codes = reader.encode(tf.zeros([2, 4, 32, 32, 3], tf.uint8))
    >>> reader.read(reader.ask(frames), codes, tf.constant([[0, 1, 2, -1]] * 2)).logits.shape
    TensorShape([2, 3])
    """

    query_widths = 1
    """Width of what `query` returns, in units."""

    def __init__(
        self, units: int = 256, actions: int = 3, eyes: keras.layers.Layer | None = None, **kwargs
    ):
        super().__init__(**{"autocast": False, **kwargs})
        self.units, self.actions = units, actions
        own = {"dtype": self.dtype_policy}
        self.eyes = FrameEncoder(name="eyes", **own) if eyes is None else eyes
        width = self.eyes.width
        self.key = dense(units, width, "key", **own)
        self.value = dense(units, width, "value", **own)
        self.context = dense(self.query_widths * units, width, "context", **own)
        self.mix = dense(units, units, "mix", use_bias=False, **own)  # C
        self.actor = dense(actions, units, "actor", dtype="float32")  # logits, in any precision
        self.built = True

    def see(self, frames: tf.Tensor) -> tf.Tensor:
        """phi of frames `[..., H, W, 3]`: features `[..., F]`."""
        return self.eyes(frames)

    def codes(self, features: tf.Tensor) -> tf.Tensor:
        """Key and value side by side, `[..., 2 units]`."""
        return tf.concat([self.key(features), self.value(features)], axis=-1)

    def query(self, features: tf.Tensor) -> tf.Tensor:
        """The current frame's part of the context; for MQN this is h itself."""
        return self.context(features)

    def encode(self, entries):
        return self.codes(self.see(entries))

    def ask(self, question):
        return self.query(self.see(question))

    def vectors(self, codes):
        """The memory's value vectors."""
        return codes[..., self.units :]

    def initial_carry(self, batch: int | tf.Tensor) -> Any:
        """What the reader carries before the first step, in float32."""
        return ()

    def glance(self, query, codes, ids, carry=()) -> Glance:
        """One step: context, read, output.

        Args:
            query: what `query` returned for the current frames, `[..., Q]`.
            codes: what `codes` returned for the frames in memory, `[..., N, 2 units]`.
            ids: `[..., N]`, -1 marks an unused slot.
            carry: of the step before.
        """
        o, attention = self._retrieve(query, codes, ids)
        return Glance(self.output(query, o), attention, ())

    def unroll(self, query, codes, ids) -> tuple[tf.Tensor, tf.Tensor]:
        """All steps of episodes that begin at step 0: `[B, T, ...]` of what `glance` takes.

        Returns:
            Output `[B, T, units]` and attention `[B, T, N]`.
        """
        seen = self.glance(query, codes, ids)
        return seen.output, seen.attention

    def read(self, query, codes, ids, carry=None) -> Answer:
        """See `Reader.read`; `carry` of the step before, default that of a first step."""
        if carry is None:
            carry = self.initial_carry(tf.shape(query)[:-1])
        seen = self.glance(query, codes, ids, carry)
        return Answer(self.actor(seen.output), seen.attention)

    def readable(self, ids: tf.Tensor) -> tf.Tensor:
        """Which of the slots `[..., N]` can be read, bool: those in use."""
        return ids != EMPTY

    def _retrieve(self, h, codes, ids):
        keys, values = tf.split(codes, 2, axis=-1)
        p = attend(h, keys, self.readable(ids))
        return read(p, values), p

    def output(self, h: tf.Tensor, o: tf.Tensor) -> tf.Tensor:
        """D after its half ReLU, from the context and what was read, `[..., units]`."""
        d = tf.cast(self.mix(h), tf.float32) + tf.cast(o, tf.float32)
        linear, rest = tf.split(d, [self.units // 2, (self.units + 1) // 2], axis=-1)
        return tf.concat([linear, tf.nn.relu(rest)], axis=-1)

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "actions": self.actions,
            "eyes": keras.saving.serialize_keras_object(self.eyes),
        }

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "eyes": keras.saving.deserialize_keras_object(config["eyes"])})


@keras.saving.register_keras_serializable("lemn_tf")
class FRMQN(MQN):
    """Feedback Recurrent Memory Q-Network: an LSTM context that is fed what was read before.

        i, f, u = sigma(W_x phi(x_t) + W_h [h_{t-1}, o_{t-1}] + b)    g = tanh(likewise)
        c_t = f c_{t-1} + i g        h_t = u tanh(c_t)

    h, c and o begin at 0. `query` is W_x phi(x_t) + b, the same for every visit of a frame.

    Args: as `MQN`.
    """

    query_widths = 4

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        own = {"dtype": self.dtype_policy}
        self.recurrent = dense(4 * self.units, 2 * self.units, "recurrent", **own)

    def initial_carry(self, batch):
        lead = tf.reshape(batch, [-1])
        zero = tf.zeros(tf.concat([lead, [self.units]], axis=0))
        return zero, zero, zero

    def glance(self, query, codes, ids, carry=None):
        if carry is None:
            carry = self.initial_carry(tf.shape(query)[:-1])
        h, c = self._context(query, carry)
        o, attention = self._retrieve(h, codes, ids)
        return Glance(self.output(h, o), attention, (h, c, tf.cast(o, tf.float32)))

    def _context(self, query, carry):
        h, c, o = carry
        fed_back = self.recurrent(tf.concat([h, o], axis=-1))
        gates = tf.cast(query, tf.float32) + tf.cast(fed_back, tf.float32)
        return lstm_step(tf.split(gates, 4, axis=-1), c)[:2]

    def unroll(self, query, codes, ids):
        weights = (self.recurrent.kernel, self.recurrent.bias)
        query, codes, kernel, bias = (tf.cast(x, tf.float32) for x in (query, codes, *weights))
        query, codes, ids = (swap_time(x) for x in (query + bias, codes, ids))
        keys, values = tf.split(codes, 2, axis=-1)
        states, attention = recurrence(query, keys, values, self.readable(ids), kernel)
        h, o = tf.split(swap_time(states), 2, axis=-1)
        return self.output(h, o), swap_time(attention)


@keras.saving.register_keras_serializable("lemn_tf")
class LSTM(FRMQN):
    """FRMQN that never reads: an LSTM of the same size, to compare a memory with.

    Args: as `MQN`.
    """

    def readable(self, ids):
        return tf.zeros_like(ids, tf.bool)
