"""Any Gymnasium world: episodes of a `MemoryAgent` side by side, and what it learns from them.

An update lives first: one whole episode in each of B environments, step by step, and records what
was seen, done and dropped. Then it learns, in one compiled program, the loss of all steps at once.
In both halves an observation is encoded once: while an agent lives here, its memory holds what was
made of the observations (`Views`), not the observations.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import tensorflow as tf

from lemn_tf import memory, retention
from lemn_tf.learning.critic import choice_losses, judge, log_probability, normalised
from lemn_tf.memory import MemoryState
from lemn_tf.navigation import hindsight, observations
from lemn_tf.navigation.adapters import ADAPTERS, unknown
from lemn_tf.navigation.agent import MemoryAgent, Views
from lemn_tf.navigation.learning import Learner, Verdict, count, forgetting, judged
from lemn_tf.navigation.recipe import Recipe
from lemn_tf.pipelines.frames import buckets

LONGEST = 1000
"""Steps after which an episode is cut, whatever its world says."""
Nest = Any


class Episodes(NamedTuple):
    """Whole episodes, `[B, T, ...]`; after its end a row is padding.

    Attributes:
        seen: nest, the observations; with a `view`, each different one once, `[K, ...]`.
        action: int32, what was done on seeing them.
        reward: received for it; 0 after the end.
        valid: bool, False after the end.
        ids: int64 `[B, T, N + 1]`, the steps at which the candidates of the memory were seen.
        slot: int32, which of them was forgotten.
        view: int32, which of the different observations was seen; see `distinct`.
    """

    seen: Nest
    action: tf.Tensor
    reward: tf.Tensor
    valid: tf.Tensor
    ids: tf.Tensor
    slot: tf.Tensor
    view: tf.Tensor | None = None


def make(env: str, rows: int = 1, modules: Sequence[str] = ()) -> gymnasium.vector.VectorEnv:
    """Environments side by side.

    Args:
        env: the id of a Gymnasium environment, or of one that `adapters` knows.
        rows: B, how many.
        modules: to import first: those that register the environment.
    """
    for module in modules:
        importlib.import_module(module)
    adapt = next((one for start, one in ADAPTERS.items() if env.startswith(start)), gymnasium.make)
    spec = gymnasium.registry.get(env)
    try:
        if spec is not None and spec.vector_entry_point is not None:
            return gymnasium.make_vec(env, rows)
        return SideBySide([lambda: adapt(env)] * rows)
    except gymnasium.error.Error as error:
        raise unknown(error) from error


class SideBySide(gymnasium.vector.SyncVectorEnv):
    """Environments that stand still once their episode has ended, until all are reset.

    Gymnasium's begin another episode at once, which is not looked at here but takes its time.
    """

    def step(self, actions: np.ndarray):
        """See `gymnasium.vector.VectorEnv.step`; an environment at its end changes no more."""
        over = self._terminations | self._truncations
        self._rewards[over] = 0.0
        for i in np.flatnonzero(~over):
            seen, reward, ended, cut, _ = self.envs[i].step(actions[i])
            self._env_obs[i], self._rewards[i] = seen, reward
            self._terminations[i], self._truncations[i] = ended, cut
        observations = gymnasium.vector.utils.concatenate(
            self.single_observation_space, self._env_obs, self._observations
        )
        ends = self._terminations.copy(), self._truncations.copy()
        return observations, self._rewards.copy(), *ends, {}


def agent_for(
    envs: gymnasium.vector.VectorEnv,
    policy: str | retention.RetentionPolicy = "st-lemn",
    hidden: int | None = None,
    **sizes: Any,
) -> MemoryAgent:
    """An untrained agent for a world.

    It is not known what will matter in it, so a policy that learns begins with a fair sample of the
    episode (`reservoir`, see `retention.Spatial`), if it can.

    Args:
        envs: the world.
        policy: the retention policy, by name or as an object.
        hidden: width of h, for policies found by name that have one.
        **sizes: other arguments of `MemoryAgent`.

    Example:

    >>> agent = agent_for(make("CartPole-v1"), slots=3, policy="fifo")
    >>> agent.reader.actions, agent.reader.eyes.item.shape
    (2, TensorShape([4]))
    """
    observed = observations.describe(envs.single_observation_space)
    units = sizes.get("units", 64)
    eyes = observations.ObservationEncoder(observed, units, name="eyes")
    if isinstance(policy, str):
        wanted = {"hidden": hidden, "reservoir": True}
        has = retention.find(policy).options()
        policy = retention.get(policy, **{k: v for k, v in wanted.items() if k in has and v})
    return MemoryAgent(eyes, int(actions(envs).n), policy=policy, **sizes)


def actions(envs: gymnasium.vector.VectorEnv) -> gymnasium.spaces.Discrete:
    """What can be done in a world, which must be one of several things."""
    space = envs.single_action_space
    if not isinstance(space, gymnasium.spaces.Discrete):
        raise ValueError(f"expected discrete actions, got {space}")
    return space


class Life:
    """Lives episodes, one in each of B environments, as often as it is called.

    Args:
        agent: acts in them.
        envs: the environments. They begin a new episode by themselves when one has ended.
        longest: steps after which episodes are cut.
        jit_compile: compile a step with XLA.

    Example:

    >>> envs = make("CartPole-v1", rows=2)
    >>> life = Life(agent_for(envs, slots=3, policy="fifo"), envs)
    >>> lived = life(seed=0)
    >>> lived.seen.shape[-1], lived.action.shape == lived.slot.shape
    (4, True)
    """

    def __init__(
        self,
        agent: MemoryAgent,
        envs: gymnasium.vector.VectorEnv,
        longest: int = LONGEST,
        jit_compile: bool = False,
    ) -> None:
        self.agent, self.envs, self.longest = agent, envs, longest
        self.first = int(actions(envs).start)
        self._act = tf.function(self._decide, autograph=False, jit_compile=jit_compile)

    def _begin(self) -> MemoryState:
        """As `MemoryAgent.initial_state`, of a memory that holds codes and vectors."""
        agent, rows = self.agent, self.envs.num_envs
        entry = tuple(tf.TensorSpec([n]) for n in (2 * agent.reader.units, agent.view.width))
        held = memory.empty(rows, agent.memory.slots, entry, agent.memory.policy.carry_spec())
        return held._replace(stream=agent.initial_carry(rows))

    def _decide(self, observation, state, seed):
        """As `MemoryAgent.act`: action and state, ids of the candidates, and which one left."""
        agent, views = self.agent, self.agent.look(observation)
        seen = agent.glance(views.query, state.entries[0], state)
        action = agent.pick(agent.reader.actor(seen.output), state.clock, seed)
        attended = agent.memory.attend(state, seen.attention)
        cells = memory.candidates(attended, (views.codes, views.vectors))
        after, _, slot = agent.memory.step(cells.entries[1], cells, seed)
        carry = agent.carry_on(seen.carry, action)
        return action, after._replace(stream=carry), cells.ids, slot

    def __call__(self, seed: int, draws: tf.Tensor | None = None) -> Episodes:
        """Lives B episodes.

        Args:
            seed: of the environments.
            draws: `[2]` int32 to draw actions and evictions, for learning; None plays.
        """
        observation, _ = self.envs.reset(seed=seed)
        state, alive = self._begin(), np.ones(self.envs.num_envs, bool)
        record: list[tuple[Any, ...]] = []
        item = self.agent.reader.eyes.item
        while alive.any() and len(record) < self.longest:
            seen = tf.nest.map_structure(lambda s, x: np.array(x, s.dtype.name), item, observation)
            action, state, *dropped = self._act(seen, state, draws)
            action = action.numpy()
            observation, reward, ended, cut, _ = self.envs.step(action + self.first)
            reward = np.where(alive, reward, 0.0).astype(np.float32)
            record.append((seen, action, reward, alive, *(x.numpy() for x in dropped)))
            alive = alive & ~(ended | cut)
        parts = zip(*record, strict=True)
        return Episodes(*(tf.nest.map_structure(_over_time, *part) for part in parts))


def _over_time(*steps: np.ndarray) -> tf.Tensor:
    """Steps of `[B, ...]` as `[B, T, ...]`, padded so that one program serves many lengths."""
    length = next(size for size in buckets(LONGEST) if size >= len(steps))
    array = np.stack(steps, axis=1)
    padding = [(0, 0), (0, length - len(steps))] + [(0, 0)] * (array.ndim - 2)
    return tf.constant(np.pad(array, padding))


def distinct(lived: Episodes) -> Episodes:
    """The same episodes with each different observation once, if few of them are different.

    They are padded to 256, 1,024, ..., so that one compiled program serves many episodes.

    Args:
        lived: without a `view`.
    """
    leaves = [x.numpy() for x in tf.nest.flatten(lived.seen)]
    count = lived.valid.shape.num_elements()
    rows = np.concatenate([x.reshape(count, -1).view(np.uint8) for x in leaves], axis=-1)
    numbers: dict[bytes, int] = {}
    view = [numbers.setdefault(row.tobytes(), len(numbers)) for row in rows]
    size = 256
    while size < len(numbers):
        size *= 4
    if size > count // 2:
        return lived
    first = np.zeros(size, np.int64)
    first[: len(numbers)] = np.unique(view, return_index=True)[1]
    seen = [tf.constant(x.reshape(count, *x.shape[2:])[first]) for x in leaves]
    places = tf.constant(np.reshape(view, lived.valid.shape), tf.int32)
    return lived._replace(seen=tf.nest.pack_sequence_as(lived.seen, seen), view=places)


class WorldLearner(Learner):
    """Updates an agent from whole episodes in any world. Args: as `Learner`."""

    def __init__(self, model: MemoryAgent, recipe: Recipe, jit_compile: bool = True):
        super().__init__(model, recipe, jit_compile)
        self._judge = tf.function(self.verdict, autograph=False, jit_compile=jit_compile)

    def look(self, batch: Episodes) -> Views:
        """What the observations of all steps contribute; each different one is encoded once."""
        views = self.model.look(batch.seen)
        if batch.view is None:
            return views
        return Views(*(tf.gather(x, batch.view) for x in views))

    def replayed(self, batch: Episodes, views: Views) -> tuple[tf.Tensor, tf.Tensor]:
        """What the agent made of every step: the reader's output, and the candidates' vectors."""
        ids = batch.ids

        def candidates(rows: tf.Tensor, these: tf.Tensor) -> tf.Tensor:
            return tf.gather(rows, tf.maximum(these, 0), batch_dims=1)

        codes = candidates(views.codes, ids[..., :-1])
        output, _ = self.model.unroll(views.query, codes, ids, batch.action)
        return output, candidates(views.vectors, ids)

    def learn(self, batch: Episodes, seed: tf.Tensor, progress: float) -> dict[str, float]:
        """See `Learner.learn`; judges the episodes once, and learns from them several times."""
        if any(leaf["kind"] == "image" for leaf in self.model.reader.eyes.leaves):
            batch = distinct(batch)
        verdict = self._judge(batch, seed)
        for number in range(self.recipe.passes):
            shown = super().learn((batch, verdict), seed + tf.constant([0, number << 20]), progress)
        return shown

    def verdict(self, batch: Episodes, seed: tf.Tensor) -> Verdict:
        """How the episodes turned out, by the weights they were lived with."""
        model, recipe = self.model, self.recipe
        views = self.look(batch)
        output, vectors = self.replayed(batch, views)
        values = tf.squeeze(model.critic(output), -1)
        came = judge(batch.reward, values, batch.valid, recipe.discount, recipe.gae_lambda)
        moved = log_probability(model.reader.actor(output), batch.action)
        if not model.learns:
            return Verdict(*came, moved)
        logits, _ = forgetting(model, batch, vectors, seed)
        dropped, worth = log_probability(logits, batch.slot), None
        if recipe.hindsight and hindsight.reads(model):
            better = normalised(came[0], batch.valid)
            seen = hindsight.reading(model, views)
            worth = hindsight.keeping_value(model, seen, batch, better, recipe.discount)
        return Verdict(*came, moved, dropped, worth)

    def losses(self, batch: tuple[Episodes, Verdict], entropy, guidance=0.0, seed=None):
        """See `Learner.losses`; nobody knows the way, so there is no guidance."""
        lived, verdict = batch
        views = self.look(lived)
        seen = self.replayed(lived, views)
        total, shown = judged(self.model, self.recipe, lived, seen, entropy, seed, verdict)
        if self.recipe.practice and hindsight.reads(self.model):
            lost = self.practice(lived, verdict, views, entropy, seed)
            total += self.recipe.practice * lost
            shown["practice"] = lost
        steps = tf.reduce_sum(tf.cast(lived.valid, tf.float32), axis=1)
        shown |= {
            "loss": total,
            "return": tf.reduce_mean(tf.reduce_sum(lived.reward, axis=1)),
            "length": tf.reduce_mean(steps),
            "frames": tf.reduce_sum(steps),
        }
        return total, shown

    def practice(
        self, lived: Episodes, verdict: Verdict, views: Views, entropy: tf.Tensor, seed: tf.Tensor
    ) -> tf.Tensor:
        """The loss of the steps read from random memories, a mean; see `hindsight`."""
        model, valid = self.model, lived.valid
        output = hindsight.practised(model, hindsight.reading(model, views), seed)
        logits, values = model.reader.actor(output), tf.squeeze(model.critic(output), -1)
        chosen = log_probability(logits, lived.action)
        ratio = tf.stop_gradient(tf.minimum(tf.exp(chosen - verdict.moved), hindsight.TRUSTED))
        better = normalised(verdict.advantage, valid) * ratio
        move, surprise = choice_losses(logits, lived.action, better, valid)
        error = tf.reduce_sum(tf.where(valid, tf.square(values - verdict.returns), 0.0))
        total = tf.reduce_sum(move - entropy * surprise) + self.recipe.value * error
        return total / count(valid)


def summary(lived: Sequence[Episodes]) -> dict[str, float]:
    """Returns and lengths of episodes, summed up.

    Args:
        lived: some batches of them.

    Returns:
        `return`, `length` (means), `worst`, `best` (returns), `positive_rate` (percent of the
        episodes with a return above 0) and `episodes`.
    """
    returns = np.concatenate([one.reward.numpy().sum(axis=1) for one in lived])
    lengths = np.concatenate([one.valid.numpy().sum(axis=1) for one in lived])
    return {
        "return": round(float(returns.mean()), 4),
        "worst": round(float(returns.min()), 4),
        "best": round(float(returns.max()), 4),
        "positive_rate": round(100.0 * float((returns > 0).mean()), 2),
        "length": round(float(lengths.mean()), 2),
        "episodes": len(returns),
    }
