"""Readers: they answer questions from memory, and never write."""

from lemn_tf.readers.base import Answer, Reader
from lemn_tf.readers.bidaf import BiDAF
from lemn_tf.readers.lite import LiteReader
from lemn_tf.readers.memn2n import MemN2N
from lemn_tf.readers.mqn import FRMQN, MQN
from lemn_tf.readers.view import PolicyView

__all__ = ["FRMQN", "MQN", "Answer", "BiDAF", "LiteReader", "MemN2N", "PolicyView", "Reader"]
