"""`lemn demo`: make data, train, compare, and show a memory at work."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from lemn_tf.commands.common import VARIANTS, slot_count, usable, whole_number
from lemn_tf.commands.evaluate import table
from lemn_tf.commands.report import write_report
from lemn_tf.files import place_for

if TYPE_CHECKING:
    from rich.console import Console

    from lemn_tf.experiments import babi

COMPARED = ("fifo", "lru")
"""The rules shown beside the trained policy and the oracle."""


class Demo:
    """Generates Noisy stories, trains ST-LEMN, and shows what it remembers that FIFO does not."""

    name = "demo"
    help = "generate stories, train a policy on them, and show what it learned to remember"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--variant", choices=VARIANTS, default="noisy", help="which stories")
        parser.add_argument("--slots", type=slot_count, default=5, help="N in the paper")
        parser.add_argument("--policy", default="st-lemn", help="retention policy, one that learns")
        parser.add_argument("--seed", type=whole_number(0), default=1, help="of everything")
        parser.add_argument(
            "--episodes", type=whole_number(1), default=40_000, help="to train the policy for"
        )
        parser.add_argument("--shards", type=whole_number(1), default=2, help="cores to use")
        parser.add_argument("--out", default="runs/demo", metavar="DIR", help="for data and run")

    def check(self, arguments: argparse.Namespace) -> None:
        """Raises unless the policy learns and there is a place for the run."""
        usable(arguments.policy, learned=True)
        place_for(arguments.out)

    def run(self, arguments: argparse.Namespace) -> None:
        from rich.console import Console

        from lemn_tf.commands.progress import Bar
        from lemn_tf.evaluation import compare
        from lemn_tf.experiments import babi
        from lemn_tf.pipelines.babi_generator import write_splits
        from lemn_tf.seeing.subjects import TextSubject

        console, began, out = Console(), time.time(), Path(arguments.out)
        name = f"{arguments.variant}-{arguments.policy}-{arguments.slots}-seed{arguments.seed}"
        console.print("[bold]1. Stories[/bold]: generated, so nothing is downloaded")
        files = write_splits(arguments.variant, 2000, arguments.seed, out / "data" / name)
        console.print(
            f"[bold]2. Training[/bold] {arguments.policy} with {arguments.slots} slots: first the "
            "reader, then what to remember"
        )
        first = min(24_000, arguments.episodes)
        settings = babi.BabiSettings(
            str(files["train"]),
            str(files["valid"]),
            arguments.policy,
            arguments.slots,
            episodes={"linear start": first, "reader": first},
            seed=arguments.seed,
        ).lasting(arguments.episodes)
        board = babi.boards(settings, out / name)
        model = babi.train_model(
            settings,
            out / name,
            arguments.shards,
            callbacks=lambda phase, index: [Bar(phase), *board(phase, index)],
        )
        console.print("[bold]3. Test stories[/bold], never seen before")
        models = {rule: model.with_policy(rule) for rule in COMPARED} | {"trained": model}
        rows = compare(models, lambda one: babi.score(one, files["test"], arguments.slots))
        console.print(table(sorted(rows, key=lambda row: -row["error_rate"]), "wrong answers"))
        console.print("[bold]4. Three questions[/bold], and what memory held when they were asked")
        for one in babi.recollections(model, files["test"]):
            self._show(console, one)
        console.print("[bold]5. A page[/bold] to look into its memory, episode by episode")
        shown = {str(out / name): TextSubject(model, files["test"], "trained")}
        sizes = [arguments.slots, 2 * arguments.slots]
        write_report(shown, out / name / "report.html", sizes, "lemn demo")
        console.print(f"{time.time() - began:.0f} seconds. The run is in {out / name}.")

    def _show(self, console: Console, one: babi.Recollection) -> None:
        """A question, its answer, and the memory with the facts that were needed marked."""
        question = one.question
        verdict = "right" if one.answer == question.answer else f"wrong: {question.answer}"
        console.print(
            f"\nAfter {question.asked_after} facts: [bold]{question.text}[/bold] "
            f"[bold]{one.answer}[/bold] ({verdict})"
        )
        for fact in one.kept:
            mark = "[green]>[/green]" if fact in question.support else " "
            console.print(f"  {mark} {fact + 1:2d} {one.story.facts[fact]}")
