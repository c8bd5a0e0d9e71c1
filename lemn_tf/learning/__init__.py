"""What trains a retention policy in any model: rollouts, credit, objectives, and `fit`.

rollout      what happened: who was a candidate, who left, what was made of the memory
hindsight    credit for keeping each candidate, found by leaving items out and putting them back
critic       the paper's actor-critic with generalised advantages
objectives   both by name
behind       the part of a model behind its memory, to be run again on other memories
model        MemoryModel: the `keras.Model` whose `fit` does all this
"""

from lemn_tf.learning.critic import ActorCritic
from lemn_tf.learning.hindsight import Hindsight
from lemn_tf.learning.model import MemoryModel
from lemn_tf.learning.objectives import Objective
from lemn_tf.learning.rollout import Rollout

__all__ = ["ActorCritic", "Hindsight", "MemoryModel", "Objective", "Rollout"]
