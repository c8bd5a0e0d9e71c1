"""The memory: a value of fixed size (`state`), its flat form (`flat`) and its file (`saved`)."""

from lemn_tf.memory.flat import from_flat, to_flat
from lemn_tf.memory.saved import FORMAT, load, save
from lemn_tf.memory.state import (
    EMPTY,
    NEVER,
    MemoryState,
    blank_unused,
    candidates,
    check_item,
    check_slots,
    check_state,
    empty,
    evict,
    evict_from,
    forget,
    pin,
    unpin,
    write,
)

__all__ = [
    "EMPTY",
    "FORMAT",
    "NEVER",
    "MemoryState",
    "blank_unused",
    "candidates",
    "check_item",
    "check_slots",
    "check_state",
    "empty",
    "evict",
    "evict_from",
    "forget",
    "from_flat",
    "load",
    "pin",
    "save",
    "to_flat",
    "unpin",
    "write",
]
