"""The shortest way: what an agent that knows the map would do, and which episodes can be won."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lemn_tf.mazes.world import World


def steps_to_goal(world: World) -> np.ndarray:
    """Counts the fewest actions (turns included) from every pose to the right goal.

    Returns:
        float32 [P]; 0 on the right goal, infinite where it cannot be reached (the wrong goal ends
        the episode, so no path leads through it).

    Example:

    >>> from lemn_tf.mazes import build, imaze
    >>> world = build([imaze(5, "Y")])
    >>> steps_to_goal(world)[world.spawn[0]].tolist()  # north, east, south, west
    [9.0, 8.0, 7.0, 8.0]
    """
    steps = np.where(world.done & (world.reward > 0), 0.0, np.inf).astype(np.float32)
    moving = np.flatnonzero(~world.done)
    following = world.next[moving]
    while True:
        better = np.minimum(steps[moving], steps[following].min(1) + 1)
        if np.array_equal(better, steps[moving]):
            return steps
        steps[moving] = better


def shortest_ways(world: World) -> np.ndarray:
    """Marks every action that is on a shortest way to the right goal.

    Returns:
        bool [P, 3]; none where there is no way, and on goals.

    Example:

    >>> from lemn_tf.mazes import build, imaze
    >>> world = build([imaze(5, "Y")])
    >>> shortest_ways(world)[world.spawn[0, 0]].tolist()  # about-turn, by the left or the right
    [False, True, True]
    """
    steps = steps_to_goal(world)[world.next]
    fewest = steps.min(1, keepdims=True)
    return (steps == fewest) & np.isfinite(fewest) & ~world.done[:, None]


def winnable(world: World) -> np.ndarray:
    """Says from which starts the right goal can be reached within the step limit.

    The mean is the highest success rate any agent can have on these maps.

    Returns:
        bool [M, 4], by map and start heading.

    Example:

    >>> from lemn_tf.mazes import build, imaze
    >>> float(winnable(build([imaze(200)])).mean())
    1.0
    """
    return steps_to_goal(world)[world.spawn] <= world.limit[:, None]
