"""The bar that is shown while a phase of a recipe trains."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from lemn_tf.callbacks import Logs, Rate
from lemn_tf.recipes import Phase


class Bar(Rate):
    """A progress bar for one phase: episodes per second, time left, and results so far.

    While only the reader learns, the result is its error on random memories, because the policy,
    which has not begun to learn, would spoil the error on validation stories.

    Args:
        phase: what is being trained.
        later: episodes of the phases that follow, for the time left of the whole.
        console: where to show it; without a terminal, it prints a line for each validation.
    """

    def __init__(self, phase: Phase, later: int = 0, console: Console | None = None):
        super().__init__(phase.batch_size)
        self.phase, self.console = phase, console or Console(stderr=True)
        self.total, self.later = max(1, phase.episodes // phase.batch_size), later
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
        valid = self._reached(logs or {}) + self._left(done)
        self.progress.update(self.task, completed=done, rate=f"{self.rate:,.0f}", valid=valid)
        if not self.console.is_terminal:
            self.console.print(
                f"{self.phase.name}: {done * self.phase.batch_size:,} of "
                f"{self.total * self.phase.batch_size:,} episodes, {self.rate:,.0f}/s, {valid}",
                soft_wrap=True,
            )

    def _reached(self, logs: dict[str, float]) -> str:
        """What the phase has taught so far, in words."""
        if not self.phase.objectives and "subset_accuracy" in logs:
            return f"{100 * (1 - logs['subset_accuracy']):.1f}% wrong on random memories"
        return f"validation error {100 * (1 - logs.get('val_accuracy', 0.0)):.1f}%"

    def _left(self, done: int) -> str:
        """The time left for the whole training, at the rate of this phase."""
        episodes = (self.total - done) * self.phase.batch_size + self.later
        minutes = episodes / self.rate / 60 if self.rate else 0.0
        return f", about {minutes:.0f} min left in all" if minutes >= 0.5 else ""

    def on_train_end(self, logs: Logs = None) -> None:
        done = int(self.model.optimizer.iterations.numpy()) >= self.total
        if done or self.model.stop_training:  # a phase is one `fit` after another
            self.progress.stop()


def plan(phases: Sequence[Phase]) -> str:
    """What a training is about to do, one line per phase.

    Example:

    >>> print(plan([Phase("reader", 48_000), Phase("policy", 40_000, objectives=("a2c",))]))
    2 phases, 88,000 episodes:
      reader   48,000  the reader learns to answer
      policy   40,000  the policy learns what to keep, and the reader goes on
    """
    lines = [f"{len(phases)} phases, {sum(phase.episodes for phase in phases):,} episodes:"]
    width = max(len(phase.name) for phase in phases)
    for phase in phases:
        what = "the reader learns to answer"
        if phase.objectives:
            what = "the policy learns what to keep, and the reader goes on"
        lines.append(f"  {phase.name:<{width}}  {phase.episodes:>7,}  {what}")
    return "\n".join(lines)
