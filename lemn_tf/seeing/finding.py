"""From the name of a run and its data to a `Subject`, whatever the run is."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any

from lemn_tf import runs
from lemn_tf.navigation.agent import MemoryAgent
from lemn_tf.seeing.subjects import Subject, TextSubject


def find(
    run: str | os.PathLike,
    data: str | os.PathLike | None = None,
    evidence: str | os.PathLike | None = None,
    lengths: Sequence[int] | None = None,
    store_questions: bool | None = None,
) -> Subject:
    """A trained model with data to examine it on.

    Args:
        run: the folder of a run, a file, or a preset.
        data: stories for a model of text, questions for one of documents, maps for a maze agent
            (None plays I-Mazes), an `.npz` of x and y for a model of your own.
        evidence: the folder of the documents.
        lengths: of the I-Mazes.
        store_questions: whether questions enter the stream; None as the run was trained.
    """
    name = os.fspath(run)
    model = _load(run)
    if isinstance(model, MemoryAgent):
        from lemn_tf.navigation.navigator import Navigator  # needs an extra
        from lemn_tf.seeing.subjects_mazes import MazeSubject

        if not isinstance(model, Navigator):
            raise ValueError(f"expected a maze agent or a model of streams; got {name}")
        return MazeSubject(model, None if data is None else os.fspath(data), lengths, name)
    if data is None:
        raise ValueError(f"say which data to show {name} with: --data F")
    if lengths is not None:
        raise ValueError(f"lengths are for maze agents, and {name} is not one")
    if evidence is not None:
        from lemn_tf.seeing.subjects_documents import DocumentSubject

        return DocumentSubject(model, data, evidence, name)
    if not hasattr(model, "reader"):
        from lemn_tf.seeing.subjects_own import OwnSubject, samples

        return OwnSubject(model, *samples(data), name=name, data=os.path.basename(data))
    stored = runs.config(run).get("store_questions", False)
    return TextSubject(model, data, name, stored if store_questions is None else store_questions)


def _load(run: str | os.PathLike) -> Any:
    """The model; one of your own with its loss, if known, which says what answers are worth."""
    if not runs.about(run).policy:
        with contextlib.suppress(ValueError):
            return runs.load(run, compiled=True)
    return runs.load(run)
