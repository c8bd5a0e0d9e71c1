"""Navigator: an agent that walks mazes by what it sees and what it chose to remember.

At each step the current frame x_t is the context, the memory M_t holds N earlier frames, and two
things are chosen at once: where to go, and which of the N + 1 frames (the slots and x_t) to forget.

    M_t, x_t --> reader (MQN, FRMQN) --> action          M_t, x_t --> retention policy --> M_{t+1}

So x_t is read with before it is stored: it is not in the memory that its own step reads, as in Oh
et al. (2016), whose memory also holds past frames only. Everything a frame contributes (context,
key, value, what the retention policy sees) is computed once a *distinct* frame, `look`; the rest
gathers rows of those tables. `rollout` walks, `learning` learns.
"""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from lemn_tf import retention
from lemn_tf.files import write_atomically
from lemn_tf.layer import EpisodicMemory
from lemn_tf.readers.mqn import FRMQN, MQN

READERS = {"mqn": MQN, "frmqn": FRMQN}
"""The readers by name."""
FORMAT = "lemn_tf navigator, version 1"
"""First thing in a saved agent; a file that says otherwise is refused."""


class Views(NamedTuple):
    """What K frames contribute, whatever is made of them.

    Attributes:
        query: `[K, Q]`, the reader's context, or what the frame adds to it.
        codes: `[K, 2 units]`, key and value.
        vectors: `[K, width]`, e: what the retention policy sees.
    """

    query: tf.Tensor
    codes: tf.Tensor
    vectors: tf.Tensor


@keras.saving.register_keras_serializable("lemn_tf")
class RetentionView(keras.layers.Layer):
    """e = W v + b: the memory's value vector, narrowed for the retention policy.

    Args:
        reader: gives the value vectors.
        width: of e.
    """

    def __init__(self, reader: MQN, width: int = 32, **kwargs):
        super().__init__(**{"autocast": False, **kwargs})
        self.reader, self.width = reader, width
        self.narrow = keras.layers.Dense(width, name="narrow")
        self.narrow.build((None, reader.units))
        self.built = True

    def of_codes(self, codes: tf.Tensor) -> tf.Tensor:
        """From the reader's codes `[..., 2 units]`, where they are at hand."""
        return self.narrow(self.reader.vectors(codes))

    def call(self, frames):
        return self.of_codes(self.reader.encode(frames))

    def get_config(self):
        reader = keras.saving.serialize_keras_object(self.reader)
        return {**super().get_config(), "reader": reader, "width": self.width}

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "reader": keras.saving.deserialize_keras_object(config["reader"])})


