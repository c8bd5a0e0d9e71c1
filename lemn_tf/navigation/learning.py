"""Learning: one update of a `Navigator` from 32 or so whole episodes, by actor-critic.

Where to go and what to forget are two categorical choices at every step, and one return judges
both: advantage actor-critic with GAE, `lemn_tf.learning.critic.choice_losses`, once for
each. An update acts first (`rollout.walk`, no gradients, integers recorded), then computes the loss
of all steps at once: the convolutions see each distinct frame once, everything else gathers.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import keras
import numpy as np
import tensorflow as tf

from lemn_tf.learning import hindsight
from lemn_tf.learning.critic import choice_losses, judge, normalised
from lemn_tf.memory import EMPTY
from lemn_tf.navigation.agent import MemoryAgent
from lemn_tf.navigation.guide import advice
from lemn_tf.navigation.navigator import Navigator
from lemn_tf.navigation.recipe import Recipe
from lemn_tf.navigation.rollout import Walk, colours, outcome, walk
from lemn_tf.pipelines.frames import Course, buckets
from lemn_tf.retention.base import Cells


class Lived(Protocol):
    """Whole episodes as they were lived, `[B, T, ...]`: what both choices are judged by."""

    @property
    def action(self) -> tf.Tensor:
        """int32, what was done."""

    @property
    def reward(self) -> tf.Tensor:
        """Received for it; 0 after the end of an episode."""

    @property
    def valid(self) -> tf.Tensor:
        """bool, False after the end."""

    @property
    def ids(self) -> tf.Tensor:
        """int64 `[B, T, N + 1]`, the steps at which the candidates were seen, -1 = unused."""

    @property
    def slot(self) -> tf.Tensor:
        """int32, which of them was forgotten."""


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
        The `Batch`, with new numbers for the frames.
    """
    lengths = buckets(walked.valid.shape[1])[::-2][:3]  # three programs at most
    length = min(size for size in lengths if size >= steps)
    walked = Walk._make([*(x[:, :length] for x in walked[:-1]), {}])
    frames, indicator = course.frames, course.indicator
    if frames.shape[0] > 128:
        seen = np.unique(walked.frame.numpy()[walked.valid.numpy()])
        size = next(n for n in buckets(frames.shape[0], 128) if n >= len(seen))
        place = np.zeros(frames.shape[0], np.int32)
        place[seen] = np.arange(len(seen))
        rows = np.pad(seen, (0, size - len(seen)))
        walked = walked._replace(
            frame=tf.constant(place[walked.frame.numpy()]),
            entries=tf.constant(place[walked.entries.numpy()]),
        )
        frames, indicator = (tf.constant(x.numpy()[rows]) for x in (frames, indicator))
    return Batch(walked, frames, course.palette, indicator)


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
    output, _ = model.unroll(
        tf.gather(views.query, walked.frame),
        tf.gather(views.codes, walked.entries[..., :-1]),
        walked.ids,
        walked.action,
    )
    vectors = tf.gather(views.vectors, walked.entries)
    total, shown = judged(model, recipe, walked, (output, vectors), entropy, seed)
    steps = count(walked.valid)
    if recipe.guidance:
        total += guidance * guided(walked, reader.actor(output), output[..., 0]) / steps
        known = walked.valid & ((output[..., 0] > 0) == walked.red)
        shown["goal_known"] = count(known) / steps
    shown |= endings(batch)
    return total, {"loss": total, **shown, "frames": steps}


class Verdict(NamedTuple):
    """How episodes turned out, as it was seen when they were lived.

    Attributes:
        advantage: `[B, T]`, how much better than expected; see `learning.critic.judge`.
        returns: `[B, T]`.
        moved: `[B, T]`, log of the probability that an action was drawn with; None if the weights
            are still those that drew it.
        dropped: `[B, T]`, the same of what was forgotten.
        worth: `[B, T, N + 1]`, what keeping each candidate turned out to be worth, if known.
    """

    advantage: tf.Tensor
    returns: tf.Tensor
    moved: tf.Tensor | None = None
    dropped: tf.Tensor | None = None
    worth: tf.Tensor | None = None


