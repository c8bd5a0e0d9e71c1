"""From the name of a run and its data to a `Subject`, whatever the run is."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Sequence
from typing import Any

from lemn_tf import runs
from lemn_tf.navigation.agent import MemoryAgent
from lemn_tf.seeing.amounts import KINDS, LENGTHS, MAPS
from lemn_tf.seeing.subjects import Subject, TextSubject


def find(
    run: str | os.PathLike,
    data: str | os.PathLike | None = None,
    evidence: str | os.PathLike | None = None,
    lengths: Sequence[int] | None = None,
    store_questions: bool | None = None,
    minilm: str | os.PathLike | None = None,
) -> Subject:
    """A trained model with data to examine it on.

    Args:
        run: the folder of a run, a file, or a preset.
        data: stories for a model of text, questions for one of documents, maps for a maze agent, an
            `.npz` of x and y for a model of your own. Without it agents are in worlds like those
            they were trained in.
        evidence: the folder of the documents.
        lengths: of I-Mazes.
        store_questions: whether questions enter the stream; None as the run was trained.
        minilm: folder for MiniLM's vectors, for a model that sees them.
    """
    name = os.fspath(run)
    runs.import_modules(run)
    model = _load(run)
    if isinstance(model, MemoryAgent):
        return _agent(model, name, None if data is None else os.fspath(data), lengths)
    if data is None:
        raise ValueError(f"say which data to show {name} with: --data F")
    if lengths is not None:
        raise ValueError(f"lengths are for maze agents, and {name} is not one")
    if evidence is not None:
        from lemn_tf.experiments.minilm import Store
        from lemn_tf.seeing.subjects_documents import DocumentSubject

        store = None if minilm is None else Store(minilm)
        return DocumentSubject(model, data, evidence, name, store)
    if not hasattr(model, "reader"):
        from lemn_tf.seeing.subjects_own import OwnSubject, samples

        return OwnSubject(model, *samples(data), name=name, data=os.path.basename(data))
    stored = runs.config(run).get("store_questions", False)
    return TextSubject(model, data, name, stored if store_questions is None else store_questions)


def _agent(
    model: MemoryAgent, name: str, maps: str | None, lengths: Sequence[int] | None
) -> Subject:
    """An agent in mazes, or in the world that its run was trained in."""
    from lemn_tf.navigation.navigator import Navigator  # needs an extra

    if not isinstance(model, Navigator):
        from lemn_tf.seeing.subjects_worlds import WorldSubject

        made = runs.config(name)
        return WorldSubject(model, made["env"], made["modules"], name, made["longest"])
    from lemn_tf.experiments.mazes import exam_world
    from lemn_tf.seeing.subjects_mazes import MazeSubject

    env = "imaze" if lengths else model.settings["world"]
    data = maps or f"{KINDS * MAPS} random mazes"
    if maps is None and env == "imaze":
        lengths = list(lengths or LENGTHS)
        data = f"I-Mazes of {', '.join(map(str, lengths))} cells"
    world, _ = exam_world(env, lengths, maps, MAPS)
    return MazeSubject(model, world, name, data)


def _load(run: str | os.PathLike) -> Any:
    """The model; one of your own with its loss, if known, which says what answers are worth."""
    if not runs.about(run).policy:
        with contextlib.suppress(ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about its optimizer, which has nothing to do here
            return runs.load(run, compiled=True)
    return runs.load(run)
