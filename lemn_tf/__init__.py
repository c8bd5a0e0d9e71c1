"""lemn_tf: a bounded memory over an endless stream that learns what to remember."""
from lemn_tf import memory, retention
from lemn_tf.layer import EpisodicMemory
from lemn_tf.learning import MemoryModel
