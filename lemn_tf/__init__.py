"""lemn_tf: a bounded memory over an endless stream that learns what to remember."""

from lemn_tf import memory, retention
from lemn_tf.layer import EpisodicMemory
from lemn_tf.memory import MemoryState
from lemn_tf.retention import Decision, RetentionPolicy

__version__ = "0.1.0"

__all__ = ["Decision", "EpisodicMemory", "MemoryState", "RetentionPolicy", "memory", "retention"]
