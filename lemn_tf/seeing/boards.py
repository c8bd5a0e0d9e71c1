"""Board: what TensorBoard shows of a memory, in one event file.

Curves over the whole training with its phases marked, the errors of FIFO, LRU and the oracle in the
same chart, life-lines, what memory held, how old dropped items were, and hyperparameters.
Everything is drawn from traces, so it works the same for text, mazes and a model of your own.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar import summary as custom_scalar
from tensorboard.plugins.hparams import api as hparams_api

from lemn_tf.seeing import figures
from lemn_tf.seeing.regret import judge
from lemn_tf.seeing.subjects import Subject
from lemn_tf.seeing.trace import Trace
from lemn_tf.tables import Table

LOOKED_AT = 16
"""How many episodes of a subject a board looks at."""

KEPT = "in memory"
"""The tag of how much of what was needed was in memory."""
SAID = ("update", "frames", "episodes", "epoch", "phase_index", "best")
"""Keys in a line of a history that say where training is, not how it goes."""


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Layers may be made inside it without changing later random draws."""
    seeds = keras.src.backend.common.global_state.get_global_attribute("global_seed_generator")
    before = None if seeds is None else seeds.state.numpy()
    states = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        if seeds is not None:
            seeds.state.assign(before)


class Board:
    """Writes everything for TensorBoard into one event file.

    Args:
        folder: where TensorBoard looks.
        hparams: settings for comparing runs; nests become names with dots.
        measure: what policies are compared by.
        recall: whether they are also compared by how much of what was needed they kept.
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        hparams: Mapping[str, Any] | None = None,
        measure: str = "error",
        recall: bool = False,
    ):
        self.writer, self.measure = tf.summary.create_file_writer(os.fspath(folder)), measure
        shown = {measure: "error, %" if measure == "error" else measure}
        shown |= {KEPT: "needed and in memory, %"} if recall else {}
        charts = [layout_pb2.Chart(title=title) for title in shown.values()]
        for chart, tag in zip(charts, shown, strict=True):
            chart.multiline.tag.append(f"{tag}/.*")
        category = layout_pb2.Category(title="beside the rules", chart=charts)
        layout = custom_scalar.pb(layout_pb2.Layout(category=[category]))
        with self.writer.as_default():
            tf.summary.experimental.write_raw_pb(layout.SerializeToString(), step=0)
            if hparams:
                hparams_api.hparams(flat(hparams), trial_id=_trial(folder))

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

    def results(self, results: Mapping[str, float], step: int) -> None:
        """Results by policy, such as errors in percent, for one chart."""
        with self.writer.as_default():
            for name, result in results.items():
                tf.summary.scalar(f"{self.measure}/{name}", result, step)

    def look(self, subject: Subject, step: int) -> None:
        """Everything about a subject as it is now: its results, its memory, and its pictures."""
        with undisturbed():
            scores = subject.scores()
            self.results({name: score["result"] for name, score in scores.items()}, step)
            with self.writer.as_default():
                for name, score in scores.items():
                    if score["recall"] is not None:
                        tf.summary.scalar(f"{KEPT}/{name}", score["recall"], step)
            self.memory(subject.traces(range(min(LOOKED_AT, subject.count)), hindsight=False), step)
            drawn = subject.pictures()
        if drawn is not None:
            self.pictures("walks", drawn, step)

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


def _trial(folder: str | os.PathLike) -> str:
    """What a run is called beside others: its folder."""
    path = Path(folder)
    return os.fspath(path.parent if path.name == "logs" and path.parent.name else path)


def tables(trace: Trace) -> str:
    """What memory held at the last five questions of a stream, as Markdown.

    With the attention that each item got (`read`), and whether the question needs it (`need`).
    """
    texts = {step.t: step.text for step in trace.steps()}
    parts = []
    for asked in list(trace.questions())[-5:]:
        weights = asked.attention or (None,) * len(asked.ids)
        rows = [
            (item, texts.get(item) or str(item), weight, "✓" if asked.needs(item) else "")
            for item, weight in zip(asked.ids, weights, strict=True)
            if item >= 0
        ]
        wrong = f" (wrong: {asked.expected})" if asked.expected else " (wrong)"
        verdict = {True: " (right)", False: wrong, None: ""}[asked.right]
        question = f"{(asked.text or 'What is the answer').rstrip('?')}?"
        caption = f"**{question} {asked.answer}**{verdict}, after {asked.at} items"
        parts.append(Table(("#", "in memory", "read", "need"), rows, caption).markdown())
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
