"""Readers: they answer questions from memory, and never write."""

from lemn_tf.readers.base import Answer, Reader
from lemn_tf.readers.memn2n import MemN2N

__all__ = ["Answer", "MemN2N", "Reader"]
