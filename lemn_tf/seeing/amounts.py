"""How much there is to look at unless it is said; known without TensorFlow."""

EPISODES = 64
"""How many episodes in a world a score is the mean of."""
LENGTHS = (5, 9, 15, 30)
"""The I-Mazes to look at unless others are named."""
MAPS = 25
"""How many random mazes of each kind to look at unless there is a file of them."""
KINDS = 2
"""How many kinds of random mazes there are: of a size known from training, and larger."""
