"""Mazes as a subject: each step is an item, its picture, and a question: where to go?"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lemn_tf.mazes.expert import winnable
from lemn_tf.mazes.world import ACTIONS, World
from lemn_tf.navigation import video
from lemn_tf.navigation.evaluation import Evaluator
from lemn_tf.navigation.navigator import Navigator
from lemn_tf.pipelines import frames
from lemn_tf.seeing.figures import data_url
from lemn_tf.seeing.subjects import RULES, Subject
from lemn_tf.seeing.trace import EMPTY, Asked, Line, Step, Trace

DRAWN = 3
"""How many pictures of a walk a board gets."""


class MazeSubject(Subject):
    """A `Navigator` in some mazes, from every start heading: episode 4 m + h is map m, heading h.

    Args:
        model: the agent; it may be in training, and is looked at as it is each time.
        world: the maps.
        name: of the run.
        data: what the maps are, in words.
    """

    measure = "episodes failed"
    unit = "episodes"
    bound = "winnable"

    def __init__(self, model: Navigator, world: World, name: str = "", data: str = "mazes"):
        self.model, self.world = model, world
        self.name, self.data = name or model.memory.policy.name, data
        self.policy, self.slots = model.memory.policy.name, model.memory.slots

    @property
    def count(self) -> int:
        return 4 * len(self.world.mazes)

    def rules(self) -> tuple[str, ...]:
        return (*RULES[:-1], self.bound)

    @functools.cache  # noqa: B019 (a subject lives only while its page or board is made)
    def _player(self, policy: str | None, slots: int) -> Evaluator:
        agent = self.model
        if policy is not None or slots != self.slots:
            agent = agent.with_memory(policy, slots)
        return Evaluator(agent, self.world, jit_compile=False)

    def score(self, policy: str | None = None, slots: int | None = None) -> dict[str, Any]:
        if policy == self.bound:
            failed = 100 - 100 * float(np.mean(winnable(self.world)))
            return {"result": round(failed, 3), "recall": None, "count": self.count}
        play = self._player(None if policy == self.policy else policy, slots or self.slots)
        if play.model is not self.model:
            play.model.take_after(self.model)
        told = play().summary()
        failed = round(100 - told["success_rate"], 3)
        return {"result": failed, "recall": told["indicator_in_memory"], "count": told["episodes"]}

    def traces(
        self, episodes: Sequence[int], policy: str | None = None, hindsight: bool = True
    ) -> list[Trace]:
        agent = self.model.with_memory(policy)
        about = {**self.about(), "policy": policy or self.policy}
        maps = sorted({number // 4 for number in episodes})
        course = frames.cut(self.world.tables(), maps)
        starts = [course.spawn[maps.index(number // 4), number % 4] for number in episodes]
        walks = video.lived(agent, course, np.array(starts))
        return [Trace(list(_lines(told)), about) for told in walks]

    def pictures(self) -> np.ndarray:
        """One walk, its first steps to its last: view, map, memory, attention and drops."""
        shown = video.pictures(video.episode(self.model, self.world, 0, 0), self.world, 0)
        last = len(shown) - 1
        chosen = np.linspace(min(self.slots, last), last, DRAWN).astype(int)
        return np.stack([np.asarray(shown[t]) for t in chosen])


def _lines(told: dict[str, np.ndarray]) -> Iterator[Line]:
    """One episode: at each step the agent first reads its memory, then stores what it sees."""
    seen: list[int] = []
    finished = abs(float(told["reward"][-1])) > 0.5
    for t in range(len(told["action"])):
        ids = tuple(int(one) for one in told["ids"][t])
        held = [one for one in seen if one in ids[:-1]]
        last = finished and t == len(told["action"]) - 1
        yield _question(told, t, ids, tuple(held or seen) if last else None)
        shows = bool(told["indicator"][t])
        if shows:
            seen.append(t)
        drop, slot, free = told["drop"][t], int(told["slot"][t]), EMPTY not in ids
        others = [n for n in np.argsort(-drop).tolist() if n != slot]
        ranked = np.sort(drop)
        yield Step(
            t=t,
            ids=ids,
            keep=tuple(float(1 - share) for share in drop),
            slot=slot,
            margin=float(ranked[-1] - ranked[-2]),
            free=free,
            runner_up=ids[others[0]] if free else EMPTY,
            text=f"view {t}" + (", with the indicator" if shows else ""),
            picture=data_url(told["frames"][t, -1]),
            kind="shows the indicator" if shows else "other",
        )


def _question(told: dict[str, np.ndarray], t: int, ids, support) -> Asked:
    """Where to go at step t.

    Only the last step has a support and a known right answer: on the way an agent may leave the
    shortest path to look at the indicator.
    """
    best = told["shortest"][t]
    names = " or ".join(name for name, good in zip(ACTIONS, best, strict=True) if good)
    last = support is not None
    return Asked(
        number=t + 1,
        at=t,
        ids=ids[:-1],
        attention=tuple(float(one) for one in told["attention"][t]),
        text="Where to go?",
        answer=ACTIONS[int(told["action"][t])],
        expected=names if last else "",
        right=bool(told["reward"][t] > 0.5) if last else None,
        probability=float(told["actions"][t][best].sum()) if last else None,
        support=support or (),
    )
