"""A training over documents in TensorBoard: its stages as phases of one curve, and its settings."""

from __future__ import annotations

import os
from typing import Any

from lemn_tf import loop
from lemn_tf.seeing.boards import Board


class BoardedRun(loop.Run):
    """A run whose history is written for TensorBoard too, to `logs/` in its folder.

    Args: as of `loop.Run`.
    """

    def __init__(self, folder: str | os.PathLike, config: dict[str, Any]):
        super().__init__(folder, config)
        self.board = Board(self.folder / "logs", config)
        self.stages = [line.get("stage") for line in self.history()]

    def log(self, line: dict[str, Any]) -> None:
        """Adds a line to the history, which is a step of the curve."""
        super().log(line)
        if line["stage"] not in self.stages:
            self.board.phase(line["stage"], len(set(self.stages)), len(self.stages))
        self.stages.append(line["stage"])
        self.board.scalars(line, len(self.stages))
