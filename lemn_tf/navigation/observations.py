"""What an agent observes: from a Gymnasium space to features.

An observation is described by plain values, so that a saved agent needs no Gymnasium:

    {"kind": "discrete", "size": 4}                     one of four: one-hot
    {"kind": "vector", "shape": [3]}                    numbers as they are
    {"kind": "image", "shape": [64, 64, 3], "scale": 255.0}
    {"kind": "dict", "parts": {"hand": ..., "eye": ...}}       and "tuple" with a list of parts
"""

from __future__ import annotations

import math
from typing import Any

import keras
import tensorflow as tf

from lemn_tf import streams
from lemn_tf.readers.mqn import dense, initial

Description = dict[str, Any]
SMALL_SIDE = 8
"""Images are halved until their shorter side is no longer than this."""


def describe(space: Any) -> Description:
    """Describes a Gymnasium space of observations.

    Args:
        space: Box, Discrete, MultiDiscrete, MultiBinary, or a Dict or Tuple of them.

    Example:

    >>> from gymnasium.spaces import Box, Dict, Discrete
    >>> describe(Dict(card=Discrete(4), position=Box(-1.0, 1.0, [2])))["parts"]["position"]
    {'kind': 'vector', 'shape': [2]}
    """
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        return {"kind": "dict", "parts": {name: describe(one) for name, one in space.items()}}
    if isinstance(space, spaces.Tuple):
        return {"kind": "tuple", "parts": [describe(one) for one in space]}
    if isinstance(space, spaces.Discrete):
        return {"kind": "discrete", "size": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        largest = int((space.nvec + space.start).max())
        return {"kind": "discrete", "size": largest, "shape": list(space.shape)}
    if isinstance(space, spaces.Box) and len(space.shape) == 3:
        scale = 255.0 if space.dtype == "uint8" else 1.0
        return {"kind": "image", "shape": list(space.shape), "scale": scale}
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        return {"kind": "vector", "shape": list(space.shape)}
    raise ValueError(
        "expected observations in a Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple; got "
        f"{space}: an observation wrapper of Gymnasium can make one of them of it"
    )


def flat(description: Description) -> list[Description]:
    """The leaves of a description, in the order of `tf.nest.flatten`."""
    parts = description.get("parts")
    if parts is None:
        return [description]
    inner = [parts[name] for name in sorted(parts)] if isinstance(parts, dict) else parts
    return [leaf for part in inner for leaf in flat(part)]


def specs(description: Description) -> Any:
    """Nest of `tf.TensorSpec`: one observation as a memory holds it."""
    kind, parts = description["kind"], description.get("parts", {})
    if kind == "dict":
        return {name: specs(part) for name, part in parts.items()}
    if kind == "tuple":
        return tuple(specs(part) for part in parts)
    if kind not in ("discrete", "vector", "image"):
        raise ValueError(f"expected discrete, vector, image, dict or tuple; got kind {kind!r}")
    types = {"discrete": tf.int32, "vector": tf.float32, "image": tf.float32}
    integer = kind == "image" and description.get("scale", 1.0) != 1.0
    return tf.TensorSpec(description.get("shape", []), tf.uint8 if integer else types[kind])


def told(item: Any) -> str:
    """What `specs` gives, in words.

    Example:

    >>> parts = {"card": {"kind": "discrete", "size": 4}, "at": {"kind": "vector", "shape": [2]}}
    >>> told(specs({"kind": "dict", "parts": parts}))
    'card: int32 [], at: float32 [2]'
    """
    if isinstance(item, tf.TensorSpec):
        return f"{item.dtype.name} {item.shape.as_list()}"
    named = item.items() if isinstance(item, dict) else enumerate(item)
    return ", ".join(f"{name}: {told(part)}" for name, part in named)


@keras.saving.register_keras_serializable("lemn_tf")
class ObservationEncoder(keras.layers.Layer):
    """Eyes for any observation: one-hot, numbers and convolutions, joined by a dense layer.

    Args:
        observation: what is observed, see `describe`.
        units: width of the features.
        filters: of the first convolution of an image, twice as many of the others.

    Call arguments:
        observations: nest of `[..., ...]` as described.

    Returns:
        `[..., units]`.

    Example:

    >>> eyes = ObservationEncoder({"kind": "image", "shape": [7, 7, 3], "scale": 255.0})
    >>> eyes(tf.zeros([2, 5, 7, 7, 3], tf.uint8)).shape
    TensorShape([2, 5, 64])
    """

    def __init__(
        self, observation: Description, units: int = 64, filters: int = 16, **kwargs: Any
    ) -> None:
        super().__init__(**{"autocast": False, **kwargs})
        self.observation, self.filters, self.width = observation, filters, units
        self.item = specs(observation)
        self.leaves, self._specs = flat(observation), tf.nest.flatten(self.item)
        made = [
            self._image(leaf) if leaf["kind"] == "image" else _plain(leaf) for leaf in self.leaves
        ]
        self.convolutions, self.widths = [one[0] for one in made], [one[1] for one in made]
        total = sum(self.widths)
        self.join = dense(units, total, "join", activation="relu", dtype=self.dtype_policy)
        self.built = True

    def _image(self, leaf: Description) -> tuple[list[keras.layers.Layer], int]:
        """Convolutions that halve an image until it is small, and one more; their features."""
        height, width, channels = leaf["shape"]
        layers: list[keras.layers.Layer] = []
        count, last = self.filters, False
        while not last:
            last = min(height, width) <= SMALL_SIDE
            side, stride = (3, 1) if last else (4, 2)
            layer = keras.layers.Conv2D(
                count,
                side,
                strides=stride,
                padding="same",
                activation="relu",
                name=f"convolution_{len(layers)}",
                dtype=self.dtype_policy,
                **initial(side * side * channels),
            )
            layer.build((None, height, width, channels))
            layers.append(layer)
            height, width = -(-height // stride), -(-width // stride)
            channels, count = count, 2 * self.filters
        return layers, height * width * channels

    def call(self, observations):
        tf.nest.assert_same_structure(self.item, observations)
        parts = enumerate(zip(self._specs, tf.nest.flatten(observations), strict=True))
        seen = [self._see(number, spec, x) for number, (spec, x) in parts]
        return self.join(tf.concat(seen, axis=-1))

    def _see(self, number: int, spec: tf.TensorSpec, x: tf.Tensor) -> tf.Tensor:
        """What the leaf of that number adds, `[..., its width]`."""
        leaf, x = self.leaves[number], streams.sound(x)
        rank = len(spec.shape)
        if not x.shape[x.shape.rank - rank :].is_compatible_with(spec.shape):
            raise ValueError(f"expected observations [..., {spec.shape}], got shape {x.shape}")
        lead = x.shape[: x.shape.rank - rank].as_list()
        if None in lead:
            lead = tf.unstack(tf.shape(x)[: x.shape.rank - rank])
        if leaf["kind"] == "discrete":
            x = tf.one_hot(tf.cast(x, tf.int32) - leaf.get("start", 0), leaf["size"])
        elif leaf["kind"] == "image":
            x = tf.cast(x, tf.float32) / leaf.get("scale", 1.0)
            x = tf.cast(tf.reshape(x, [-1, *spec.shape]), self.compute_dtype)
            for layer in self.convolutions[number]:
                x = layer(x)
        return tf.cast(tf.reshape(x, [*lead, self.widths[number]]), self.compute_dtype)

    def get_config(self):
        own = {"observation": self.observation, "units": self.width, "filters": self.filters}
        return {**super().get_config(), **own}


def _plain(leaf: Description) -> tuple[list[keras.layers.Layer], int]:
    """No layers, and the width of a leaf that is no image."""
    count = math.prod(leaf.get("shape", []))
    return [], count * leaf["size"] if leaf["kind"] == "discrete" else count
