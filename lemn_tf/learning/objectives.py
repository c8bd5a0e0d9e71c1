"""Objectives: what a policy learns from a rollout, found by name or passed as an object.

>>> get("hindsight")
(Hindsight(discount=1.0, entropy=0.1, final_entropy=None, scale=10.0),)
>>> get("best")
Traceback (most recent call last):
...
ValueError: unknown objective 'best'; known are hindsight, actor-critic, both
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from lemn_tf.learning.critic import ActorCritic
from lemn_tf.learning.hindsight import Hindsight
from lemn_tf.learning.rollout import Rollout

Objective = Callable[[Rollout], tuple[tf.Tensor, dict[str, tf.Tensor]]]
"""A function from a rollout to a loss `[B]` for the policy and scalars to show.

An objective may have a schedule, `entropy` and `final_entropy`. Objectives that differ only in
that share compiled programs from one phase of a training to the next. One that needs a critic has
`critic = True`.
"""

BY_NAME: dict[str, tuple[Objective, ...]] = {
    "hindsight": (Hindsight(discount=1.0),),
    "actor-critic": (ActorCritic(discount=1.0, reward="probability"),),
    "both": (Hindsight(discount=1.0), ActorCritic(discount=1.0, reward="probability", entropy=0.0)),
}
"""The named objectives, with constants for streams with questions at the end."""


def get(retention: Any) -> tuple[Objective, ...]:
    """The objectives for a name, an object or a sequence of them; none for None.

    Args:
        retention: a name ("hindsight", "actor-critic", "both"), an objective, a sequence of
            objectives, or None.
    """
    if retention is None:
        return ()
    if isinstance(retention, str):
        if retention not in BY_NAME:
            raise ValueError(f"unknown objective {retention!r}; known are {', '.join(BY_NAME)}")
        return BY_NAME[retention]
    if isinstance(retention, Sequence):
        return tuple(objective for part in retention for objective in get(part))
    if not callable(retention):
        raise TypeError(
            "expected the name of an objective, a function of a rollout, or a sequence of them; "
            f"got {retention!r}"
        )
    return (retention,)


def entropy_at(objective: Objective, progress: tf.Tensor | float) -> tf.Tensor:
    """Weight of an objective's entropy bonus when this share of the training is done, 0 to 1.

    It falls linearly from `objective.entropy` (0 if it has none) to `objective.final_entropy`.
    """
    begin = getattr(objective, "entropy", 0.0)
    end = getattr(objective, "final_entropy", None)
    return begin + ((begin if end is None else end) - begin) * tf.convert_to_tensor(progress)
