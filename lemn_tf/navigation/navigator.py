"""Navigator: the paper's agent, which walks mazes by the frames it sees.

Its memory holds frames, its readers are those of Oh et al. (2016), and it does not know when it saw
what. Everything a frame contributes (context, key, value, what the retention policy sees) is
computed once a *distinct* frame, `look`; the rest gathers rows of those tables. `rollout` walks in
the graph, `learning` learns; one step at a time `act` does the same.
"""

from __future__ import annotations

from typing import Any

import keras

from lemn_tf import retention
from lemn_tf.mazes.world import ACTIONS
from lemn_tf.navigation.agent import MemoryAgent
from lemn_tf.navigation.recipe import READERS
from lemn_tf.readers.mqn import FrameEncoder


@keras.saving.register_keras_serializable("lemn_tf")
class Navigator(MemoryAgent):
    """A `MemoryAgent` of frames: convolutions, memory, MQN or FRMQN, action and value.

    Args:
        reader: "mqn" or "frmqn".
        slots: N in the paper.
        policy: the retention policy: a name, such as "st-lemn" or "fifo", or an object.
        units: width of context, keys and values.
        width: of what the retention policy sees of a frame.
        hidden: width of h, for policies found by name that have one; default a quarter of `width`.
        size: height and width of a frame.
        filters: of the two convolutions.
        temperature: how it plays; see `MemoryAgent`.
        world: the kind of mazes it was made for, "imaze" or "single-indicator".

    Example:

    >>> import tensorflow as tf
    >>> agent = Navigator("frmqn", slots=4, policy="fifo", units=16)
    >>> frames, state = tf.zeros([2, 32, 32, 3], tf.uint8), agent.initial_state(2)
    >>> action, state, decision = agent.act(frames, state)
    >>> action.shape, state.ids.shape
    (TensorShape([2]), TensorShape([2, 4]))
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
        world: str = "imaze",
        dated: bool = False,
        acted: int = 0,
        **kwargs,
    ):
        if reader not in READERS:
            raise ValueError(f"expected a reader {' or '.join(READERS)}, got {reader!r}")
        eyes = FrameEncoder(size, filters, name="eyes")
        sizes = (slots, policy, units, width, hidden, temperature)
        super().__init__(eyes, len(ACTIONS), reader, *sizes, dated, acted, **kwargs)
        del self.settings["actions"]
        self.settings |= {"size": tuple(size), "filters": tuple(filters), "world": world}

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["eyes"]
        return config
