"""lemn_tf: a bounded memory over an endless stream that learns what to remember."""

from lemn_tf import memory, readers, retention
from lemn_tf.episode import Episode
from lemn_tf.layer import EpisodicMemory
from lemn_tf.learning import ActorCritic, Hindsight, MemoryModel, Objective, Rollout
from lemn_tf.memory import MemoryState
from lemn_tf.model import StreamReader
from lemn_tf.retention import Decision, RetentionPolicy
from lemn_tf.runs import from_preset, load
from lemn_tf.text import Vocabulary

__version__ = "0.1.0"

__all__ = [
    "ActorCritic",
    "Decision",
    "Episode",
    "EpisodicMemory",
    "Hindsight",
    "MemoryModel",
    "MemoryState",
    "Objective",
    "RetentionPolicy",
    "Rollout",
    "StreamReader",
    "Vocabulary",
    "from_preset",
    "load",
    "memory",
    "readers",
    "retention",
]
