"""Checks in the graph: what a caller sends is refused with a message, never trusted.

`tf.raw_ops.Assert` is used directly. `tf.debugging.Assert` would wrap each check into a branch,
which costs more than the check.
"""

from __future__ import annotations

import tensorflow as tf

from lemn_tf import memory
from lemn_tf.export.servable import Servable, Specs, Tensors

LATEST = 1 << 62
"""No clock gets this far; beyond it the arithmetic of positions could overflow."""


def expect(condition: tf.Tensor, message: str, *got: tf.Tensor) -> tf.Operation:
    """An op that fails with INVALID_ARGUMENT and `message` unless `condition` holds throughout."""
    data = [tf.constant(message + "; got"), *got] if got else [tf.constant(message)]
    return tf.raw_ops.Assert(condition=tf.reduce_all(condition), data=data, summarize=8)


def check_inputs(inputs: Tensors, specs: Specs) -> Tensors:
    """The inputs, each with its shape and all with the same first dimension, or an error."""
    inputs = {name: tf.ensure_shape(x, specs[name].shape) for name, x in inputs.items()}
    if len(inputs) == 1:
        return inputs
    sizes = tf.stack([tf.shape(x)[0] for x in inputs.values()])
    names = ", ".join(inputs)
    same = expect(sizes == sizes[0], f"expected the same first dimension of {names}", sizes)
    with tf.control_dependencies([same]):
        return {name: tf.identity(x) for name, x in inputs.items()}


def check_state(flat: Tensors, servable: Servable) -> Tensors:
    """The flat state, if it is one that this model can have made; an error that says why not."""
    ids, clock = flat["ids"], flat["clock"]
    known = (ids >= memory.EMPTY) & (ids < clock[:, None])
    rules = [
        expect((clock >= 0) & (clock < LATEST), f"clock: expected 0 to {LATEST}", clock),
        expect(known, "ids: expected -1 (unused) or an id below the row's clock", ids, clock),
        expect(_ascending(ids), "ids: expected each id once, in ascending order", ids),
    ]
    for name, tensor in flat.items():
        if tensor.dtype.is_floating:
            rules.append(expect(tf.math.is_finite(tensor), f"{name}: expected finite numbers"))
    state = memory.from_flat(flat)
    rules += [expect(ok, message) for message, ok in servable.checks(state.entries).items()]
    with tf.control_dependencies(rules):
        return {name: tf.identity(x) for name, x in flat.items()}


def _ascending(ids: tf.Tensor) -> tf.Tensor:
    """Whether each id that is in use is above all those before it, `[B, N]`."""
    slots = range(ids.shape[1])
    before = tf.constant([[first < then for first in slots] for then in slots])
    used = (ids != memory.EMPTY)[:, :, None] & (ids != memory.EMPTY)[:, None, :]
    return ~(before & used) | (ids[:, None, :] < ids[:, :, None])
