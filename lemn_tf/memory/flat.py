"""A memory as a flat dict of plainly named tensors, to send and to store."""

from __future__ import annotations

import re

import tensorflow as tf

from lemn_tf.memory.state import MemoryState, check_state

_PLAIN = re.compile(r"(?!_)(?!.*__)(?!\d+$).+(?<!_)", re.DOTALL).fullmatch


def to_flat(state: MemoryState) -> dict[str, tf.Tensor]:
    """The state as a flat dict of plainly named tensors, all with the batch first.

    Names: `ids`, `pinned`, `expiry`, `clock`; `entries`, `carry` and `stream`, followed by `__key`
    for each level of a dict and `__0`, `__1`, ... for a tuple.

    Example:

    >>> from lemn_tf.memory import empty
    >>> state = empty(1, 2, {"tokens": tf.TensorSpec([3], tf.int32)}, tf.TensorSpec([5]))
    >>> sorted(to_flat(state))
    ['carry', 'clock', 'entries__tokens', 'expiry', 'ids', 'pinned']
    """
    check_state(state)
    flat = {name: getattr(state, name) for name in ("ids", "pinned", "expiry", "clock")}

    def walk(name, nest):
        if isinstance(nest, dict | tuple) and not nest:
            raise ValueError(f"an empty {type(nest).__name__} in {name} cannot be named")
        if isinstance(nest, dict):
            for key, value in nest.items():
                if not isinstance(key, str) or not _PLAIN(key):
                    raise ValueError(
                        "a dict in the memory needs words as keys, without '__', without '_' at "
                        f"either end, and not a number; got {key!r}"
                    )
                walk(f"{name}__{key}", value)
        elif isinstance(nest, tuple) and not hasattr(nest, "_fields"):
            for index, value in enumerate(nest):
                walk(f"{name}__{index}", value)
        elif isinstance(nest, list) or hasattr(nest, "_fields"):
            raise ValueError(f"entries may nest dicts and tuples; got {type(nest).__name__}")
        else:
            flat[name] = nest

    walk("entries", state.entries)
    for name in ("carry", "stream"):
        nest = getattr(state, name)
        if not isinstance(nest, tuple) or nest:
            walk(name, nest)
    return flat


def from_flat(flat: dict[str, tf.Tensor]) -> MemoryState:
    """The inverse of `to_flat`."""
    missing = {"ids", "pinned", "expiry", "clock"} - set(flat)
    if missing:
        raise ValueError(f"a flat memory has ids, pinned, expiry and clock; missing {missing}")

    def gather(name):
        if name in flat:
            return tf.convert_to_tensor(flat[name])
        keys = [key[len(name) + 2 :] for key in flat if key.startswith(f"{name}__")]
        first = list(dict.fromkeys(key.split("__")[0] for key in keys))
        parts = {key: gather(f"{name}__{key}") for key in first}
        if all(key.isdecimal() for key in first):
            return tuple(parts[key] for key in sorted(first, key=int))
        return parts

    known = ("ids", "pinned", "expiry", "clock", "entries", "carry", "stream")
    unknown = [key for key in flat if key.split("__")[0] not in known]
    if unknown:
        raise ValueError(f"unknown names in a flat memory: {unknown}; known are {known}")
    state = MemoryState(
        entries=gather("entries"),
        carry=gather("carry"),
        stream=gather("stream"),
        **{name: tf.convert_to_tensor(flat[name]) for name in known[:4]},
    )
    if not tf.nest.flatten(state.entries):
        raise ValueError(f"a flat memory has at least one entries tensor; got {sorted(flat)}")
    check_state(state)
    return state
