"""Small memories for the tests of this folder."""

import hypothesis
import numpy as np
import tensorflow as tf

from lemn_tf import memory
from lemn_tf.memory import MemoryState

QUICK = hypothesis.settings(max_examples=40, deadline=None, derandomize=True)
ENTRY = {"tokens": tf.TensorSpec([2], tf.int32), "text": tf.TensorSpec([], tf.string)}
CARRY = (tf.TensorSpec([3]), tf.TensorSpec([], tf.int64))


def item_of(t: int, rows: int):
    """Item t of each row: recognisable, and different in each row."""
    tokens = np.array([[t, row] for row in range(rows)], np.int32)
    return {"tokens": tf.constant(tokens), "text": tf.constant([f"{t}.{r}" for r in range(rows)])}


def small(slots=2, rows=1, clock=3) -> MemoryState:
    """A memory that has seen a few items."""
    state = memory.empty(rows, slots, ENTRY, CARRY)
    for t in range(clock):
        state = memory.write(state, item_of(t, rows), tf.zeros([rows], tf.int32))
    return state
