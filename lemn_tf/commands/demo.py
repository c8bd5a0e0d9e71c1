"""`lemn demo`: the main job, small: make data, train, compare, and show a memory at work."""

from __future__ import annotations

import argparse

from lemn_tf.commands.common import whole_number

COMPARED = ("fifo", "lru")
"""The rules that stand beside the trained policy and the oracle."""


class Demo:
    """Generates Noisy stories, trains ST-LEMN, and shows what it remembers that FIFO does not."""

    name = "demo"
    help = "generate stories, train a policy on them, and show what it learned to remember"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--variant", default="noisy", help="original, noisy or large")
        parser.add_argument("--slots", type=whole_number(1), default=5, help="N in the paper")
        parser.add_argument("--policy", default="st-lemn", help="retention policy, one that learns")
        parser.add_argument("--seed", type=whole_number(0), default=1, help="of everything")
        parser.add_argument(
            "--episodes", type=whole_number(1), default=40_000, help="to train the policy for"
        )
        parser.add_argument("--shards", type=whole_number(1), default=2, help="cores to use")
        parser.add_argument("--out", default="runs/demo", metavar="DIR", help="for data and run")

    def run(self, arguments: argparse.Namespace) -> int | None:
        import sys
        import time
        from pathlib import Path

        from rich.console import Console

        from lemn_tf import loop
        from lemn_tf.commands.data import write_splits
        from lemn_tf.commands.evaluate import compare, table
        from lemn_tf.experiments import babi
        from lemn_tf.progress import Bar

        console, began, out = Console(), time.time(), Path(arguments.out)
        name = f"{arguments.variant}-{arguments.policy}-{arguments.slots}-seed{arguments.seed}"
        console.print("[bold]1. Stories[/bold]: generated, so nothing is downloaded")
        files = write_splits(arguments.variant, 2000, arguments.seed, out / "data" / name)
        console.print(
            f"[bold]2. Training[/bold] {arguments.policy} with {arguments.slots} slots: first the "
            "reader, then what to remember"
        )
        first = min(24_000, arguments.episodes)
        settings = babi.Settings(
            str(files["train"]),
            str(files["valid"]),
            arguments.policy,
            arguments.slots,
            episodes={"linear start": first, "reader": first},
            seed=arguments.seed,
        ).lasting(arguments.episodes)
        try:
            model = babi.train(
                settings, out / name, arguments.shards, callbacks=lambda phase, _: [Bar(phase)]
            )
        except loop.Interrupted as stopped:
            print(f"lemn: {stopped}", file=sys.stderr)
            return 130
        console.print("[bold]3. Test stories[/bold], never seen before")
        models = {rule: model.with_policy(rule) for rule in COMPARED} | {"trained": model}
        rows = compare(models, files["test"], arguments.slots)
        console.print(table(sorted(rows, key=lambda row: -row["error_rate"]), "wrong answers"))
        console.print("[bold]4. Three questions[/bold], and what memory held when they were asked")
        show_answers(console, model, files["test"])
        console.print(f"{time.time() - began:.0f} seconds. The run is in {out / name}.")
        return None


def show_answers(console, model, path, count: int = 3) -> None:
    """Answers questions whose facts a sliding window has lost, and shows the memory."""
    import numpy as np
    import tensorflow as tf

    from lemn_tf.experiments import babi

    data = babi.Stories(path, model.vocabulary)
    batch = {key: tf.constant(array[:64]) for key, array in data.arrays.items()}
    _, kept = model.act(batch)
    guesses = tf.argmax(model.answer(batch, kept).logits, axis=-1).numpy()
    kept = kept.numpy()
    shown = 0
    for s, story in enumerate(data.stories[:64]):
        for q, question in enumerate(story.questions):
            oldest = question.asked_after - min(question.support, default=0)
            if oldest <= 2 * model.memory.slots or shown == count:
                continue
            shown += 1
            answer = model.vocabulary.text(guesses[s, q][None]).numpy().decode()
            verdict = "right" if answer == question.answer else f"wrong: {question.answer}"
            console.print(
                f"\nAfter {question.asked_after} facts: [bold]{question.text}[/bold] "
                f"[bold]{answer}[/bold] ({verdict})"
            )
            for fact in np.sort(kept[s, q][kept[s, q] >= 0]):
                mark = "[green]>[/green]" if fact in question.support else " "
                console.print(f"  {mark} {fact + 1:2d} {story.facts[fact]}")
            break
