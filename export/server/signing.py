"""Signs packed states, for servers whose states pass through other hands.

The checksum inside a packed state shows damage, not tampering: anybody can make a new one. With a
key, a server adds a signature (HMAC-SHA256) to each state that it gives, and takes only states that
carry one:

    lemn1.0123456789abcdef.<state>.<signature>
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Callable

import numpy as np

from lemn_tf.export.errors import Code, ServingError, invalid
from lemn_tf.export.loaded import LoadedModel, LoadedSignature
from lemn_tf.export.secret import checked, read
from lemn_tf.export.tensors import STRING, Arrays, Spec

STATE = "state"
"""The name of a packed state among inputs and outputs."""


class StateKey:
    """A secret to sign states with.

    Args:
        secret: at least 16 bytes.

    Example:

    >>> key = StateKey(b"only for this example")
    >>> key.verify(key.sign(b"lemn1.x.y"))
    b'lemn1.x.y'
    >>> key.verify(b"lemn1.x.z" + key.sign(b"lemn1.x.y")[9:])
    Traceback (most recent call last):
    lemn_tf.export.errors.ServingError: state: expected one that this server has signed
    """

    def __init__(self, secret: bytes):
        self._secret = checked(secret)

    @classmethod
    def read(cls, path: str | os.PathLike) -> StateKey:
        """The key in a file, without white space at its ends."""
        return cls(read(path))

    def sign(self, state: bytes) -> bytes:
        """The state with its signature."""
        return state + b"." + self._signature(state)

    def verify(self, signed: bytes) -> bytes:
        """The state without its signature; "" is a fresh memory and needs none."""
        if not signed:
            return signed
        state, _, signature = signed.rpartition(b".")
        if not hmac.compare_digest(signature, self._signature(state)):
            raise invalid("state: expected one that this server has signed")
        return state

    def _signature(self, state: bytes) -> bytes:
        digest = hmac.new(self._secret, state, hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=")

    def open(self, model: LoadedModel, signature: LoadedSignature, arrays: Arrays) -> Arrays:
        """The inputs of a call with their states verified.

        Raises:
            ServingError: a state is not signed, or the signature takes states as named tensors,
                which cannot be.
        """
        if signature.name == "pack" or f"{signature.name}_packed" in model.signatures:
            raise ServingError(
                Code.FAILED_PRECONDITION,
                f"this server takes signed states only: no {signature.name!r}, which takes or "
                "gives a state as named tensors; use the signatures that end in _packed",
            )
        return self._each(arrays, signature.inputs, self.verify)

    def seal(self, signature: LoadedSignature, outputs: Arrays) -> Arrays:
        """The outputs of a call with their states signed."""
        return self._each(outputs, signature.outputs, self.sign)

    @staticmethod
    def _each(arrays: Arrays, specs: dict[str, Spec], change: Callable) -> Arrays:
        if STATE not in specs or specs[STATE].enum != STRING:
            return arrays
        states = arrays[STATE]
        changed = np.empty(states.size, object)
        changed[:] = [change(state) for state in states.ravel().tolist()]
        return {**arrays, STATE: changed.reshape(states.shape)}
