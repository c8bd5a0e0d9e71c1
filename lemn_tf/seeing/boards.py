"""Board: what TensorBoard shows of a memory, in one event file.

Curves over the whole training with its phases marked, the errors of FIFO, LRU and the oracle in the
same chart, life-lines, what memory held, how old dropped items were, and hyperparameters.
Everything is drawn from traces, so it works the same for text, mazes and a model of your own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar import summary as custom_scalar
from tensorboard.plugins.hparams import api as hparams_api

from lemn_tf.seeing import figures
from lemn_tf.seeing.regret import judge
from lemn_tf.seeing.trace import Trace
from lemn_tf.tables import Table

SAID = ("update", "frames", "episodes", "phase_index", "best")
"""Keys in a line of a history that say where training is, not how it goes."""


class Board:
    """Writes everything for TensorBoard into one event file.

    Args:
        folder: where TensorBoard looks.
        hparams: settings for comparing runs; nests become names with dots.
    """

    def __init__(self, folder: str | os.PathLike, hparams: Mapping[str, Any] | None = None):
        self.writer = tf.summary.create_file_writer(os.fspath(folder))
        chart = layout_pb2.Chart(title="error, %")
        chart.multiline.tag.append("error/.*")
        category = layout_pb2.Category(title="beside the rules", chart=[chart])
        layout = custom_scalar.pb(layout_pb2.Layout(category=[category]))
        with self.writer.as_default():
            tf.summary.experimental.write_raw_pb(layout.SerializeToString(), step=0)
            if hparams:
                hparams_api.hparams(flat(hparams))

    def scalars(self, values: Mapping[str, Any], step: int) -> None:
        """Curves: `val_...` under validation, everything else under training."""
        with self.writer.as_default():
            for name, value in values.items():
                if name in SAID or isinstance(value, str) or value is None:
                    continue
                place = f"validation/{name[4:]}" if name.startswith("val_") else f"training/{name}"
                tf.summary.scalar(place, float(value), step)
        self.writer.flush()

    def phase(self, name: str, number: int, step: int) -> None:
        """Marks where a phase begins: its number as a curve, and its name."""
        with self.writer.as_default():
            tf.summary.scalar("phase", number, step)
            tf.summary.text("phases", f"{name} begins at step {step:,}", step)

    def errors(self, errors: Mapping[str, float], step: int) -> None:
        """Errors in percent by policy, for one chart."""
        with self.writer.as_default():
            for name, error in errors.items():
                tf.summary.scalar(f"error/{name}", error, step)

    def memory(self, traces: Sequence[Trace], step: int) -> None:
        """Life-lines and memory tables of the first stream, ages of all, regret where labelled."""
        verdict = judge(traces)
        ages = [drop.age for drop in verdict.drops]
        picture = tf.io.decode_png(figures.png(figures.life_lines(traces[0], most=40), dpi=80))
        with self.writer.as_default():
            tf.summary.image("life-lines", picture[None], step)
            tf.summary.text("memory", tables(traces[0]), step)
            tf.summary.histogram("age of evicted items", np.array(ages, np.float32), step)
            if verdict.recall is not None:
                tf.summary.scalar("regret/needed items found", verdict.recall, step)
                tf.summary.scalar("regret/drops needed later", len(verdict.regretted), step)
        self.writer.flush()

    def pictures(self, name: str, images: np.ndarray, step: int) -> None:
        """Pictures `[K, H, W, 3]` uint8."""
        with self.writer.as_default():
            tf.summary.image(name, images, step, max_outputs=len(images))
        self.writer.flush()

    def close(self) -> None:
        """Ends the file."""
        self.writer.close()


def tables(trace: Trace) -> str:
    """What memory held at the last five questions of a stream, as Markdown."""
    texts = {step.t: step.text for step in trace.steps()}
    parts = []
    for asked in list(trace.questions())[-5:]:
        weights = asked.attention or (None,) * len(asked.ids)
        rows = [
            (item, texts.get(item) or str(item), weight, "needed" if asked.needs(item) else "")
            for item, weight in zip(asked.ids, weights, strict=True)
            if item >= 0
        ]
        verdict = {True: "right", False: f"wrong: {asked.expected}", None: ""}[asked.right]
        question = f"{(asked.text or 'question').rstrip('?')}?"
        caption = f"**{question} {asked.answer}** ({verdict}), after {asked.at} items"
        parts.append(Table(("id", "in memory", "attention", ""), rows, caption).markdown())
    return "\n\n".join(parts) or "no questions"


def flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Nested settings as one dict of plain values, as TensorBoard takes them.

    Example:

    >>> flat({"slots": 5, "recipe": {"rate": 0.1}, "lengths": [5, 7], "maps": None})
    {'slots': 5, 'recipe.rate': 0.1, 'lengths': '[5, 7]', 'maps': 'None'}
    """
    made: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            made |= flat(value, f"{above}{name}.")
        else:
            plain = isinstance(value, bool | int | float | str)
            made[f"{above}{name}"] = value if plain else str(value)
    return made
