"""Any Gymnasium world: episodes of a `MemoryAgent` side by side, and what it learns from them.

An update lives first: one whole episode in each of B environments, step by step with `act`, which
records what was seen, done and dropped. Then it learns, in one compiled program: every observation
is encoded once, and the loss of all steps is computed from the record at once.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import tensorflow as tf

from lemn_tf.navigation import observations
from lemn_tf.navigation.adapters import ADAPTERS, unknown
from lemn_tf.navigation.agent import MemoryAgent
from lemn_tf.navigation.learning import Learner, judged
from lemn_tf.pipelines.frames import buckets

LONGEST = 1000
"""Steps after which an episode is cut, whatever its world says."""
Nest = Any


class Episodes(NamedTuple):
    """Whole episodes, `[B, T, ...]`; after its end a row is padding.

    Attributes:
        seen: nest, the observations.
        action: int32, what was done on seeing them.
        reward: received for it; 0 after the end.
        valid: bool, False after the end.
        ids: int64 `[B, T, N + 1]`, the steps at which the candidates of the memory were seen.
        slot: int32, which of them was forgotten.
    """

    seen: Nest
    action: tf.Tensor
    reward: tf.Tensor
    valid: tf.Tensor
    ids: tf.Tensor
    slot: tf.Tensor


def make(env: str, rows: int = 1, modules: Sequence[str] = ()) -> gymnasium.vector.VectorEnv:
    """Environments side by side.

    Args:
        env: the id of a Gymnasium environment, or of one that `adapters` knows.
        rows: B, how many.
        modules: to import first: those that register the environment.
    """
    for module in modules:
        importlib.import_module(module)
    adapt = next((one for start, one in ADAPTERS.items() if env.startswith(start)), None)
    envs: gymnasium.vector.VectorEnv
    try:
        if adapt is not None:
            envs = gymnasium.vector.SyncVectorEnv([lambda: adapt(env)] * rows)
        else:
            envs = gymnasium.make_vec(env, rows)
    except gymnasium.error.Error as error:
        raise unknown(error) from error
    return envs


def agent_for(envs: gymnasium.vector.VectorEnv, **sizes: Any) -> MemoryAgent:
    """An untrained agent for a world; `sizes` are arguments of `MemoryAgent`.

    Example:

    >>> agent = agent_for(make("CartPole-v1"), slots=3, policy="fifo")
    >>> agent.reader.actions, agent.reader.eyes.item.shape
    (2, TensorShape([4]))
    """
    observed = observations.describe(envs.single_observation_space)
    units = sizes.get("units", 64)
    eyes = observations.ObservationEncoder(observed, units, name="eyes")
    return MemoryAgent(eyes, int(actions(envs).n), **sizes)


def actions(envs: gymnasium.vector.VectorEnv) -> gymnasium.spaces.Discrete:
    """What can be done in a world, which must be one of several things."""
    space = envs.single_action_space
    if not isinstance(space, gymnasium.spaces.Discrete):
        raise ValueError(f"expected discrete actions, got {space}")
    return space


class Life:
    """Lives episodes, one in each of B environments, as often as it is called.

    Args:
        agent: who.
        envs: where. They begin a new episode by themselves when one has ended.
        longest: steps after which episodes are cut.

    Example:

    >>> envs = make("CartPole-v1", rows=2)
    >>> life = Life(agent_for(envs, slots=3, policy="fifo"), envs)
    >>> lived = life(seed=0)
    >>> lived.seen.shape[-1], lived.action.shape == lived.slot.shape
    (4, True)
    """

    def __init__(
        self, agent: MemoryAgent, envs: gymnasium.vector.VectorEnv, longest: int = LONGEST
    ) -> None:
        self.agent, self.envs, self.longest = agent, envs, longest
        self.first = int(actions(envs).start)
        self._act = tf.function(self._decide, reduce_retracing=True)

    def _decide(self, observation, state, seed):
        action, state, decision = self.agent.act(observation, state, seed)
        return action, state, decision.ids, decision.slot

    def __call__(self, seed: int, draws: tf.Tensor | None = None) -> Episodes:
        """Lives B episodes.

        Args:
            seed: of the environments.
            draws: `[2]` int32 to draw actions and evictions, for learning; None plays.
        """
        observation, _ = self.envs.reset(seed=seed)
        rows = self.envs.num_envs
        state, alive = self.agent.initial_state(rows), np.ones(rows, bool)
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


class WorldLearner(Learner):
    """Updates an agent from whole episodes in any world. Args: as `Learner`."""

    def replayed(self, batch: Episodes) -> tuple[tf.Tensor, tf.Tensor]:
        """What the agent made of every step: the reader's output, and the candidates' vectors."""
        views, ids = self.model.look(batch.seen), batch.ids

        def candidates(rows: tf.Tensor, these: tf.Tensor) -> tf.Tensor:
            return tf.gather(rows, tf.maximum(these, 0), batch_dims=1)

        held = ids[..., :-1]
        codes = self.model.recalled(candidates(views.codes, held), held, ids[..., -1])
        output, _ = self.model.reader.unroll(views.query, codes, held)
        return output, candidates(views.vectors, ids)

    def losses(self, batch: Episodes, entropy, guidance=0.0, seed=None):
        """See `Learner.losses`; nobody knows the way, so there is no guidance."""
        seen = self.replayed(batch)
        total, shown = judged(self.model, self.recipe, batch, seen, entropy, seed)
        steps = tf.reduce_sum(tf.cast(batch.valid, tf.float32), axis=1)
        shown |= {
            "loss": total,
            "return": tf.reduce_mean(tf.reduce_sum(batch.reward, axis=1)),
            "length": tf.reduce_mean(steps),
            "frames": tf.reduce_sum(steps),
        }
        return total, shown


def summary(lived: Sequence[Episodes]) -> dict[str, float]:
    """What episodes came to.

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
