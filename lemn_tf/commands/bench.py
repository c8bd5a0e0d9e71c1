"""`lemn bench`: how fast training, evaluation and reading are, beside eager mode."""

from __future__ import annotations

import argparse
import json

from lemn_tf.commands.common import slot_count, usable, whole_number
from lemn_tf.recipes import check_shards


def batch_size(arguments: argparse.Namespace) -> int:
    """Episodes at a time; training has smaller batches."""
    return arguments.batch or (64 if arguments.what == "train" else 256)


class Bench:
    """Measures episodes per second, after compilation, and compares with an eager baseline."""

    name = "bench"
    help = "measure training, evaluation or reading: episodes or sentences per second"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("what", choices=("train", "evaluate", "observe"))
        parser.add_argument("--policy", default="st-lemn", help="retention policy")
        parser.add_argument("--slots", type=slot_count, default=5, help="N in the paper")
        parser.add_argument("--batch", type=whole_number(1), help="episodes at a time")
        parser.add_argument("--shards", type=whole_number(1), default=2, help="cores to use")
        parser.add_argument("--seconds", type=whole_number(1), default=10, help="to measure for")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def check(self, arguments: argparse.Namespace) -> None:
        """Raises unless the policy is known and can do what is measured."""
        usable(arguments.policy)
        if arguments.what != "observe":
            check_shards(arguments.shards, batch_size(arguments))

    def run(self, arguments: argparse.Namespace) -> None:
        from lemn_tf.experiments import speed

        size, seconds = batch_size(arguments), arguments.seconds
        memory = (arguments.policy, arguments.slots)
        if arguments.what == "observe":
            result = speed.of_observing(*memory, size, seconds)
        elif arguments.what == "train":
            result = speed.of_training(*memory, size, arguments.shards, seconds)
        else:
            result = speed.of_evaluation(*memory, size, arguments.shards, seconds)
        if arguments.json:
            print(json.dumps(result))
            return
        what = "sentences" if arguments.what == "observe" else "episodes"
        print(
            f"{arguments.what}: {result['episodes_per_second']:,.0f} {what}/s, "
            f"{result['per_processor_second']:,.0f} in a second of processor time "
            f"(batch {result['batch']}, {result['shards']} shards, compiled in "
            f"{result['compile_seconds']:.0f} s); one stream at a time in eager mode "
            f"{result['eager_episodes_per_second']:,.1f} {what}/s: "
            f"{result['ratio']:,.0f} times as fast"
        )
        if "state_bytes" in result:
            print(f"the memory of a stream: {result['state_bytes']:,} bytes")
