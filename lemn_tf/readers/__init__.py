"""Readers: they answer questions from memory, and never write.

>>> get("memn2n", vocabulary_size=30, sentence_length=6).name
'memn2n'
"""

from lemn_tf.readers.base import Answer, Reader
from lemn_tf.readers.bidaf import BiDAF
from lemn_tf.readers.lite import LiteReader
from lemn_tf.readers.memn2n import MemN2N
from lemn_tf.readers.mqn import FRMQN, LSTM, MQN
from lemn_tf.readers.view import PolicyView
from lemn_tf.readers.when import When

__all__ = [
    "FRMQN",
    "LSTM",
    "MQN",
    "Answer",
    "BiDAF",
    "LiteReader",
    "MemN2N",
    "PolicyView",
    "Reader",
    "When",
    "find",
    "get",
    "names",
]

_READERS: dict[str, type[Reader]] = {
    "memn2n": MemN2N,
    "mqn": MQN,
    "frmqn": FRMQN,
    "lstm": LSTM,
    "lite": LiteReader,
    "bidaf": BiDAF,
}


def names() -> tuple[str, ...]:
    """The names that `get` knows."""
    return tuple(_READERS)


def find(name: str) -> type[Reader]:
    """The class of a reader by its name."""
    if name not in _READERS:
        raise ValueError(f"unknown reader {name!r}; known are {', '.join(names())}")
    return _READERS[name]


def get(reader: str | Reader, **options) -> Reader:
    """The reader of that name, built with `options`; a reader object is returned as it is."""
    if isinstance(reader, Reader):
        if options:
            raise ValueError(f"options {sorted(options)} go with a reader's name, not an object")
        return reader
    return find(reader)(**{"name": reader, **options})
