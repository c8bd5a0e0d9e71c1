"""A set of mazes as a graph of poses: tables that make stepping four look-ups.

A pose is (map, free cell, heading). There are few of them, so where each action leads, its reward,
whether it ends the episode and what is seen can all be tabulated:

    pose   = next[pose, action]
    reward = reward[pose]            # of the cell stood on *after* the action
    done   = done[pose]              # a goal, right or wrong
    image  = frames[frame[pose]]     # distinct frames are stored once

Rewards of Oh et al. (2016): the right goal +1, the wrong one -1, any other step a small cost. An
episode that has not ended after `limit` steps of its map is cut off. All tables are NumPy arrays,
and `World.step` looks actions up in them; `lemn_tf.mazes.graph` does the same in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from lemn_tf.mazes.expert import shortest_ways
from lemn_tf.mazes.explorer import in_view, steps_between
from lemn_tf.mazes.generate import TRAIN_LENGTHS
from lemn_tf.mazes.maps import CYAN, INNER, LIME, MOVES, RED, YELLOW, Maze
from lemn_tf.mazes.render import PALETTE, Camera, Scene, render_batch

FORWARD, LEFT, RIGHT = range(3)
ACTIONS = ("forward", "left", "right")
CHUNK = 8192
"""Views that are rendered at once."""


@dataclass(frozen=True)
class Rules:
    """What a step costs and how many an episode may have.

    Args:
        step_reward: reward of a step that reaches no goal.
        limit: steps before the episode is cut off.

    Example:

    >>> Rules()
    Rules(step_reward=-0.04, limit=50)
    """

    step_reward: float = -0.04
    limit: int = 50


def imaze_rules(length: int) -> Rules:
    """Gives the rules of an I-Maze by its length.

    Training lengths (5, 7, 9) cost 0.04 a step for 50 steps, all others 0.02 for 100. A corridor
    of 100 cannot be walked in 100 steps, so from length 40, the longest of Oh et al., the limit
    grows with the length: 2.5 steps for each row, as at length 40.

    Example:

    >>> [imaze_rules(length).limit for length in (9, 10, 40, 100, 200)]
    [50, 100, 100, 250, 500]
    """
    if length in TRAIN_LENGTHS:
        return Rules()
    return Rules(step_reward=-0.02, limit=max(100, -(-5 * length // 2)))


def split_rules(split: str, far: int = 0) -> Rules:
    """Gives the rules of a split of random mazes.

    Args:
        split: `"train"`, `"test"` or `"large"`.
        far: cells between indicator and box, as in `random_maze`. There are two more steps for
            each, and a step costs less, so that all steps together cost the same.

    Returns:
        The `Rules`: 0.02 a step for 100 steps if large, else 0.04 for 50.

    Example:

    >>> split_rules("large"), split_rules("train", far=25)
    (Rules(step_reward=-0.02, limit=100), Rules(step_reward=-0.02, limit=100))
    """
    rules = Rules(-0.02, 100) if split == "large" else Rules()
    limit = rules.limit + 2 * far
    return Rules(rules.step_reward * rules.limit / limit, limit)


def default_rules(maze: Maze) -> Rules:
    """Guesses the rules of a map from its shape, for maps read from a file.

    Returns:
        `imaze_rules` for an I-Maze; otherwise `split_rules`, large if the walled canvas is larger
        than that of boxes up to 7, far by as many columns as it has more than a square one.

    Example:

    >>> from lemn_tf.mazes import imaze, random_maze
    >>> default_rules(imaze(20)).limit, default_rules(random_maze(0, "large")).limit
    (100, 100)
    """
    rows, columns = maze.shape
    if columns == 7 and maze.rows[1][2:] == ".S..#":
        return imaze_rules(rows - 2)
    far = max(columns - rows - 2, 0)
    return split_rules("large" if max(rows, columns - far - 2) > 9 else "train", far)


class Step(NamedTuple):
    """What actions lead to: scalars, or `[B]` each.

    Attributes:
        pose: where the agent stands now.
        reward: of that pose.
        done: whether it is a goal, right or wrong.
        cut: whether the episode is over without one, because the limit of steps is reached.
    """

    pose: Any
    reward: Any
    done: Any
    cut: Any


@dataclass(frozen=True, eq=False)
class World:
    """The tables of a set of M mazes with P poses and F distinct frames. Made by `build`.

    Args:
        mazes: the maps.
        camera: the camera the frames were rendered with.
        next: int32 [P, 3], the pose after forward, left, right. Goals lead to themselves.
        reward: float32 [P].
        done: bool [P].
        frame: int32 [P], index into `frames`.
        frames: uint8 [F, H, W], palette indices.
        palette: uint8 [colours, 3].
        spawn: int32 [M, 4], the pose an episode starts in, by heading.
        offset: int32 [M + 1], the poses of map m are `offset[m]` to `offset[m + 1] - 1`.
        limit: int32 [M], steps before an episode is cut off.
        indicator: int32 [M], 0 yellow, 1 lime.
        maze: int32 [P], the map of a pose.
        cell: int32 [P, 2], its row and column.
        heading: int32 [P], 0 north, 1 east, 2 south, 3 west.

    Example:

    >>> from lemn_tf.mazes import imazes
    >>> world = build(imazes([5, 7, 9]))
    >>> len(world), len(world.frames)
    (360, 32)
    >>> pose = world.spawn[0, 2]  # looking down the corridor of the first map
    >>> for count, action in enumerate((0, 0, 0, 0, 2, 0, 0), start=1):
    ...     pose, reward, done, cut = world.step(pose, action, count)
    >>> float(reward), bool(done), bool(cut)
    (1.0, True, False)
    """

    mazes: tuple[Maze, ...]
    camera: Camera
    next: np.ndarray
    reward: np.ndarray
    done: np.ndarray
    frame: np.ndarray
    frames: np.ndarray
    palette: np.ndarray
    spawn: np.ndarray
    offset: np.ndarray
    limit: np.ndarray
    indicator: np.ndarray
    maze: np.ndarray
    cell: np.ndarray
    heading: np.ndarray

    def __len__(self) -> int:
        return len(self.reward)

    def step(self, pose: Any, action: Any, steps: Any) -> Step:
        """Takes actions.

        Args:
            pose: int or int [B], where the agents stand.
            action: int or int [B], what they do.
            steps: int or int [B], the steps of their episodes, this one included.

        Returns:
            A `Step` of NumPy scalars or arrays [B].
        """
        pose = self.next[pose, action]
        done = self.done[pose]
        return Step(pose, self.reward[pose], done, ~done & (steps >= self.limit[self.maze[pose]]))

    def view(self, pose: Any) -> np.ndarray:
        """What is seen from a pose, uint8 [H, W, 3], or from several, uint8 [B, H, W, 3]."""
        return self.palette.take(self.frames[self.frame[pose]], axis=0)

    def tables(self, explore: bool = False) -> dict[str, np.ndarray]:
        """All arrays by name, as `lemn_tf.pipelines.frames` streams them.

        Besides the fields these are `shortest`, bool [P, 3], the actions on a shortest way to the
        right goal, `shows_indicator`, `goal`, bool [P], whether the right goal is in view, and
        `view` and `steps`, which an explorer needs.

        Args:
            explore: fill `view` and `steps`, see `lemn_tf.mazes.explorer`; else they have no
                columns.
        """
        arrays = {f.name: getattr(self, f.name) for f in fields(self)[2:]}
        none = np.zeros((len(self), 0), bool), np.zeros((len(self), 0), np.uint8)
        view, steps = self._explored if explore else none
        return arrays | {
            "shortest": self._shortest,
            "shows_indicator": self.shows_indicator,
            "goal": self._goal_in_view,
            "view": view,
            "steps": steps,
        }

    @cached_property
    def _goal_in_view(self) -> np.ndarray:
        flat = self.frames.reshape(len(self.frames), -1)
        red, cyan = ((flat == goal).any(1)[self.frame] for goal in (RED, CYAN))
        return np.where(self.indicator[self.maze] == 0, red, cyan)

    @cached_property
    def _explored(self) -> tuple[np.ndarray, np.ndarray]:
        return in_view(self), steps_between(self)

    @cached_property
    def _shortest(self) -> np.ndarray:
        return shortest_ways(self)

    @cached_property
    def rgb(self) -> np.ndarray:
        """The distinct frames in colour, uint8 [F, H, W, 3]."""
        return self.palette.take(self.frames, axis=0)

    @cached_property
    def shows_indicator(self) -> np.ndarray:
        """bool [F]: whether a frame has a pixel of the indicator tile."""
        flat = self.frames.reshape(len(self.frames), -1)
        return ((flat == YELLOW) | (flat == LIME)).any(1)


def build(
    mazes: Sequence[Maze],
    rules: Rules | Sequence[Rules] | None = None,
    camera: Camera | None = None,
) -> World:
    """Makes the tables of a set of mazes, frames included.

    Args:
        mazes: the maps, M of them.
        rules: one for all maps, or one for each; by default `default_rules` of each.
        camera: the camera; the default one if None.

    Example: see `World`.
    """
    mazes, camera = tuple(mazes), camera or Camera()
    if rules is None or isinstance(rules, Rules):
        rules = [rules or default_rules(maze) for maze in mazes]
    if len(rules) != len(mazes):
        raise ValueError(f"expected as many rules as mazes ({len(mazes)}), got {len(rules)}")
    scene = Scene.of(mazes)
    sizes = np.diff(scene.base, append=len(scene.cells))
    free = np.flatnonzero(scene.cells < INNER)  # each free cell is a place with four poses
    place_of = np.full(len(scene.cells), -1, np.int64)
    place_of[free] = np.arange(len(free))
    place_map = np.repeat(np.arange(len(mazes)), sizes)[free]
    stride, code = scene.stride[place_map], scene.cells[free]
    done = (code == RED) | (code == CYAN)

    right = np.array([RED if maze.goal == "R" else CYAN for maze in mazes])[place_map]
    cost = np.array([rule.step_reward for rule in rules], np.float32)[place_map]
    reward = np.where(done, np.where(code == right, 1.0, -1.0), cost).astype(np.float32)

    spawn_cell = np.array([maze.spawn for maze in mazes])
    spawn = place_of[scene.base + spawn_cell[:, 0] * scene.stride + spawn_cell[:, 1]]
    offset = 4 * np.searchsorted(place_map, np.arange(len(mazes) + 1))
    heading = np.tile(np.arange(4), len(free))
    maze_of = np.repeat(place_map, 4)
    cell = np.stack(np.divmod(free - scene.base[place_map], stride), axis=1).repeat(4, axis=0)
    frames, frame = _frames(scene, maze_of, cell, heading, camera)
    return World(
        mazes=mazes,
        camera=camera,
        next=_moves(free, place_of, stride, done),
        reward=np.repeat(reward, 4),
        done=np.repeat(done, 4),
        frame=frame,
        frames=frames,
        palette=PALETTE,
        spawn=(spawn[:, None] * 4 + np.arange(4)).astype(np.int32),
        offset=offset.astype(np.int32),
        limit=np.array([rule.limit for rule in rules], np.int32),
        indicator=np.array([maze.indicator == "L" for maze in mazes], np.int32),
        maze=maze_of.astype(np.int32),
        cell=cell.astype(np.int32),
        heading=heading.astype(np.int32),
    )


def _moves(
    free: np.ndarray, place_of: np.ndarray, stride: np.ndarray, done: np.ndarray
) -> np.ndarray:
    """The pose after each action, [P, 3]: walls stop a step ahead, and goals lead to themselves."""
    step = np.array(MOVES) @ np.stack([stride, np.ones_like(stride)])  # [4, places]
    ahead = place_of[free[:, None] + step.T]  # [places, 4]; -1: a wall
    here, turn = np.arange(len(free))[:, None], np.arange(4)
    ahead = np.where(ahead < 0, here, ahead)
    moves = np.stack([ahead * 4 + turn, here * 4 + (turn - 1) % 4, here * 4 + (turn + 1) % 4], 2)
    moves = np.where(done[:, None, None], (here * 4 + turn)[:, :, None], moves)
    return moves.reshape(-1, 3).astype(np.int32)


def _frames(
    scene: Scene,
    maze: np.ndarray,
    cell: np.ndarray,
    heading: np.ndarray,
    camera: Camera,
) -> tuple[np.ndarray, np.ndarray]:
    """Renders all poses, keeping each distinct frame once: frames [F, H, W], index [P]."""
    seen: dict[bytes, int] = {}
    index = np.empty(len(maze), np.int32)
    for start in range(0, len(maze), CHUNK):
        part = slice(start, start + CHUNK)
        views = render_batch(scene, maze[part], cell[part], heading[part], camera)
        for number, view in enumerate(views, start=start):
            index[number] = seen.setdefault(view.tobytes(), len(seen))
    frames = np.frombuffer(b"".join(seen), np.uint8)
    return frames.reshape(-1, camera.height, camera.width), index
