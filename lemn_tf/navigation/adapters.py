"""Worlds of other packages that are not quite Gymnasium's: thin adapters, found by an id's start.

    popgym-RepeatFirstEasy-v0     popgym: its environments, registered when it is imported
    MiniGrid-MemoryS7-v0          minigrid: the picture of codes as one-hot planes, no mission text
    bsuite/memory_len/5           bsuite: any of its ids; a dm_env as a Gymnasium environment

None of the packages is needed by anything else; docs/worlds.md says how to install them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np


def popgym(env: str) -> gymnasium.Env:
    """An environment of popgym."""
    import popgym  # noqa: F401 (registers them)

    return gymnasium.make(env, disable_env_checker=True)


class Planes(gymnasium.ObservationWrapper):
    """MiniGrid's picture of object, colour and state codes as one-hot planes, and the heading.

    MiniGrid draws a view anew at every step, in Python. Here the views of an episode are kept: one
    that was seen before from the same cell, with the same things in the same places, is the same.
    That holds as long as nothing is picked up or opened.

    Args:
        env: whose observations are a dict with `image` `[H, W, 3]` and `direction`.
    """

    def __init__(self, env: gymnasium.Env):
        from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX, STATE_TO_IDX

        super().__init__(env)
        self.sizes = [len(codes) for codes in (OBJECT_TO_IDX, COLOR_TO_IDX, STATE_TO_IDX)]
        image: Any = dict(env.observation_space)["image"]  # type: ignore[call-overload]
        shape = (*image.shape[:2], sum(self.sizes))
        self.observation_space = gymnasium.spaces.Dict(
            image=gymnasium.spaces.Box(0.0, 1.0, shape, np.float32),
            direction=gymnasium.spaces.Discrete(4),
        )
        self._views: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._draw, self.unwrapped.gen_obs = self.unwrapped.gen_obs, self._view  # type: ignore

    def reset(self, **options: Any):
        """See `gymnasium.Env.reset`."""
        self._views.clear()
        return super().reset(**options)

    def _view(self) -> dict[str, Any]:
        """What is seen now, drawn or kept."""
        base: Any = self.unwrapped
        key = (*base.agent_pos, base.agent_dir, *base.grid.grid)
        if key not in self._views:
            seen = self._draw()
            codes = enumerate(self.sizes)
            planes = [np.eye(n, dtype=np.float32)[seen["image"][..., i]] for i, n in codes]
            self._views[key] = {**seen, "image": np.concatenate(planes, -1)}
        return self._views[key]

    def observation(self, observation: dict[str, Any]) -> dict[str, Any]:
        return {name: observation[name] for name in ("image", "direction")}


def minigrid(env: str) -> gymnasium.Env:
    """An environment of minigrid, with only the three actions that move."""
    import minigrid  # noqa: F401 (registers them)

    made = Planes(gymnasium.make(env, disable_env_checker=True))
    return gymnasium.wrappers.TransformAction(made, int, gymnasium.spaces.Discrete(3))


class FromDmEnv(gymnasium.Env):
    """A dm_env with one array to observe and discrete actions, as a Gymnasium environment.

    Args:
        make: makes it from a seed; called again whenever `reset` gets one.
    """

    def __init__(self, make: Callable[[int], Any]):
        self._make, self._env = make, make(0)
        spec = self._env.observation_spec()
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, spec.shape, np.float32)
        self.action_space = gymnasium.spaces.Discrete(self._env.action_spec().num_values)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """See `gymnasium.Env.reset`."""
        super().reset(seed=seed)
        if seed is not None:
            self._env = self._make(seed)
        return self._seen(self._env.reset()), {}

    def step(self, action: int):
        """See `gymnasium.Env.step`."""
        now = self._env.step(int(action))
        return self._seen(now), float(now.reward or 0.0), now.last(), False, {}

    @staticmethod
    def _seen(now: Any) -> np.ndarray:
        return np.asarray(now.observation, np.float32)


def bsuite(env: str) -> gymnasium.Env:
    """An environment of bsuite by the id of one of its experiments."""
    import bsuite as package
    from bsuite import sweep

    name = env.removeprefix("bsuite/")
    if name not in sweep.SETTINGS:
        raise ValueError(f"bsuite has no {name!r}; expected an id such as 'memory_len/5'")
    experiment, settings = name.split("/")[0], dict(sweep.SETTINGS[name])
    settings.pop("seed", None)
    return FromDmEnv(lambda seed: package.load(experiment, {**settings, "seed": seed}))


ADAPTERS: dict[str, Callable[[str], gymnasium.Env]] = {
    "popgym-": popgym,
    "MiniGrid-": minigrid,
    "bsuite/": bsuite,
}
"""By how an id begins; each is named after its package."""


def unknown(error: gymnasium.error.Error) -> ValueError:
    """The error for a world that Gymnasium does not know."""
    return ValueError(f"{error} If another package has it, say --import MODULE")


def check(env: str) -> None:
    """Raises unless there is such a world; of another package's, only whether that is installed.

    Example:

    >>> check("CartPole-v1")
    >>> check("CartPoll-v1")
    Traceback (most recent call last):
    ValueError: Environment `CartPoll` doesn't exist... say --import MODULE
    """
    package = next((one.__name__ for start, one in ADAPTERS.items() if env.startswith(start)), None)
    if package is not None:
        if importlib.util.find_spec(package) is None:
            raise ModuleNotFoundError(f"no module named {package!r}", name=package)
        return
    try:
        gymnasium.spec(env)
    except gymnasium.error.Error as error:
        raise unknown(error) from error
