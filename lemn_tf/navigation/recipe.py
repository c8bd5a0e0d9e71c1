"""Recipes: how an agent is trained, and what suits each world and reader."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple


class Weights(NamedTuple):
    """What changes over the course of a training.

    Attributes:
        rate: of Adam.
        entropy: weight of the entropy bonus of the actions.
        guidance: weight of the loss that asks for what the guide would do.
    """

    rate: float
    entropy: float
    guidance: float


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How an agent is trained; written to the folder of its run.

    Attributes:
        frames: length of the training, in steps of the environments.
        episodes: whole episodes in each update.
        maps: different maps in each update, each walked by `episodes / maps` agents with different
            start headings; None draws a map and a heading for each episode.
        learning_rate: of Adam, at the beginning.
        final_rate: share of it left at the end; falls linearly.
        clip: largest norm of the whole gradient.
        discount: gamma.
        gae_lambda: lambda of the generalised advantage.
        entropy: weight of the entropy bonus of the actions, at the beginning.
        final_entropy: the same at the end; None keeps it constant.
        eviction_entropy: the same for what to forget.
        guidance: weight, at the beginning, of a loss that asks for what the guide would do where
            the agent has got to (see `navigation.guide`), and asks the first number of D which goal
            is the right one; falls linearly. What to forget is left to the return.
        guided: share of the training after which the guidance is gone.
        value: weight of the value loss.
        passes: how often an update learns from its episodes.
        practice: weight of the loss of the same steps read from random memories, and `hindsight`
            of what to forget judged in hindsight; see `lemn_tf.navigation.hindsight`.
        temperature: how the agent plays when it is validated, and ever after; see `Navigator`.
        validate_every: updates between two validations.
    """

    frames: int = 4_000_000
    episodes: int = 32
    maps: int | None = None
    learning_rate: float = 1e-3
    final_rate: float = 1.0
    clip: float = 0.5
    discount: float = 0.99
    gae_lambda: float = 0.95
    entropy: float = 0.07
    final_entropy: float | None = None
    eviction_entropy: float = 0.005
    guidance: float = 0.0
    guided: float = 0.5
    value: float = 0.5
    passes: int = 1
    practice: float = 0.0
    hindsight: float = 0.0
    temperature: float = 0.0
    validate_every: int = 100

    def __post_init__(self) -> None:
        if self.maps is not None and self.episodes % self.maps:
            raise ValueError(
                f"expected episodes to be a multiple of maps; got {self.episodes} and {self.maps}"
            )
        if not self.guided > 0:
            raise ValueError(f"expected guided to be a share above 0, got {self.guided}")

    def at(self, done: float) -> Weights:
        """The weights when a share `done` of the training, 0 to 1, is over."""
        final = self.entropy if self.final_entropy is None else self.final_entropy
        return Weights(
            rate=self.learning_rate * (1.0 - (1.0 - self.final_rate) * done),
            entropy=self.entropy + (final - self.entropy) * done,
            guidance=self.guidance * max(1.0 - done / self.guided, 0.0),
        )

    def further(self) -> Recipe:
        """How an agent trained by this recipe goes on: as it ended, without guidance, in smaller
        steps from more episodes each, on fewer maps, whose frames take most of the time."""
        entropy = self.entropy if self.final_entropy is None else self.final_entropy
        return dataclasses.replace(
            self,
            frames=3_000_000,
            episodes=64,
            maps=None if self.maps is None else 4,
            learning_rate=3e-4,
            final_rate=0.1,
            entropy=entropy,
            final_entropy=None,
            guidance=0.0,
        )


_CORRIDOR = Recipe(frames=2_000_000)
_MAZE = Recipe(
    frames=4_000_000,
    episodes=32,
    maps=8,
    final_rate=0.1,
    entropy=0.03,
    final_entropy=0.01,
    guidance=1.0,
    temperature=1.0,
    validate_every=200,
)
AGENT_RECIPES = {
    ("imaze", "mqn"): _CORRIDOR,
    ("imaze", "frmqn"): _CORRIDOR,
    # MQN cannot tell where it has just been: its best policy leaves much to chance, and takes more
    # episodes to judge.
    ("single-indicator", "mqn"): dataclasses.replace(_MAZE, frames=8_000_000, episodes=64),
    ("single-indicator", "frmqn"): _MAZE,
}
"""The recipes by environment and reader."""
READERS = tuple(dict.fromkeys(reader for _, reader in AGENT_RECIPES))
"""The readers of maze agents."""
SLOTS = {"imaze": 4, "single-indicator": 5}
"""The mazes, and the size of the memory in the paper's experiments with each."""
WORLD_RECIPE = Recipe(
    frames=1_000_000,
    learning_rate=2e-3,
    final_rate=0.2,
    entropy=0.03,
    final_entropy=0.003,
    eviction_entropy=0.08,
    passes=4,
    practice=1.0,
    hindsight=1.0,
    validate_every=20,
)
"""The recipe for worlds of which nothing is known, the same for all."""
