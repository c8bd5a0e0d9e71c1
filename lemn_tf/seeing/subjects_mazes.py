"""Mazes as a subject: each step is an item, its picture, and a question: where to go?"""

from __future__ import annotations

import base64
import functools
import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from PIL import Image

from lemn_tf.experiments import mazes
from lemn_tf.mazes.world import ACTIONS
from lemn_tf.navigation.evaluation import Evaluator
from lemn_tf.navigation.navigator import Navigator
from lemn_tf.navigation.video import lived
from lemn_tf.pipelines import frames
from lemn_tf.seeing.subjects import RULES, Subject
from lemn_tf.seeing.trace import EMPTY, Asked, Line, Step, Trace

LENGTHS = (5, 9, 15, 30)
"""The default I-Mazes."""


class MazeSubject(Subject):
    """A `Navigator` in some mazes, from every start heading: episode 4 m + h is map m, heading h.

    Args:
        model: the agent.
        maps: a file of maps; None for I-Mazes.
        lengths: of the I-Mazes.
        name: of the run.
    """

    measure = "episodes failed"
    unit = "episodes"
    bound = "winnable"

    def __init__(
        self,
        model: Navigator,
        maps: str | None = None,
        lengths: Sequence[int] | None = None,
        name: str = "",
    ):
        self.model = model
        lengths = None if maps else list(lengths or LENGTHS)
        self.world, _ = mazes.exam_world("imaze", lengths, maps)
        told = "" if lengths is None else ", ".join(map(str, lengths))
        self.name, self.data = name or model.memory.policy.name, maps or f"I-Mazes of {told} cells"
        self.policy, self.slots = model.memory.policy.name, model.memory.slots

    @property
    def count(self) -> int:
        return 4 * len(self.world.mazes)

    def rules(self) -> tuple[str, ...]:
        return (*RULES[:-1], self.bound)

    @functools.cache  # noqa: B019 (a subject lives only while its page is made)
    def _summary(self, policy: str | None, slots: int | None) -> dict[str, float]:
        agent = self.model.with_memory(policy, slots)
        return Evaluator(agent, self.world, jit_compile=False)().summary()

    def score(self, policy: str | None = None, slots: int | None = None) -> dict[str, Any]:
        bound = policy == self.bound
        told = self._summary(None if bound else policy, slots)
        rate = told["winnable_rate"] if bound else told["success_rate"]
        recall = None if bound else told["indicator_in_memory"]
        return {"error": round(100 - rate, 3), "recall": recall, "count": told["episodes"]}

    def traces(
        self, episodes: Sequence[int], policy: str | None = None, hindsight: bool = True
    ) -> list[Trace]:
        agent = self.model.with_memory(policy)
        about = {**self.about(), "policy": policy or self.policy}
        maps = sorted({number // 4 for number in episodes})
        course = frames.cut(self.world.tables(), maps)
        starts = [course.spawn[maps.index(number // 4), number % 4] for number in episodes]
        walks = lived(agent, course, np.array(starts))
        return [Trace(list(_lines(told)), about) for told in walks]


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
            text=f"view {t + 1}" + (", with the indicator" if shows else ""),
            picture=png(told["frames"][t, -1]),
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


def png(frame: np.ndarray) -> str:
    """A small picture `[H, W, 3]` as a data URL."""
    buffer = io.BytesIO()
    Image.fromarray(frame.astype(np.uint8)).quantize(32).save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