@keras.saving.register_keras_serializable("lemn_tf")
class Navigator(keras.Model):
    """Convolutions, a memory of frames with a retention policy, a reader, action and value.

    Args:
        reader: "mqn" or "frmqn".
        slots: N in the paper.
        policy: the retention policy: a name, such as "st-lemn" or "fifo", or an object.
        units: width of context, keys and values.
        width: of what the retention policy sees of a frame.
        hidden: width of h, for policies found by name that have one; default a quarter of `width`.
        size: height and width of a frame.
        filters: of the two convolutions.
        temperature: how it plays when it is not learning: actions drawn from
            softmax(logits / temperature), 0 for the likeliest. What to forget is never drawn then.

    Call arguments:
        inputs: `(frames [B, H, W, 3], MemoryState of frames)`.

    Returns:
        An `Answer` (logits of the actions, attention), as of the first step of an episode.

    Example:

    >>> model = Navigator("mqn", slots=4, policy="fifo", units=16)
    >>> frames = tf.zeros([2, 32, 32, 3], tf.uint8)
    >>> state = model.memory.initial_state(2)
    >>> state, decision = model.memory.observe(state, frames)
    >>> model((frames, state)).logits.shape
    TensorShape([2, 3])
    """

    def __init__(
        self,
        reader: str = "mqn",
        slots: int = 4,
        policy: str | retention.RetentionPolicy = "st-lemn",
        units: int = 256,
        width: int = 32,
        hidden: int | None = None,
        size: tuple[int, int] = (32, 32),
        filters: tuple[int, int] = (32, 64),
        temperature: float = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if not temperature >= 0:
            raise ValueError(f"expected a temperature of at least 0, got {temperature}")
        if reader not in READERS:
            raise ValueError(f"expected a reader {' or '.join(READERS)}, got {reader!r}")
        options = {"hidden": hidden} if "hidden" in retention.find(policy).options() else {}
        self.reader = READERS[reader](units, size=size, filters=filters, name=reader)
        view = RetentionView(self.reader, width, name="view")
        found = retention.get(policy, **(options if hidden else {}))
        if found.clairvoyant:
            raise ValueError("expected a policy that an agent can follow; got the clairvoyant one")
        self.settings: dict[str, Any] = {
            "reader": reader,
            "slots": slots,
            "policy": policy if isinstance(policy, str) else _plain(found),
            "units": units,
            "width": width,
            "hidden": hidden,
            "size": tuple(size),
            "filters": tuple(filters),
            "temperature": temperature,
        }
        self.memory = EpisodicMemory(slots, found, view, name="memory")
        self.critic = keras.layers.Dense(1, dtype="float32", name="critic")
        with tf.init_scope():
            self.memory.initial_state(1, tf.TensorSpec([*size, 3], tf.uint8))
            self.critic.build((None, units))
        self.view = view
        if not self.learns:  # rules see no vectors
            view.narrow.trainable = False
        self.built = True

    @property
    def learns(self) -> bool:
        """Whether the retention policy has anything to train."""
        return self.memory.policy.learns

    @property
    def temperature(self) -> float:
        """How it plays; see the class."""
        return self.settings["temperature"]

    def playing_at(self, temperature: float) -> Navigator:
        """A copy of the agent that plays at another temperature."""
        other = Navigator.from_config({**self.settings, "temperature": temperature})
        other.set_weights(self.get_weights())
        return other

    def with_memory(self, policy: str | None = None, slots: int | None = None) -> Navigator:
        """The same agent over a memory with another policy that needs no training, or size.

        Args:
            policy: its name; None for the agent's own, weights and all.
            slots: None for the agent's own number.
        """
        changes: dict[str, Any] = {"slots": slots or self.memory.slots}
        if policy is None or policy == self.memory.policy.name:
            other = Navigator.from_config({**self.settings, **changes})
            other.set_weights(self.get_weights())
            return other
        other = Navigator.from_config({**self.settings, **changes, "policy": policy})
        if other.learns:
            raise ValueError(f"{policy} is learned: expected a rule to put in its place")
        for part, own in ((other.reader, self.reader), (other.critic, self.critic)):
            part.set_weights(own.get_weights())
        return other

    def look(self, frames: tf.Tensor) -> Views:
        """What depends on a frame alone, `[K, H, W, 3]` -> `Views` of K rows, in float32."""
        features = self.reader.see(frames)
        codes = self.reader.codes(features)
        parts = (self.reader.query(features), codes, self.view.of_codes(codes))
        return Views(*(tf.cast(part, tf.float32) for part in parts))

    def call(self, inputs, training: bool = False):
        frames, state = inputs
        return self.reader(frames, state)

    def get_config(self):
        return {**super().get_config(), **self.settings}

    @classmethod
    def from_config(cls, config):
        policy = config["policy"]
        if isinstance(policy, dict):
            policy = keras.saving.deserialize_keras_object(policy)
        return cls(**{**config, "policy": policy})

    def save_to(self, path: str | os.PathLike, half: bool = False) -> None:
        """Saves the agent to a file, whole or not at all; `load_agent` reads it.

        Args:
            path: the file, `.npz`.
            half: store weights in half precision, for half the size.
        """
        kind = np.float16 if half else np.float32
        arrays = {f"weight/{i}": w.astype(kind) for i, w in enumerate(self.get_weights())}
        text = json.dumps({"format": FORMAT, **self.settings})
        buffer = io.BytesIO()
        np.savez_compressed(buffer, settings=np.array(text), **arrays)
        write_atomically(path, buffer.getvalue())


def _plain(policy: retention.RetentionPolicy) -> dict:
    """A policy as it can be written to JSON, and comes back from it."""
    return json.loads(json.dumps(keras.saving.serialize_keras_object(policy)))


def load_agent(path: str | os.PathLike) -> Navigator:
    """Reads an agent that `Navigator.save_to` wrote.

    Args:
        path: the file, or the folder of a run with a `model.npz` in it.

    Returns:
        The `Navigator`.
    """
    path = Path(path)
    if path.is_dir():
        path = path / "model.npz"
    if not path.is_file():
        raise ValueError(f"expected a trained agent at {path}, found none")
    try:
        with np.load(path, allow_pickle=False) as file:
            settings = json.loads(str(file["settings"]))
            weights = {name: file[name] for name in file.files if name.startswith("weight/")}
    except Exception as error:
        raise ValueError(f"{path} is not a saved agent: {error}") from error
    found = settings.pop("format", None)
    if found != FORMAT:
        raise ValueError(f"expected {path} to say {FORMAT!r}, got {found!r}")
    model = Navigator.from_config(settings)
    shapes = {f"weight/{i}": w.shape for i, w in enumerate(model.get_weights())}
    if {name: weight.shape for name, weight in weights.items()} != shapes:
        raise ValueError(f"{path} holds other weights than its settings ask for")
    model.set_weights([weights[name].astype(np.float32) for name in shapes])
    return model
