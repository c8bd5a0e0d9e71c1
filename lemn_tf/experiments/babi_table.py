"""How the cells of the bAbI tables are trained and scored."""

from __future__ import annotations

import abc
import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lemn_tf import recipes, runs, training
from lemn_tf.experiments import babi
from lemn_tf.experiments.babi_cells import ENTROPY, ROOMY, WINDOW, BabiCell
from lemn_tf.experiments.cells import C, CellTable
from lemn_tf.pipelines import babi as pipeline
from lemn_tf.pipelines import babi_generator

FILES = ("train", "valid", "reader_from")
"""The settings that are paths."""


def prepare(folder: Path, variant: str, given: str | Path | None = None) -> None:
    """Puts the files of stories of one kind, `VARIANT_{train,valid,test}.txt`, into a folder.

    Args:
        folder: made if missing.
        variant: one of `babi_generator.VARIANTS`.
        given: a folder with files of the same names; those that it lacks are generated.
    """
    for number, (split, size) in enumerate({"train": 1800, "valid": 200, "test": 1000}.items()):
        path = folder / f"{variant}_{split}.txt"
        source = Path(given) / path.name if given else None
        if source is not None and source.exists():
            stories = pipeline.read_stories(source)
            if path.exists() and pipeline.read_stories(path) != stories:
                raise ValueError(
                    f"{path} holds other stories than {source}: the runs beside it were "
                    "made with them; choose another --out"
                )
            pipeline.write_stories(stories, path)
        elif not path.exists():
            made = babi_generator.generate(variant, size, seed=1000 + number)
            pipeline.write_stories(made, path)
            path.with_suffix(".generated").touch()  # so that the report can say so


def told(settings: babi.BabiSettings) -> dict[str, Any]:
    """Settings as a result keeps them: files by name only, because their place does not matter."""
    return {
        key: Path(value).name if key in FILES and value else value
        for key, value in dataclasses.asdict(settings).items()
    }


class StoryTable(CellTable[C]):
    """Trainings on stories, whose files lie in the folder `data` of `out`."""

    @abc.abstractmethod
    def settings(self, cell: C) -> babi.BabiSettings:
        """How a cell is trained."""

    def data(self, variant: str, split: str) -> Path:
        """A file of stories."""
        return self.out / "data" / f"{variant}_{split}.txt"

    def train(self, cell: C, folder: Path) -> None:
        babi.train_model(self.settings(cell), folder)

    def trained(
        self, cell: C, folder: Path, history: list[dict[str, Any]], variant: str
    ) -> dict[str, Any]:
        """What the record of a trained cell says: scores, settings, validation error in percent."""
        model, scores = runs.load(folder), {}
        for split in ("valid", "test"):
            path = self.data(variant, split)
            generated = path.with_suffix(".generated").exists()
            scores[split] = {**babi.score(model, path), "generated": generated}
        curve = [
            [line["phase"], line["episodes"], round(100 * (1 - line["val_accuracy"]), 2)]
            for line in history
        ]
        return {
            "scores": scores,
            "settings": told(self.settings(cell)),
            "validation_curve": curve,
        }


class BabiTable(StoryTable[BabiCell]):
    """Trains and scores the cells; see `lemn_tf.experiments.cells`.

    Args:
        out: folder for data, runs and logs.
        results: folder of the report; the results of cells go to `babi` in it.
    """

    def __init__(self, out: str | os.PathLike, results: str | os.PathLike):
        super().__init__(out, Path(results) / "babi")

    def prepare(self, given: str | Path | None = None) -> None:
        """Puts every file of stories in place.

        Args:
            given: a folder with files of the same names; those that it lacks are generated.
        """
        for variant in babi_generator.VARIANTS:
            prepare(self.out / "data", variant, given)

    def settings(self, cell: BabiCell) -> babi.BabiSettings:
        entropy = ENTROPY.get((cell.row.trainer, cell.variant))
        settings = babi.BabiSettings(
            train=str(self.data(cell.variant, "train")),
            valid=str(self.data(cell.variant, "valid")),
            policy=cell.row.policy,
            slots=cell.slots,
            recipe=cell.row.recipe,
            trainer=cell.row.trainer,
            shuffle=cell.row.shuffle,
            hidden=cell.row.hidden,
            window=WINDOW.get(cell.variant),
            room=cell.variant in ROOMY,
            seed=cell.seed,
            reader_from=str(self.folder(cell.first)) if cell.first else None,
            changes={} if entropy is None else {"entropy": entropy},
            competent=None,  # all cells of a column have the same kind of reader
        )
        return settings.lasting(cell.row.episodes[cell.column])

    def is_current(self, cell: BabiCell, record: dict[str, Any]) -> bool:
        return record["settings"]["episodes"] == self.settings(cell).episodes

    def is_ready(self, cell: BabiCell) -> bool:
        if cell.first is None:
            return True
        last = recipes.reader_phases(cell.row.recipe) - 1
        return training.reader_file(self.folder(cell.first), last).exists()

    def unfinished(self, cells: Sequence[BabiCell]) -> list[BabiCell]:
        # A result may have come from elsewhere, without the run that other cells start from.
        todo = set(super().unfinished(cells))
        todo |= {cell.first for cell in todo if cell.first and not self.is_ready(cell)}
        return [cell for cell in cells if cell in todo]

    def record(self, cell: BabiCell, folder: Path, history: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "row": cell.row.name,
            "variant": cell.variant,
            "slots": cell.slots,
            "seed": cell.seed,
            "paper": cell.row.reported(cell.column),
            **self.trained(cell, folder, history, cell.variant),
        }

    def command(self, cell: BabiCell) -> list[str]:
        column, seeds = f"{cell.variant}-{cell.slots}", str(cell.seed + 1)
        asked = ["--rows", cell.row.name, "--columns", column, "--seeds", seeds]
        return ["reproduce", "babi", *asked]

    def summary(self, record: dict[str, Any]) -> str:
        return f"test error {record['scores']['test']['error_rate']:.1f}%"
