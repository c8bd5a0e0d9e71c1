"""Learning: one update of a `Navigator` from 32 or so whole episodes, by actor-critic.

Where to go and what to forget are two categorical choices at every step, and one return judges
both: advantage actor-critic with GAE, `lemn_tf.learning.critic.actor_critic_loss`, once for
each. An update acts first (`maze_rollout.walk`, no gradients, integers recorded), then computes the
loss of all steps at once: the convolutions see each distinct frame once, everything else gathers.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from lemn_tf.learning.critic import actor_critic_loss
from lemn_tf.memory import EMPTY
from lemn_tf.navigation.navigator import Navigator
from lemn_tf.navigation.rollout import Course, Walk, buckets, colours, outcome, walk
from lemn_tf.retention.base import Cells


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How an agent is trained; written to the folder of its run.

    Attributes:
        frames: length of the training, in steps of the environments.
        episodes: whole episodes an update.
        maps: different maps an update, each walked by `episodes / maps` agents with different start
            headings; None draws map and heading anew for each episode.
        learning_rate: of Adam, at the beginning.
        final_rate: share of it left at the end; falls linearly.
        clip: largest norm of the whole gradient.
        discount: gamma.
        gae_lambda: lambda of the generalised advantage.
        entropy, final_entropy: weight of the entropy bonus of the actions, at the beginning and
            the end; None keeps it.
        eviction_entropy: the same for what to forget.
        guidance: weight, at the beginning, of a loss that asks for the shortest way to the right
            goal from wherever the agent has got to, and asks the first number of D which goal that
            is; falls linearly and is gone half-way. What to forget is left to the return.
        value: weight of the value loss.
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
    value: float = 0.5
    temperature: float = 0.0
    validate_every: int = 100

    def __post_init__(self):
        if self.maps is not None and self.episodes % self.maps:
            raise ValueError(
                f"expected episodes to be a multiple of maps; got {self.episodes} and {self.maps}"
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
RECIPES = {
    ("imaze", "mqn"): _CORRIDOR,
    ("imaze", "frmqn"): _CORRIDOR,
    # MQN cannot tell where it has just been: its best policy leaves much to chance, and takes more
    # episodes to judge.
    ("single-indicator", "mqn"): dataclasses.replace(_MAZE, frames=8_000_000, episodes=64),
    ("single-indicator", "frmqn"): _MAZE,
}
"""The recipes by environment and reader."""


def further(recipe: Recipe) -> Recipe:
    """How an agent that was trained by a recipe goes on: as it ended, unguided, in smaller steps
    from more episodes each."""
    entropy = recipe.entropy if recipe.final_entropy is None else recipe.final_entropy
    return dataclasses.replace(
        recipe,
        frames=3_000_000,
        episodes=64,
        learning_rate=3e-4,
        final_rate=0.1,
        entropy=entropy,
        final_entropy=None,
        guidance=0.0,
    )


class Batch(NamedTuple):
    """What the loss of one update is computed from: the walk, and the frames that it saw."""

    walk: Walk
    frames: tf.Tensor
    palette: tf.Tensor
    indicator: tf.Tensor


def compact(walked: Walk, steps: int, course: Course) -> Batch:
    """Cuts a walk to the steps that were walked and, where there are many frames, to those seen.

    Args:
        walked: as `walk` gave it.
        steps: of the longest episode.
        course: where it was walked.

    Returns:
        The `Batch`, with frames numbered anew.
    """
    lengths = buckets(walked.valid.shape[1])[::-2][:3]  # three programs at most
    length = min(size for size in lengths if size >= steps)
    walked = Walk(*(x[:, :length] for x in walked[:-1]), shown={})
    tables = course.tables
    if tables.frames.shape[0] <= 128:
        return Batch(walked, tables.frames, tables.palette, tf.constant(course.indicator))
    seen = np.unique(walked.frame.numpy()[walked.valid.numpy()])
    size = next(n for n in buckets(tables.frames.shape[0], 128) if n >= len(seen))
    place = np.zeros(tables.frames.shape[0], np.int32)
    place[seen] = np.arange(len(seen))
    rows = np.pad(seen, (0, size - len(seen)))
    walked = walked._replace(
        frame=tf.constant(place[walked.frame.numpy()]),
        entries=tf.constant(place[walked.entries.numpy()]),
    )
    frames = tf.constant(tables.frames.numpy()[rows])
    return Batch(walked, frames, tables.palette, tf.constant(course.indicator[rows]))


def losses(
    model: Navigator,
    recipe: Recipe,
    batch: Batch,
    entropy: tf.Tensor,
    guidance: tf.Tensor | float = 0.0,
    seed: tf.Tensor | None = None,
) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """The loss of one update, a mean over its steps, and scalars to show.

    Args:
        model: the agent.
        recipe: discount, lambda and weights.
        batch: what happened.
        entropy: weight of the entropy bonus of the actions.
        guidance: weight of the loss that asks for the shortest way and the right goal.
        seed: the one that was given to `walk`.
    """
    walked, reader = batch.walk, model.reader
    views = model.look(colours(batch.frames, batch.palette))
    output, _ = reader.unroll(
        tf.gather(views.query, walked.frame),
        tf.gather(views.codes, walked.entries[..., :-1]),
        walked.ids[..., :-1],
    )
    values = tf.squeeze(model.critic(output), -1)
    steps = tf.reduce_sum(tf.cast(walked.valid, tf.float32))

    def judged(logits, choices, free):
        return actor_critic_loss(
            logits,
            choices,
            values,
            walked.reward,
            free,
            walked.valid,
            recipe.discount,
            recipe.gae_lambda,
        )

    logits = reader.actor(output)
    moves = judged(logits, walked.action, walked.valid)
    total = tf.reduce_sum(moves.policy + recipe.value * moves.value - entropy * moves.entropy)
    if recipe.guidance:
        guided = walked.valid & tf.reduce_any(walked.shortest, axis=-1)
        lost = tf.where(guided, astray(logits, walked.shortest), 0.0)
        red = tf.cast(walked.red, tf.float32)
        wrong = tf.nn.sigmoid_cross_entropy_with_logits(red, output[..., 0])
        lost += tf.where(walked.valid, wrong, 0.0)
        total += guidance * tf.reduce_sum(lost)
    free = walked.valid & tf.reduce_all(walked.ids != EMPTY, axis=-1)
    choices = tf.maximum(tf.reduce_sum(tf.cast(free, tf.float32)), 1.0)
    shown = {
        "value_loss": tf.reduce_sum(moves.value) / steps,
        "action_entropy": tf.reduce_sum(moves.entropy) / steps,
    }
    if model.learns:
        vectors = tf.gather(views.vectors, walked.entries)
        cells = Cells(vectors, walked.ids, walked.ids[..., -1] + 1, seed)
        scores = model.memory.policy.replay(cells, walked.slot)
        drops = judged(scores.logits, walked.slot, free)
        total += tf.reduce_sum(drops.policy - recipe.eviction_entropy * drops.entropy)
        shown["eviction_entropy"] = tf.reduce_sum(drops.entropy) / choices
    ended = outcome(walked, batch.indicator)
    mean = {
        "success": ended.success,
        "finished": ended.finished,
        "return": ended.total,
        "length": ended.steps,
    }
    shown |= {name: tf.reduce_mean(tf.cast(x, tf.float32)) for name, x in mean.items()}
    finished = tf.cast(ended.finished, tf.float32)
    held = tf.reduce_sum(tf.cast(ended.remembered, tf.float32) * finished)
    shown["indicator_in_memory"] = held / tf.maximum(tf.reduce_sum(finished), 1.0)
    if recipe.guidance:
        known = walked.valid & ((output[..., 0] > 0) == walked.red)
        shown["goal_known"] = tf.reduce_sum(tf.cast(known, tf.float32)) / steps
    return total / steps, {"loss": total / steps, **shown, "frames": steps}


def astray(logits: tf.Tensor, shortest: tf.Tensor) -> tf.Tensor:
    """-log of the probability `[...]` that one of the marked actions `[..., A]` is taken."""
    kept = tf.where(shortest, logits, logits - 1e9)
    return tf.reduce_logsumexp(logits, axis=-1) - tf.reduce_logsumexp(kept, axis=-1)


class Learner:
    """Updates an agent: acting and learning, each one compiled program for each size.

    Args:
        model: trained in place.
        recipe: how.
        jit_compile: compile with XLA.
    """

    def __init__(self, model: Navigator, recipe: Recipe, jit_compile: bool = True):
        self.model, self.recipe = model, recipe
        self.optimizer = keras.optimizers.Adam(recipe.learning_rate)
        self.optimizer.build(model.trainable_variables)
        self._walk = tf.function(self._act, jit_compile=jit_compile)
        self._learn = tf.function(self._improve, jit_compile=jit_compile, reduce_retracing=False)

    def update(
        self, course: Course, starts: np.ndarray, seed: tuple[int, int], progress: float
    ) -> dict[str, float]:
        """One update.

        Args:
            course: the maps.
            starts: int32 `[B]`, start poses.
            seed: two numbers; the same ones give the same update.
            progress: how much of the training is done, 0 to 1.

        Returns:
            Scalars to show.
        """
        recipe = self.recipe
        seed = tf.constant(seed, tf.int32)
        walked, steps = self._walk(course.tables, tf.constant(starts, tf.int32), seed, course.limit)
        batch = compact(walked, int(steps), course)
        final = recipe.entropy if recipe.final_entropy is None else recipe.final_entropy
        entropy = recipe.entropy + (final - recipe.entropy) * progress
        rate = recipe.learning_rate * (1.0 - (1.0 - recipe.final_rate) * progress)
        self.optimizer.learning_rate.assign(rate)
        guidance = recipe.guidance * max(1.0 - 2.0 * progress, 0.0)
        weights = (tf.constant(weight, tf.float32) for weight in (entropy, guidance))
        shown = self._learn(batch, *weights, seed)
        return {name: float(value) for name, value in shown.items()}

    def _act(self, tables, starts, seed, steps: int):
        return walk(self.model, tables, starts, steps, seed)

    def gradients(self, batch: Batch, entropy, guidance=0.0, seed: tf.Tensor | None = None):
        """Gradients before clipping, in the order of `model.trainable_variables`, and scalars."""
        variables = [v.value for v in self.model.trainable_variables]
        with tf.GradientTape() as tape:
            loss, shown = losses(self.model, self.recipe, batch, entropy, guidance, seed)
        return tape.gradient(loss, variables), shown

    def _improve(self, batch: Batch, entropy: tf.Tensor, guidance: tf.Tensor, seed: tf.Tensor):
        gradients, shown = self.gradients(batch, entropy, guidance, seed)
        gradients, norm = tf.clip_by_global_norm(gradients, self.recipe.clip)
        pairs = zip(gradients, self.model.trainable_variables, strict=True)
        self.optimizer.apply_gradients(pairs)
        return {**shown, "gradient_norm": norm}
