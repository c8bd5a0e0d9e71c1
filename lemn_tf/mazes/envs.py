"""Gymnasium environments over the pose tables: one maze walker, in two tasks.

>>> import gymnasium, lemn_tf.mazes
>>> env = gymnasium.make("lemn/IMaze-v0", length=9)
>>> frame, info = env.reset(seed=0)
>>> frame.shape, str(env.action_space)
((32, 32, 3), 'Discrete(3)')
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from lemn_tf.mazes.generate import SPLITS, imaze, imazes, random_mazes
from lemn_tf.mazes.maps import Maze, load_jsonl
from lemn_tf.mazes.render import Camera
from lemn_tf.mazes.world import Rules, World, build, imaze_rules, split_rules


class MazeEnv(gymnasium.Env):
    """Walks one agent through the mazes of a `World`.

    Observations are first-person frames, uint8 [H, W, 3]; actions are 0 forward, 1 left, 2 right.
    An episode starts on the spawn of a random map, with a random heading. It is
    terminated by a goal and truncated by the map's step limit.

    Args:
        world: the tables.
        render_mode: None or `"rgb_array"`: `render()` gives the agent's view, 8 times enlarged.

    Example:

    >>> from lemn_tf.mazes import build, imaze
    >>> env = MazeEnv(build([imaze(5, "Y")]))
    >>> _, info = env.reset(seed=1, options={"maze": 0, "heading": 2})
    >>> for action in (0, 0, 0, 0, 2, 0, 0):
    ...     frame, reward, terminated, truncated, info = env.step(action)
    >>> float(reward), terminated, info["success"]
    (1.0, True, True)
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012 (Gymnasium's own)

    def __init__(self, world: World, render_mode: str | None = None):
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"expected render_mode None or 'rgb_array', got {render_mode!r}")
        self.world = world
        self.render_mode = render_mode
        self.action_space = gymnasium.spaces.Discrete(world.next.shape[1])
        shape = (*world.frames.shape[1:], 3)
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, np.uint8)
        self._pose = int(world.spawn[0, 0])
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: seeds the draws, as everywhere in Gymnasium.
            options: `{"maze": index, "heading": 0..3}`, either or both, in place of a draw.

        Returns:
            The first frame, and a dict with the pose, the maze's index, success (False).
        """
        super().reset(seed=seed)
        options = options or {}
        unknown = set(options) - {"maze", "heading"}
        if unknown:
            raise ValueError(f"expected options maze and heading, got {', '.join(sorted(unknown))}")
        mazes = len(self.world.mazes)
        maze, heading = int(self.np_random.integers(mazes)), int(self.np_random.integers(4))
        maze, heading = options.get("maze", maze), options.get("heading", heading)
        if not (0 <= maze < mazes and 0 <= heading < 4):
            raise ValueError(
                f"expected maze 0 to {mazes - 1} and heading 0 to 3, got {maze} and {heading}"
            )
        self._pose, self._steps = int(self.world.spawn[maze, heading]), 0
        return self.world.view(self._pose), self._info(success=False)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Takes one action; see `gymnasium.Env.step` for what comes back."""
        if not self.action_space.contains(action):
            raise ValueError(f"expected an action 0, 1 or 2 (forward, left, right), got {action!r}")
        self._steps += 1
        pose, reward, done, cut = self.world.step(self._pose, action, self._steps)
        self._pose = int(pose)
        info = self._info(success=bool(done and reward > 0))
        return self.world.view(self._pose), float(reward), bool(done), bool(cut), info

    def render(self) -> np.ndarray | None:
        """Gives the agent's view, enlarged, or None without a render mode."""
        if self.render_mode is None:
            return None
        return self.world.view(self._pose).repeat(8, axis=0).repeat(8, axis=1)

    @property
    def maze(self) -> Maze:
        """The map of the running episode."""
        return self.world.mazes[self.world.maze[self._pose]]

    def _info(self, success: bool) -> dict[str, Any]:
        return {
            "pose": self._pose,
            "maze": int(self.world.maze[self._pose]),
            "success": success,
        }


def imaze_world(
    length: int | Sequence[int] = 9,
    indicator: str | None = None,
    rules: Rules | None = None,
    camera: Camera | None = None,
) -> World:
    """Makes the tables of I-Mazes.

    Args:
        length: one length or several.
        indicator: `"Y"`, `"L"`, or None for both.
        rules: the rules; `imaze_rules` of each length if None.
        camera: the camera; the default one if None.

    Example:

    >>> len(imaze_world([5, 7]).mazes)
    4
    """
    lengths = [length] if isinstance(length, int | np.integer) else list(length)
    mazes = imazes(lengths) if indicator is None else [imaze(n, indicator) for n in lengths]
    return build(mazes, rules or [imaze_rules(maze.shape[0] - 2) for maze in mazes], camera)


def single_indicator_world(
    maps: str | Path | Sequence[Maze] | None = None,
    split: str = "train",
    seed: int = 0,
    count: int = 100,
    rules: Rules | None = None,
    camera: Camera | None = None,
    far: int = 0,
) -> World:
    """Makes the tables of random mazes with an indicator, "Single Goal with Indicator".

    Args:
        maps: maps, or a JSON-lines file of them; None to generate `count` of `split` from `seed`.
        split: `"train"`, `"test"` or `"large"`; for given maps it is not used.
        seed: as in `random_mazes`.
        count: how many to generate.
        rules: the rules; if None `split_rules` for generated maps, `default_rules` for given ones.
        camera: the camera; the default one if None.
        far: cells between indicator and box of generated maps, as in `random_maze`.

    Example:

    >>> len(single_indicator_world(count=3).mazes)
    3
    """
    if split not in SPLITS:
        raise ValueError(f"expected split to be one of {', '.join(SPLITS)}; got {split!r}")
    if maps is None:
        made = random_mazes(count, seed, split, far=far)
        return build(made, rules or split_rules(split, far), camera)
    mazes = load_jsonl(maps) if isinstance(maps, str | Path) else list(maps)
    return build(mazes, rules, camera)


WORLDS: dict[str, Callable[..., World]] = {
    "IMaze": imaze_world,
    "SingleIndicator": single_indicator_world,
    "FarIndicator": functools.partial(single_indicator_world, far=40),
}
"""What makes the tables of each task."""


def make_env(task: str, render_mode: str | None = None, **kwargs: Any) -> MazeEnv:
    """Makes the environment behind `gymnasium.make("lemn/TASK-v0", ...)`.

    Args:
        task: one of `WORLDS`.
        render_mode: as in `MazeEnv`.
        **kwargs: as in `imaze_world` or `single_indicator_world`, which makes FarIndicator too.

    Example:

    >>> make_env("IMaze", length=5).maze.id
    'imaze-5-Y'
    """
    return MazeEnv(WORLDS[task](**kwargs), render_mode)


def register() -> None:
    """Registers the environments with Gymnasium; importing `lemn_tf.mazes` calls it.

    Example:

    >>> register()
    >>> "lemn/IMaze-v0" in gymnasium.registry
    True
    """
    for task in WORLDS:
        if f"lemn/{task}-v0" not in gymnasium.registry:
            gymnasium.register(
                f"lemn/{task}-v0",
                entry_point="lemn_tf.mazes.envs:make_env",
                vector_entry_point="lemn_tf.mazes.vector:make_vector_env",
                kwargs={"task": task},
            )
