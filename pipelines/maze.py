"""tf.data streams of walks through mazes: frames, actions, rewards, for pretraining and evaluation.

The pipeline knows no maze: it takes the tables of `lemn_tf.mazes.World.tables()` as arrays, so it
depends on TensorFlow alone. Walking happens inside the dataset; a step is a few gathers.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

TABLES = ("next", "reward", "done", "frame", "frames", "palette", "spawn", "limit", "indicator")


def walks(
    tables: Mapping[str, np.ndarray],
    batch: int,
    length: int,
    policy: str | np.ndarray = "random",
    explore: float = 0.0,
    starts: str = "random",
    seed: int = 0,
) -> tf.data.Dataset:
    """Streams walks, each from its start to a goal, the step limit, or `length` steps.

    Args:
        tables: arrays by name, at least `TABLES`: `next` [P, 3], `reward` [P], `done` [P],
            `frame` [P], `frames` [F, H, W], `palette` [colours, 3], `spawn` [M, 4], `limit` [M],
            `indicator` [M].
        batch: B, walks a batch.
        length: T, steps a walk; shorter ones are padded.
        policy: `"random"`, or a scripted one: int [P], the action for every pose (for example
            `lemn_tf.mazes.best_actions`).
        explore: probability of a random action in place of the scripted one.
        starts: `"random"` draws map and heading evenly, for ever; `"all"` takes every map with
            every heading once, in order (the last batch may be smaller).
        seed: the same seed gives the same stream, whatever the machine's cores.

    Returns:
        A dataset of dicts. The action of step t is taken on seeing frame t, and its reward and
        done come after it:

        - `frames` uint8 [B, T, H, W, 3]
        - `actions` int32 [B, T]
        - `rewards` float32 [B, T], 0 where padded
        - `done` bool [B, T], true at the last step of a walk that ended
        - `valid` bool [B, T], false where padded (frames then repeat the last one)
        - `poses` int32 [B, T]
        - `maze` int32 [B]
        - `indicator` int32 [B], 0 yellow, 1 lime

    Example:

    >>> from lemn_tf.mazes import build, imazes
    >>> stream = walks(build(imazes([5])).tables(), batch=2, length=7)
    >>> next(iter(stream))["frames"].shape
    TensorShape([2, 7, 32, 32, 3])
    """
    table, script = _checked(tables, batch, length, policy, explore, starts)

    def walk(start: tf.Tensor, key: tf.Tensor) -> dict[str, tf.Tensor]:
        count = tf.size(start)
        maze, pose = start // 4, tf.reshape(table["spawn"], [-1])
        pose = tf.gather(pose, start)
        limit = tf.gather(table["limit"], maze)
        keys = tf.random.split(tf.stack([tf.cast(seed, tf.int64), key]), 2)
        drawn = tf.random.stateless_uniform([length, count], keys[0], 0, 3, tf.int32)
        if script is None:
            free = tf.ones([length, count], tf.bool)
        else:
            free = tf.random.stateless_uniform([length, count], keys[1]) < explore

        def step(state, inputs):
            _, pose, _, _, over = state
            now, drawn, free = inputs
            action = drawn if script is None else tf.where(free, drawn, tf.gather(script, pose))
            new = tf.gather_nd(table["next"], tf.stack([pose, action], axis=1))
            new = tf.where(over, pose, new)
            reward = tf.where(over, 0.0, tf.gather(table["reward"], new))
            ends = ~over & (tf.gather(table["done"], new) | (now + 1 >= limit))
            return action, new, reward, ends, over | ends

        nothing = tf.zeros([count], tf.bool)
        first = (tf.zeros([count], tf.int32), pose, tf.zeros([count]), nothing, nothing)
        actions, poses, rewards, done, over = tf.scan(step, (tf.range(length), drawn, free), first)
        poses = tf.transpose(tf.concat([pose[None], poses[:-1]], axis=0))
        over = tf.concat([nothing[None], over[:-1]], axis=0)
        return {
            "frames": tf.gather(table["frames"], tf.gather(table["frame"], poses)),
            "actions": tf.transpose(actions),
            "rewards": tf.transpose(rewards),
            "done": tf.transpose(done),
            "valid": tf.transpose(~over),
            "poses": poses,
            "maze": maze,
            "indicator": tf.gather(table["indicator"], maze),
        }

    number = 4 * len(tables["spawn"])
    if starts == "all":
        data = tf.data.Dataset.range(number, output_type=tf.int32).batch(batch).enumerate()
        data = data.map(lambda key, start: walk(start, key), num_parallel_calls=tf.data.AUTOTUNE)
    else:

        def draw(key):
            # `split` in `walk` uses (seed, key); one more number keeps these draws apart.
            where = tf.random.fold_in(tf.stack([tf.cast(seed, tf.int64), key]), 7)
            start = tf.random.stateless_uniform([batch], where, 0, number, tf.int32)
            return walk(start, key)

        data = tf.data.Dataset.counter().map(draw, num_parallel_calls=tf.data.AUTOTUNE)
    return data.prefetch(tf.data.AUTOTUNE)


def _checked(tables, batch, length, policy, explore, starts):
    """Checks the arguments of `walks`; gives the tables as tensors, and the script or None."""
    missing = [name for name in TABLES if name not in tables]
    if missing:
        raise ValueError(f"expected tables {', '.join(TABLES)}; missing {', '.join(missing)}")
    if batch < 1 or length < 1:
        raise ValueError(f"expected batch and length of at least 1, got {batch} and {length}")
    if not 0 <= explore <= 1:
        raise ValueError(f"expected explore between 0 and 1, got {explore}")
    if starts not in ("random", "all"):
        raise ValueError(f"expected starts 'random' or 'all', got {starts!r}")
    poses = len(tables["next"])
    if isinstance(policy, str):
        if policy != "random":
            raise ValueError(f"expected policy 'random' or an int array [{poses}], got {policy!r}")
        script = None
    else:
        script = np.asarray(policy)
        if script.shape != (poses,) or script.min() < 0 or script.max() > 2:
            raise ValueError(
                f"expected one action 0 to 2 for each of {poses} poses, got shape "
                f"{list(script.shape)} with values {script.min()} to {script.max()}"
            )
        script = tf.constant(script, tf.int32)
    table = {
        name: tf.constant(tables[name]) for name in TABLES if name not in ("frames", "palette")
    }
    table["frames"] = tf.constant(np.asarray(tables["palette"])[tables["frames"]])
    return table, script
