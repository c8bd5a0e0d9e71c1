"""The state of a row as one printable string, for callers who want a single opaque value.

    lemn1.0123456789abcdef.<base64 of: checksum, numbers, lengths of the strings, strings>

`lemn1` is the layout, the 16 digits are the model's fingerprint: a state that another model, other
weights or another layout made is refused, and so is one that was cut or changed on its way. The
layout is made and read in the graph, by core operations. "" stands for a fresh memory.

The checksum guards against damage, not against tampering: anybody who reads this can make another.
For states that pass through other hands a server can sign them (`lemn_tf.export.server.signing`).
"""

from __future__ import annotations

import math

import tensorflow as tf

from lemn_tf import memory
from lemn_tf.export.checks import expect
from lemn_tf.export.servable import Servable, Specs, Tensors

LAYOUT = "lemn1"
"""Version of the layout below."""
CHECKSUM = 8
"""Bytes of the checksum at the beginning."""
_BYTES = [bytes([value]) for value in range(256)]


class Packing:
    """How the states of one model are packed.

    Args:
        state: the flat state of one row, as `Servable.state`.
        fingerprint: of the model.
        fresh: the flat state `[1, ...]` that "" stands for.

    Example:

    >>> spec = {"clock": tf.TensorSpec([], tf.int64), "text": tf.TensorSpec([2], tf.string)}
    >>> fresh = {"clock": tf.constant([0], tf.int64), "text": tf.constant([["", ""]])}
    >>> packing = Packing(spec, "0123456789abcdef", fresh)
    >>> packed = packing.pack({"clock": tf.constant([7], tf.int64), "text": [["a", "bcd"]]})
    >>> packed.numpy()[0]
    b'lemn1.0123456789abcdef.ijePytCr61MHAAAAAAAAAAEAAAADAAAAYWJjZA'
    >>> packing.unpack(packed)["text"].numpy()
    array([[b'a', b'bcd']], dtype=object)
    """

    def __init__(self, state: Specs, fingerprint: str, fresh: Tensors):
        self.numbers = {name: s for name, s in state.items() if s.dtype != tf.string}
        self.strings = {name: s for name, s in state.items() if s.dtype == tf.string}
        self.order = list(state)
        self.layout = f"{LAYOUT}."
        self.header = f"{LAYOUT}.{fingerprint}."
        self.texts = sum(s.shape.num_elements() for s in self.strings.values())
        self.fixed = sum(_size(s) for s in self.numbers.values()) + 4 * self.texts
        self.fresh = self.pack(fresh).numpy()[0]

    @classmethod
    def of(cls, servable: Servable) -> Packing:
        """The packing of a model's states."""
        fresh = memory.to_flat(servable.initial_state(1))
        return cls(servable.state, servable.fingerprint, fresh)

    def length(self, text_bytes: int = 0) -> int:
        """Characters of a packed state whose strings have this many bytes in all."""
        return len(self.header) + math.ceil((CHECKSUM + self.fixed + text_bytes) * 4 / 3)

    def pack(self, flat: Tensors) -> tf.Tensor:
        """Flat states `[B, ...]` -> `[B]` strings."""
        texts = [_rows(flat[name], spec) for name, spec in self.strings.items()]
        parts = [_to_bytes(_rows(flat[name], spec)) for name, spec in self.numbers.items()]
        parts += [_to_bytes(tf.strings.length(text)) for text in texts]
        body = tf.strings.join([_join(tf.concat(parts, 1)), *(_join_strings(t) for t in texts)])
        body = tf.strings.join([_join(_to_bytes(_checksum(body)[:, None])), body])
        return tf.strings.join([self.header, tf.io.encode_base64(body)])

    def unpack(self, packed: tf.Tensor) -> Tensors:
        """`[B]` strings -> flat states `[B, ...]`; fails with INVALID_ARGUMENT if it cannot."""
        body = self._body(tf.where(packed == "", self.fresh, packed))
        raw = tf.io.decode_raw(tf.strings.substr(body, CHECKSUM, self.fixed), tf.uint8)
        raw = tf.reshape(raw, [-1, self.fixed])
        flat, start = {}, 0
        for name, spec in self.numbers.items():
            flat[name] = _from_bytes(raw[:, start : start + _size(spec)], spec)
            start += _size(spec)
        if self.strings:
            lengths = _from_bytes(raw[:, start:], tf.TensorSpec([self.texts], tf.int32))
            texts, start = self._split(body, lengths), 0
            for name, spec in self.strings.items():
                stop = start + spec.shape.num_elements()
                flat[name] = tf.reshape(texts[:, start:stop], [-1, *spec.shape])
                start = stop
        return {name: flat[name] for name in self.order}

    def _body(self, packed: tf.Tensor) -> tf.Tensor:
        """What is behind the header, decoded, after every check."""
        head = tf.strings.substr(packed, 0, len(self.header))
        layout = tf.strings.substr(packed, 0, len(self.layout))
        got = tf.strings.unicode_transcode(  # an error's message must be text
            head, "UTF-8", "UTF-8", errors="replace", replace_control_characters=True
        )
        ours = expect(layout == self.layout, f"state: expected a string {self.layout}*", got)
        with tf.control_dependencies([ours]):
            message = f"state: expected a memory of this very model, {self.header}*"
            ours = expect(head == self.header, message, got)
        damaged = "state: truncated or damaged"
        with tf.control_dependencies([ours]):
            code = tf.strings.substr(packed, len(self.header), tf.int32.max)
            plain = tf.strings.regex_full_match(code, "[A-Za-z0-9_-]*")
            whole = expect(plain & (tf.strings.length(code) % 4 != 1), damaged)
        with tf.control_dependencies([whole]):
            body = tf.io.decode_base64(code)
            whole = expect(tf.strings.length(body) >= CHECKSUM + self.fixed, damaged)
        with tf.control_dependencies([whole]):
            said = tf.io.decode_raw(tf.strings.substr(body, 0, CHECKSUM), tf.int64)
            found = _checksum(tf.strings.substr(body, CHECKSUM, tf.int32.max))
            whole = expect(tf.reshape(said, [-1]) == found, damaged)
        with tf.control_dependencies([whole]):
            return tf.identity(body)

    def _split(self, body: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        """The strings behind the numbers, `[B, K]`."""
        total = tf.reduce_sum(tf.cast(lengths, tf.int64), axis=1)
        rest = tf.cast(tf.strings.length(body) - CHECKSUM - self.fixed, tf.int64)
        good = tf.reduce_all(lengths >= 0, axis=1) & (total == rest)
        with tf.control_dependencies([expect(good, "state: truncated or damaged")]):
            starts = tf.cumsum(lengths, axis=1, exclusive=True) + CHECKSUM + self.fixed
            return tf.strings.substr(tf.tile(body[:, None], [1, self.texts]), starts, lengths)


def _size(spec: tf.TensorSpec) -> int:
    return spec.shape.num_elements() * spec.dtype.size


def _rows(tensor: tf.Tensor, spec: tf.TensorSpec) -> tf.Tensor:
    """`[B, ...]` -> `[B, elements]`."""
    return tf.reshape(tensor, [-1, spec.shape.num_elements()])


def _to_bytes(rows: tf.Tensor) -> tf.Tensor:
    """Numbers `[B, K]` -> little-endian bytes `[B, K * size]`."""
    rows = tf.cast(rows, tf.uint8) if rows.dtype == tf.bool else rows
    return tf.reshape(tf.bitcast(rows, tf.uint8), [-1, rows.shape[1] * rows.dtype.size])


def _from_bytes(raw: tf.Tensor, spec: tf.TensorSpec) -> tf.Tensor:
    """The inverse of `_to_bytes`, with the shape of `spec`."""
    shape = [-1, *spec.shape]
    if spec.dtype.size == 1:
        same = spec.dtype == tf.bool
        return tf.reshape(raw != 0 if same else tf.bitcast(raw, spec.dtype), shape)
    return tf.reshape(tf.bitcast(tf.reshape(raw, [*shape, spec.dtype.size]), spec.dtype), shape)


def _join(raw: tf.Tensor) -> tf.Tensor:
    """Bytes `[B, K]` -> strings `[B]`."""
    return _join_strings(tf.gather(tf.constant(_BYTES), tf.cast(raw, tf.int32)))


def _join_strings(strings: tf.Tensor) -> tf.Tensor:
    return tf.strings.reduce_join(strings, axis=1)


def _checksum(body: tf.Tensor) -> tf.Tensor:
    """`[B]` int64, the same on every machine (farmhash)."""
    return tf.strings.to_hash_bucket_fast(body, tf.int64.max)