def judged(
    model: MemoryAgent,
    recipe: Recipe,
    lived: Lived,
    seen: tuple[tf.Tensor, tf.Tensor],
    entropy: tf.Tensor,
    seed: tf.Tensor | None = None,
    verdict: Verdict | None = None,
) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """The loss of both choices at every step, what to do and what to forget, by one return.

    Args:
        model: the agent.
        recipe: discount, lambda and weights.
        lived: what happened.
        seen: the reader's output `[B, T, units]`, and what the policy saw of the candidates,
            `[B, T, N + 1, width]`.
        entropy: weight of the entropy bonus of the actions.
        seed: the one that was acted with.
        verdict: how it turned out; default by the values as they are now.

    Returns:
        The mean over steps, and scalars to show.
    """
    output, vectors = seen
    values, valid = tf.squeeze(model.critic(output), -1), lived.valid
    if verdict is None:
        came = judge(lived.reward, values, valid, recipe.discount, recipe.gae_lambda)
        verdict = Verdict(*came)
    steps, advantage = count(valid), verdict.advantage
    logits, better = model.reader.actor(output), normalised(advantage, valid)
    move, surprise = choice_losses(logits, lived.action, better, valid, verdict.moved)
    error = tf.reduce_sum(tf.where(valid, tf.square(values - verdict.returns), 0.0))
    total = tf.reduce_sum(move - entropy * surprise) + recipe.value * error
    shown = {"value_loss": error / steps, "action_entropy": tf.reduce_sum(surprise) / steps}
    if model.learns:
        logits, free = forgetting(model, lived, vectors, seed)
        better = normalised(advantage, free)
        drop, surprise = choice_losses(logits, lived.slot, better, free, verdict.dropped)
        total += tf.reduce_sum(drop - recipe.eviction_entropy * surprise)
        shown["eviction_entropy"] = tf.reduce_sum(surprise) / tf.maximum(count(free), 1.0)
        if verdict.worth is not None:
            lost = tf.reduce_sum(hindsight.loss(logits, verdict.worth, free))
            total += recipe.hindsight * lost
            shown["hindsight"] = lost / steps
    return total / steps, shown


def forgetting(
    model: MemoryAgent, lived: Lived, vectors: tf.Tensor, seed: tf.Tensor | None
) -> tuple[tf.Tensor, tf.Tensor]:
    """Eviction logits of all steps, `[B, T, N + 1]`, and which steps had a choice, `[B, T]`."""
    cells = Cells(vectors, lived.ids, lived.ids[..., -1] + 1, seed)
    free = lived.valid & tf.reduce_all(lived.ids != EMPTY, axis=-1)
    return model.memory.policy.replay(cells, lived.slot).logits, free


def guided(walked: Walk, logits: tf.Tensor, goal: tf.Tensor) -> tf.Tensor:
    """The guidance of all steps together, a scalar.

    Args:
        walked: the episodes.
        logits: `[B, T, A]`, of the actions: they should lie on a shortest way to the right goal.
        goal: `[B, T]`, the logit of what the agent takes for the right goal, red against cyan.
    """
    led = walked.valid & tf.reduce_any(walked.shortest, axis=-1)
    lost = tf.where(led, astray(logits, walked.shortest), 0.0)
    wrong = tf.nn.sigmoid_cross_entropy_with_logits(tf.cast(walked.red, tf.float32), goal)
    return tf.reduce_sum(lost + tf.where(walked.valid, wrong, 0.0))


