"""Films of an agent at work: the paper's figure of its memory, as an animation.

Each picture shows the agent's view, the maze from above and the probabilities of the actions; below
them the frames in memory and the current one, under each the attention it gets and the probability
that it is forgotten. The frame outlined in red is the one that leaves.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import tensorflow as tf
from PIL import Image, ImageDraw

from lemn_tf.files import write_atomically
from lemn_tf.mazes.pictures import top_down
from lemn_tf.mazes.world import ACTIONS, World
from lemn_tf.memory import EMPTY
from lemn_tf.navigation.navigator import Navigator
from lemn_tf.navigation.rollout import walk
from lemn_tf.pipelines import frames

VIEW, CELL, GAP, LINE = 192, 84, 12, 14
GOALS = {"R": "red", "C": "cyan"}
LEGEND = "red frame: forgotten at this step"
INK, FAINT, BLUE, ORANGE, RED = "#202020", "#c8c8c8", "#3b6fb5", "#d98324", "#c62828"


def episode(model: Navigator, world: World, maze: int, heading: int) -> dict[str, np.ndarray]:
    """Plays one episode and returns everything about it.

    Args:
        model: the agent.
        world: the maps.
        maze: which of them.
        heading: of the start, 0 north to 3 west.

    Returns:
        Arrays `[T, ...]`: `frames` [N + 1, H, W, 3] (the memory and, last, the current one),
        `ids` and `filled` [N + 1], `attention` [N], `drop` [N + 1], `slot`, `actions` [3],
        `action`, `shortest` [3], `value`, `reward`, `indicator` (whether it is in view), `cell`
        [2], `heading`.
    """
    if not 0 <= maze < len(world.mazes) or not 0 <= heading < 4:
        raise ValueError(
            f"expected a map 0 to {len(world.mazes) - 1} and a heading 0 to 3, "
            f"got {maze} and {heading}"
        )
    course = frames.cut(world.tables(), [maze])
    one = lived(model, course, course.spawn[:, heading])[0]
    pose = one.pop("pose") + world.offset[maze]
    return one | {"cell": world.cell[pose], "heading": world.heading[pose]}


def lived(
    model: Navigator, course: frames.Course, starts: np.ndarray
) -> list[dict[str, np.ndarray]]:
    """Plays episodes side by side and returns everything about each; see `episode`.

    Args:
        model: the agent.
        course: the maps.
        starts: `[B]`, the poses to begin in.
    """
    first = tf.constant(starts)
    play = tf.function(
        lambda: walk(model, course, first, course.longest, details=True), autograph=False
    )
    walked, _ = play()
    names = ("pose", "action", "reward", "entries", "ids", "slot", "shortest")
    arrays = {name: x.numpy() for name, x in walked.shown.items()}
    arrays |= {name: getattr(walked, name).numpy() for name in names}
    told = []
    for row, steps in enumerate(walked.valid.numpy().sum(axis=1)):
        one = {name: array[row, :steps] for name, array in arrays.items()}
        one["indicator"] = np.asarray(course.indicator)[one["entries"][:, -1]]
        one["frames"] = course.palette[course.frames][one.pop("entries")]
        one["filled"] = one["ids"] != EMPTY
        told.append(one)
    return told


def pictures(told: dict[str, np.ndarray], world: World, maze: int) -> list[Image.Image]:
    """Draws every step of an `episode`, all pictures of one size."""
    trail, made = [], []
    for t in range(len(told["action"])):
        step = {name: array[t] for name, array in told.items()}
        trail.append(tuple(int(x) for x in step["cell"]))
        made.append(_picture(step, world, maze, trail, t))
    return made


def _map_scale(shape: tuple[int, int]) -> int:
    return int(np.clip(VIEW // max(shape), 4, 16))


def _picture(step, world: World, maze: int, trail, t: int) -> Image.Image:
    here = world.mazes[maze]
    scale = _map_scale(here.shape)
    above = top_down(here, (*trail[-1], int(step["heading"])), trail, scale)
    if above.shape[0] > VIEW:  # a long corridor: the part around the agent
        middle = (trail[-1][0] + 0.5) * scale
        top = int(np.clip(middle - VIEW / 2, 0, above.shape[0] - VIEW))
        above = above[top : top + VIEW]
    cells = len(step["frames"])
    bars = 150
    width = max(3 * GAP + VIEW + above.shape[1] + bars + GAP, GAP + cells * (CELL + GAP))
    height = GAP + VIEW + LINE + 2 * GAP + CELL + 5 * LINE
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    image.paste(_enlarged(step["frames"][-1], VIEW), (GAP, GAP))
    left = 2 * GAP + VIEW
    image.paste(Image.fromarray(above), (left, GAP))
    left += above.shape[1] + GAP
    for number, (name, share) in enumerate(zip(ACTIONS, step["actions"], strict=True)):
        top = GAP + 2 * number * LINE + number * GAP
        chosen = number == step["action"]
        draw.text((left, top), f"{name} {share:.2f}", fill=RED if chosen else INK)
        _bar(draw, left, top + LINE, bars - GAP, float(share), BLUE)
    top = GAP + 3 * (2 * LINE + GAP)
    draw.text((left, top), f"step {t + 1}", fill=INK)
    draw.text((left, top + LINE), f"value {step['value']:.2f}", fill=INK)
    draw.text((left, top + 2 * LINE), f"reward {step['reward']:.2f}", fill=INK)
    draw.text((left, top + 3 * LINE), f"right goal: {GOALS[here.goal]}", fill=INK)
    top = GAP + VIEW + GAP
    for place in range(cells):
        left, newcomer = GAP + place * (CELL + GAP), place == cells - 1
        draw.text((left, top), "now" if newcomer else f"memory {place + 1}", fill=INK)
        box = (left, top + LINE, left + CELL - 1, top + LINE + CELL - 1)
        below = top + LINE + CELL + 3
        if step["filled"][place]:
            image.paste(_enlarged(step["frames"][place], CELL), box[:2])
            full = step["filled"].all()
            if full and place == step["slot"]:
                draw.rectangle(box, outline=RED, width=3)
            if not newcomer:
                _labelled(draw, left, below, "read", float(step["attention"][place]), BLUE)
            if full:
                share = float(step["drop"][place])
                _labelled(draw, left, below + LINE + 4, "drop", share, ORANGE)
        else:
            draw.rectangle(box, outline=FAINT)
    draw.text((GAP, height - LINE - 4), LEGEND, fill=INK)
    return image


def _enlarged(frame: np.ndarray, side: int) -> Image.Image:
    return Image.fromarray(frame).resize((side, side), Image.Resampling.NEAREST)


def _bar(draw, left: int, top: int, width: int, share: float, colour: str) -> None:
    draw.rectangle((left, top, left + width, top + 8), outline=FAINT)
    if share > 0.005:
        draw.rectangle((left, top, left + max(1, round(width * share)), top + 8), fill=colour)


def _labelled(draw, left: int, top: int, name: str, share: float, colour: str) -> None:
    draw.text((left, top - 2), name, fill=INK)
    _bar(draw, left + 28, top, CELL - 30, share, colour)


def film(
    model: Navigator,
    world: World,
    path: str | os.PathLike,
    maze: int = 0,
    heading: int = 0,
    milliseconds: int = 350,
) -> dict[str, float | int | bool]:
    """Walks one episode and writes it as an animated GIF.

    Args:
        model: the agent.
        world: the maps.
        path: the file to write, `.gif`.
        maze: which map.
        heading: of the start, 0 north to 3 west.
        milliseconds: how long a step is shown.

    Returns:
        A dict with `success`, `steps` and `return`.
    """
    if Path(path).suffix.lower() != ".gif":
        raise ValueError(f"expected a file that ends in .gif, got {str(path)!r}")
    told = episode(model, world, maze, heading)
    shown = pictures(told, world, maze)
    buffer = io.BytesIO()
    times = [milliseconds] * (len(shown) - 1) + [4 * milliseconds]
    shown[0].save(buffer, "GIF", save_all=True, append_images=shown[1:], duration=times, loop=0)
    write_atomically(Path(path), buffer.getvalue())
    return {
        "success": bool(told["reward"][-1] > 0.5),
        "steps": len(shown),
        "return": round(float(told["reward"].sum()), 4),
    }
