"""The bar that is shown while a phase of a recipe trains."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from lemn_tf.callbacks import Logs, Rate
from lemn_tf.recipes import Phase


class Bar(Rate):
    """A progress bar for one phase: episodes a second, time left, and the last validation.

    Args:
        phase: what is being trained.
        console: where to show it; without a terminal, it prints a line for each validation.
    """

    def __init__(self, phase: Phase, console: Console | None = None):
        super().__init__(phase.batch_size)
        self.phase, self.console = phase, console or Console(stderr=True)
        self.total = max(1, phase.episodes // phase.batch_size)
        self.progress = Progress(
            TextColumn("{task.description:>12}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%  {task.fields[rate]} episodes/s "),
            TimeRemainingColumn(),
            TextColumn("{task.fields[valid]}"),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.task = self.progress.add_task(phase.name, total=self.total, rate="-", valid="")
        self.shown = 0.0

    def on_train_begin(self, logs: Logs = None) -> None:
        super().on_train_begin(logs)
        self.progress.start()

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        super().on_train_batch_end(batch, logs)
        now = time.time()
        if self.rate and now - self.shown > 0.2:
            done = int(self.model.optimizer.iterations.numpy())
            self.progress.update(self.task, completed=done, rate=f"{self.rate:,.0f}")
            self.shown = now

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        super().on_epoch_end(epoch, logs)
        done = int(self.model.optimizer.iterations.numpy())
        error = 100 * (1 - (logs or {}).get("val_accuracy", 0.0))
        valid = f"validation error {error:.1f}%"
        self.progress.update(self.task, completed=done, rate=f"{self.rate:,.0f}", valid=valid)
        if not self.console.is_terminal:
            self.console.print(
                f"{self.phase.name}: {done * self.phase.batch_size:,} of "
                f"{self.total * self.phase.batch_size:,} episodes, {self.rate:,.0f}/s, {valid}"
            )

    def on_train_end(self, logs: Logs = None) -> None:
        done = int(self.model.optimizer.iterations.numpy()) >= self.total
        if done or self.model.stop_training:  # a phase is one `fit` after another
            self.progress.stop()