def endings(batch: Batch) -> dict[str, tf.Tensor]:
    """How the episodes of an update ended, as scalars to show."""
    ended = outcome(batch.walk, batch.indicator)
    mean = {
        "success": ended.success,
        "finished": ended.finished,
        "return": ended.total,
        "length": ended.steps,
    }
    shown = {name: tf.reduce_mean(tf.cast(x, tf.float32)) for name, x in mean.items()}
    held = count(ended.remembered & ended.finished)
    shown["indicator_in_memory"] = held / tf.maximum(count(ended.finished), 1.0)
    return shown


def count(marked: tf.Tensor) -> tf.Tensor:
    """How many are True, as a float."""
    return tf.reduce_sum(tf.cast(marked, tf.float32))


def astray(logits: tf.Tensor, shortest: tf.Tensor) -> tf.Tensor:
    """-log of the probability `[...]` that one of the marked actions `[..., A]` is taken."""
    kept = tf.where(shortest, logits, logits - 1e9)
    return tf.reduce_logsumexp(logits, axis=-1) - tf.reduce_logsumexp(kept, axis=-1)


class Learner:
    """Updates an agent. Acting and learning are each compiled once for every size of a batch.

    Args:
        model: trained in place.
        recipe: how.
        jit_compile: compile with XLA.
    """

    def __init__(self, model: MemoryAgent, recipe: Recipe, jit_compile: bool = True):
        self.model, self.recipe = model, recipe
        self.optimizer = keras.optimizers.Adam(recipe.learning_rate)
        self.optimizer.build(model.trainable_variables)
        self._walk = tf.function(self._act, autograph=False, jit_compile=jit_compile)
        self._learn = tf.function(self._improve, autograph=False, jit_compile=jit_compile)

    def update(
        self, course: Course, starts: tf.Tensor, seed: tuple[int, int], progress: float
    ) -> dict[str, float]:
        """One update; returns scalars to show.

        Args:
            course: the maps.
            starts: int32 `[B]`, start poses.
            seed: two numbers; the same ones give the same update.
            progress: how much of the training is done, 0 to 1.
        """
        drawn = tf.constant(seed, tf.int32)
        walked, steps = self._walk(course, starts, drawn, course.longest)
        return self.learn(compact(walked, int(steps), course), drawn, progress)

    def learn(self, batch: Any, seed: tf.Tensor, progress: float) -> dict[str, float]:
        """The second half of an update: learns from what was lived with that seed."""
        now = self.recipe.at(progress)
        self.optimizer.learning_rate.assign(now.rate)
        weights = (tf.constant(weight, tf.float32) for weight in (now.entropy, now.guidance))
        shown = self._learn(batch, *weights, seed)
        return {name: float(value) for name, value in shown.items()}

    def _act(self, course: Course, starts: tf.Tensor, seed: tf.Tensor, steps: int):
        walked, count = walk(self.model, course, starts, steps, seed)
        if self.recipe.guidance:
            walked = walked._replace(shortest=advice(course, walked.pose))
        return walked, count

    def losses(self, batch: Any, *weights: Any) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """The loss of an update and scalars to show; see the function of that name."""
        return losses(self.model, self.recipe, batch, *weights)

    def gradients(
        self,
        batch: Any,
        entropy: tf.Tensor,
        guidance: tf.Tensor | float = 0.0,
        seed: tf.Tensor | None = None,
    ) -> tuple[list[tf.Tensor], dict[str, tf.Tensor]]:
        """Gradients before clipping, in the order of `model.trainable_variables`, and scalars."""
        variables = [v.value for v in self.model.trainable_variables]
        with tf.GradientTape() as tape:
            loss, shown = self.losses(batch, entropy, guidance, seed)
        return tape.gradient(loss, variables), shown

    def _improve(self, batch: Any, entropy: tf.Tensor, guidance: tf.Tensor, seed: tf.Tensor):
        gradients, shown = self.gradients(batch, entropy, guidance, seed)
        gradients, norm = tf.clip_by_global_norm(gradients, self.recipe.clip)
        pairs = zip(gradients, self.model.trainable_variables, strict=True)
        self.optimizer.apply_gradients(pairs)
        return {**shown, "gradient_norm": norm}
