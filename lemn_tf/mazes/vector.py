"""Many walkers at once: a Gymnasium `VectorEnv` whose step is a few array look-ups."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from lemn_tf.mazes.envs import WORLDS, MazeEnv
from lemn_tf.mazes.world import World


class MazeVectorEnv(VectorEnv):
    """Walks B agents through the mazes of a `World`; the same rules as `MazeEnv`.

    Args:
        world: the tables, shared by all agents.
        num_envs: B.
        render_mode: None or `"rgb_array"`: `render()` gives the agents' views.
        autoreset_mode: when a finished agent starts a new episode. `NEXT_STEP` (Gymnasium's
            default): on the following step, whose action is ignored and whose reward is 0.
            `SAME_STEP`: at once, with the old episode's end in `info["final_obs"]` and
            `info["final_info"]`.
            `DISABLED`: when `reset` is called with `options={"reset_mask": bool [B]}`.

    Example:

    >>> from lemn_tf.mazes import build, imazes
    >>> envs = MazeVectorEnv(build(imazes([5])), num_envs=3)
    >>> frames, info = envs.reset(seed=0)
    >>> frames, rewards, terminated, truncated, info = envs.step(np.array([0, 1, 2]))
    >>> frames.shape, rewards.shape
    ((3, 32, 32, 3), (3,))
    """

    def __init__(
        self,
        world: World,
        num_envs: int = 1,
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ):
        if num_envs < 1:
            raise ValueError(f"expected at least one environment, got num_envs={num_envs}")
        self.world, self.num_envs, self.render_mode = world, num_envs, render_mode
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**MazeEnv.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_action_space = gymnasium.spaces.Discrete(world.next.shape[1])
        shape = (*world.frames.shape[1:], 3)
        self.single_observation_space = gymnasium.spaces.Box(0, 255, shape, np.uint8)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._pose = np.repeat(world.spawn[0, 0], num_envs)
        self._steps = np.zeros(num_envs, np.int32)
        self._over = np.zeros(num_envs, bool)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts episodes.

        Args:
            seed: one seed for all draws.
            options: `"reset_mask"`, bool [B], to start only some; `"maze"` and `"heading"`, int
                or int [B], in place of draws.

        Returns:
            Frames uint8 [B, H, W, 3], and a dict of arrays as in `MazeEnv`.
        """
        super().reset(seed=seed)
        options = dict(options or {})
        mask = np.asarray(options.pop("reset_mask", np.ones(self.num_envs, bool)), bool)
        maze, heading = self._draw(self.num_envs)
        maze, heading = options.pop("maze", maze), options.pop("heading", heading)
        if options:
            names = ", ".join(sorted(options))
            raise ValueError(f"expected options reset_mask, maze and heading, got {names}")
        if mask.shape != (self.num_envs,):
            raise ValueError(f"expected reset_mask [{self.num_envs}], got {list(mask.shape)}")
        for name, value, count in (
            ("maze", maze, len(self.world.mazes)),
            ("heading", heading, 4),
        ):
            if np.min(value) < 0 or np.max(value) >= count:
                raise ValueError(f"expected {name} 0 to {count - 1}, got {value}")
        start = np.broadcast_to(self.world.spawn[maze, heading], self.num_envs)
        self._start(mask, start[mask])
        return self._frames(), self._info()

    def step(self, actions: np.ndarray) -> tuple:
        """Takes one action each; see `gymnasium.vector.VectorEnv.step` for what comes back."""
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,):
            raise ValueError(f"expected actions [{self.num_envs}], got {list(actions.shape)}")
        if actions.dtype.kind not in "iu" or actions.min() < 0 or actions.max() > 2:
            raise ValueError(f"expected actions 0, 1 or 2 (forward, left, right), got {actions}")
        waiting = self._over.copy()
        if self.autoreset_mode is AutoresetMode.DISABLED and waiting.any():
            raise ValueError(f"expected a reset of finished environments {np.flatnonzero(waiting)}")
        self._steps += 1
        self._pose, reward, done, cut = self.world.step(self._pose, actions, self._steps)
        reward = reward.astype(np.float64)
        if waiting.any():  # NEXT_STEP: this step only brings the first frame of a new episode
            self._start(waiting, self._spawns(int(waiting.sum())))
            reward[waiting], done[waiting], cut[waiting] = 0.0, False, False
        self._over = done | cut
        info = self._info(success=done & (reward > 0))
        if self.autoreset_mode is AutoresetMode.SAME_STEP and self._over.any():
            over = self._over.copy()
            last = np.full(self.num_envs, None, object)
            frames = self._frames()
            for agent in np.flatnonzero(over):
                last[agent] = frames[agent]
            self._start(over, self._spawns(int(over.sum())))
            final = {"final_obs": last, "_final_obs": over, "final_info": info, "_final_info": over}
            info = self._info() | final
        return self._frames(), reward, done, cut, info

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Gives the agents' views, or None without a render mode."""
        return None if self.render_mode is None else tuple(self._frames())

    @property
    def pose(self) -> np.ndarray:
        """int32 [B]: the pose of every agent, as an index into the tables."""
        return self._pose.copy()

    def _draw(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        mazes = len(self.world.mazes)
        return self.np_random.integers(mazes, size=count), self.np_random.integers(4, size=count)

    def _spawns(self, count: int) -> np.ndarray:
        return self.world.spawn[self._draw(count)]

    def _start(self, mask: np.ndarray, poses: np.ndarray) -> None:
        self._pose = self._pose.copy()
        self._pose[mask], self._steps[mask], self._over[mask] = poses, 0, False

    def _frames(self) -> np.ndarray:
        return self.world.view(self._pose)

    def _info(self, success: np.ndarray | None = None) -> dict[str, Any]:
        everyone = np.ones(self.num_envs, bool)
        info = {
            "pose": self._pose.copy(),
            "maze": self.world.maze[self._pose],
            "success": np.zeros(self.num_envs, bool) if success is None else success,
        }
        return info | {f"_{key}": everyone for key in info}


def make_vector_env(
    task: str,
    num_envs: int = 1,
    render_mode: str | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    **kwargs: Any,
) -> MazeVectorEnv:
    """Makes the environments behind `gymnasium.make_vec("lemn/TASK-v0", ...)`.

    Args:
        task: one of `lemn_tf.mazes.envs.WORLDS`.
        num_envs: how many agents.
        render_mode: as in `MazeVectorEnv`.
        autoreset_mode: as in `MazeVectorEnv`.
        **kwargs: as in `imaze_world` or `single_indicator_world`.

    Example:

    >>> import lemn_tf.mazes
    >>> gymnasium.make_vec("lemn/IMaze-v0", num_envs=2, length=5).num_envs
    2
    """
    return MazeVectorEnv(WORLDS[task](**kwargs), num_envs, render_mode, autoreset_mode)
