"""Gymnasium worlds as a subject: steps are items, what is observed, and questions: what to do?"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from lemn_tf.experiments.agent_runs import TEST_SEED
from lemn_tf.navigation import worlds
from lemn_tf.navigation.agent import MemoryAgent, Move
from lemn_tf.retention.decision import Decision
from lemn_tf.seeing.amounts import EPISODES
from lemn_tf.seeing.figures import data_url
from lemn_tf.seeing.recording import Seen, Words, numpy, traces
from lemn_tf.seeing.subjects import Subject
from lemn_tf.seeing.trace import Trace
from lemn_tf.tables import in_words


class WorldSubject(Subject):
    """A `MemoryAgent` in a Gymnasium world; a step is right if it is rewarded, wrong if punished.

    Args:
        model: the agent; it may be in training, and is looked at as it is each time.
        env: the id of the environment.
        modules: to import first: those that register it.
        name: of the run.
        longest: steps after which episodes are cut.
        episodes: how many there are.
        seed: of the environments.
    """

    measure = "mean return"
    rising = True
    unit = "episodes"
    bound = ""
    learned = "the return in validation"
    examined = 16

    def __init__(
        self,
        model: MemoryAgent,
        env: str,
        modules: Sequence[str] = (),
        name: str = "",
        longest: int = worlds.LONGEST,
        episodes: int = EPISODES,
        seed: int = TEST_SEED,
    ):
        self.model, self.name, self.data = model, name or model.memory.policy.name, env
        self.policy, self.slots = model.memory.policy.name, model.memory.slots
        self.modules, self.longest, self.episodes, self.seed = modules, longest, episodes, seed
        self.envs = worlds.make(env, episodes, modules)

    @property
    def count(self) -> int:
        return self.episodes

    def rules(self) -> tuple[str, ...]:
        return ("fifo", "lru", "uniform")  # nobody knows what is needed, so there is no bound

    @functools.cache  # noqa: B019 (a subject lives only while its page or board is made)
    def _player(self, policy: str | None, slots: int) -> worlds.Life:
        agent = self.model
        if policy is not None or slots != self.slots:
            agent = agent.with_memory(policy, slots)
        return worlds.Life(agent, self.envs, self.longest)

    def score(self, policy: str | None = None, slots: int | None = None) -> dict[str, Any]:
        life = self._player(None if policy == self.policy else policy, slots or self.slots)
        if life.agent is not self.model:
            life.agent.take_after(self.model)
        told = worlds.summary([life(self.seed)])
        return {"result": told["return"], "recall": None, "count": told["episodes"]}

    def traces(
        self, episodes: Sequence[int], policy: str | None = None, hindsight: bool = True
    ) -> list[Trace]:
        agent = self.model.with_memory(policy)
        rows = max(episodes, default=0) + 1
        about = {**self.about(), "policy": policy or self.policy}
        made = traces(*self._lived(agent, rows), about)
        return [made[episode] for episode in episodes]

    def _lived(self, agent: MemoryAgent, rows: int) -> tuple[Seen, Words]:
        """The first episodes, side by side, step by step."""
        envs = worlds.make(self.data, rows, self.modules)
        first = int(worlds.actions(envs).start)
        consider = tf.function(agent.consider, autograph=False)
        observation, _ = envs.reset(seed=self.seed)
        item, state = agent.reader.eyes.item, agent.initial_state(rows)
        alive = np.ones(rows, bool)
        record: list[tuple[Any, ...]] = []
        while alive.any() and len(record) < self.longest:
            seen = tf.nest.map_structure(lambda s, x: np.array(x, s.dtype.name), item, observation)
            move, state = consider(seen, state)
            observation, reward, ended, cut, _ = envs.step(move.action.numpy() + first)
            record.append((seen, numpy(move), np.where(alive, reward, 0.0), alive))
            alive = alive & ~(ended | cut)
        envs.close()
        views, moves, rewards, lived = zip(*record, strict=True)
        return _seen(moves, np.stack(rewards, 1), np.stack(lived, 1).sum(1)), _words(
            views, moves, first
        )


def _seen(moves: Sequence[Move], rewards: np.ndarray, length: np.ndarray) -> Seen:
    """Steps as decisions and questions: an agent acts on what it held before it stores its view."""
    decisions = Decision(*(np.stack(x, 1) for x in zip(*(m.decision for m in moves), strict=True)))
    steps = np.arange(len(moves))
    right = (rewards > 0).astype(object)
    right[rewards == 0] = None  # without a reward nobody knows
    return Seen(
        decisions=decisions,
        length=length,
        ask_at=np.where(steps < length[:, None], steps, -1),
        kept=decisions.ids[..., :-1],
        attention=np.stack([move.attention for move in moves], 1),
        right=right,
    )


def _words(views: Sequence[Any], moves: Sequence[Move], first: int) -> Words:
    """What was seen and done, row by row."""
    rows, steps = range(len(moves[0].action)), range(len(moves))

    def view(row: int, t: int) -> Any:
        return tf.nest.map_structure(lambda leaf: leaf[row], views[t])

    return Words(
        items=[[_told(view(row, t), t) for t in steps] for row in rows],
        pictures=[[_picture(view(row, t)) for t in steps] for row in rows],
        questions=[["What to do?" for _ in steps] for _ in rows],
        answers=[[f"action {int(moves[t].action[row]) + first}" for t in steps] for row in rows],
    )


def _told(seen: Any, t: int) -> str:
    """What was observed at step t in words, pictures aside."""
    if isinstance(seen, dict):
        plain = {name: part for name, part in seen.items() if np.ndim(part) < 3}
        return in_words(plain) if plain else f"view {t}"
    return f"view {t}" if np.ndim(seen) == 3 else f"observed {in_words(seen)}"


def _picture(seen: Any) -> str:
    """The first picture in what was observed, as a data URL; empty if there is none."""
    leaves = (np.asarray(leaf) for leaf in tf.nest.flatten(seen))
    drawn = (x for x in leaves if x.ndim == 3 and x.dtype == np.uint8 and x.shape[-1] in (1, 3))
    return next((data_url(np.broadcast_to(x, [*x.shape[:2], 3])) for x in drawn), "")
