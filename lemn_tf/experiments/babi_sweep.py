"""A sweep: the same training with every combination of some settings, several seeds each."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lemn_tf.experiments import babi_table
from lemn_tf.experiments.babi_grid import SweepCell
from lemn_tf.experiments.babi_settings import BabiSettings
from lemn_tf.files import write_atomically
from lemn_tf.tables import Table


class SweepTable(babi_table.StoryTable[SweepCell]):
    """Trains and scores the cells of a sweep; see `lemn_tf.experiments.cells`.

    Args:
        out: folder for data, runs, logs, results and the report.
        variant: which stories; see `babi_table.prepare`.
        lengths: other lengths of phases, by name.
    """

    def __init__(self, out: str | os.PathLike, variant: str, lengths: Mapping[str, int]):
        super().__init__(out, Path(out) / "results")
        self.variant, self.lengths = variant, dict(lengths)

    def settings(self, cell: SweepCell) -> BabiSettings:
        train, valid = (str(self.data(self.variant, split)) for split in ("train", "valid"))
        return cell.settings(train, valid, self.lengths)

    def is_current(self, cell: SweepCell, record: dict[str, Any]) -> bool:
        wanted = json.loads(json.dumps(babi_table.told(self.settings(cell))))
        return record["settings"] == wanted

    def record(
        self, cell: SweepCell, folder: Path, history: list[dict[str, Any]]
    ) -> dict[str, Any]:
        return {
            "values": dict(cell.values),
            "seed": cell.seed,
            "variant": self.variant,
            **self.trained(cell, folder, history, self.variant),
        }

    def summary(self, record: dict[str, Any]) -> str:
        scores = record["scores"]
        return (
            f"{scores['valid']['error_rate']:.1f}% wrong in validation, "
            f"{scores['test']['error_rate']:.1f}% in test"
        )

    def places(self, cell: SweepCell) -> list[str]:
        return ["--out", str(self.out)]

    def command(self, cell: SweepCell) -> list[str]:
        asked = ["sweep", "babi", "--variant", self.variant, "--seeds", str(cell.seed + 1)]
        for name, value in cell.values:
            asked += ["--param", f"{name}={value}"]
        if self.lengths:
            told = ",".join(f"{name}={count}" for name, count in self.lengths.items())
            asked += ["--phases", told]
        return asked

    def report(self, cells: Sequence[SweepCell]) -> tuple[Path, Path]:
        """Writes `sweep.md` and `sweep.json`: the settings, best in validation first, all seeds."""
        found: dict[str, list[dict[str, Any]]] = {}
        for cell in cells:
            if self.is_done(cell):
                record = json.loads(self.result(cell).read_text())
                found.setdefault(cell.label, []).append(record)
        rows = sorted((_row(records) for records in found.values()), key=lambda r: r["valid_mean"])
        page, data = self.out / "sweep.md", self.out / "sweep.json"
        write_atomically(data, json.dumps(rows, indent=1) + "\n")
        write_atomically(page, _page(self.variant, rows))
        return page, data


def _row(records: list[dict[str, Any]]) -> dict[str, Any]:
    """The results of one combination, all seeds."""
    row: dict[str, Any] = {"values": records[0]["values"]}
    row["seeds"] = [record["seed"] for record in records]
    for split in ("valid", "test"):
        errors = [record["scores"][split]["error_rate"] for record in records]
        row |= {split: errors, f"{split}_mean": round(sum(errors) / len(errors), 3)}
    row["minutes"] = round(sum(record["seconds"] for record in records) / 60, 1)
    row["generated"] = records[0]["scores"]["test"]["generated"]
    return row


def _page(variant: str, rows: list[dict[str, Any]]) -> str:
    """The report as Markdown."""
    names = list(rows[0]["values"]) if rows else []
    head = (*names, "valid, mean", "valid, all seeds", "test, mean", "test, all seeds", "minutes")
    lines = [
        [
            *(str(row["values"][name]) for name in names),
            *(
                told
                for split in ("valid", "test")
                for told in (row[f"{split}_mean"], ", ".join(f"{one:.1f}" for one in row[split]))
            ),
            row["minutes"],
        ]
        for row in rows
    ]
    made = ", generated test stories" if rows and rows[0]["generated"] else ""
    about = (
        f"# A sweep on bAbI streams ({variant}{made})\n\n"
        "Wrong answers in percent, best mean in validation first. Choose by validation: the test\n"
        "column of a setting that was chosen by it means nothing. Written by `lemn sweep`; the\n"
        "trainings are in `results/`, one file each.\n\n"
    )
    return f"{about}{Table(head, lines).markdown()}\n"
