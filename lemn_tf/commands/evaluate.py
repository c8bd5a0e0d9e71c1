"""`lemn evaluate` and `lemn compare`: how well models answer, and how far from the bound."""

from __future__ import annotations

import argparse
import json

from lemn_tf.commands import maze
from lemn_tf.commands.common import whole_number, whole_numbers, words


class Evaluate:
    """Scores a trained model: answers every question of a file, or plays mazes."""

    name = "evaluate"
    help = "score a trained model: the questions of a file, or mazes"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run", metavar="RUN", help="folder of a run, .keras file, or preset")
        parser.add_argument("--data", metavar="F", help="stories, bAbI's format")
        parser.add_argument("--slots", type=whole_number(1), help="another size of the memory")
        parser.add_argument("--policy", help="another policy over the same reader")
        parser.add_argument(
            "--store-questions", action="store_true", help="questions enter the stream too"
        )
        parser.add_argument("--json", action="store_true", help="print JSON")
        maze.add_evaluate_arguments(parser.add_argument_group("for a maze agent"))

    def run(self, arguments: argparse.Namespace) -> None:
        from lemn_tf import runs
        from lemn_tf.commands import babi

        if maze.is_agent(arguments.run):
            return maze.run_evaluate(arguments)
        model = runs.load(arguments.run)
        if arguments.data is None:
            raise ValueError("say which stories to answer: --data F")
        if arguments.policy:
            model = model.with_policy(arguments.policy)
        result = babi.score(model, arguments.data, arguments.slots, arguments.store_questions)
        if arguments.json:
            print(json.dumps(result))
            return None
        print(
            f"{result['policy']} with {result['slots']} slots on {result['data']}: "
            f"{result['error_rate']:.1f}% of {result['questions']:,} answers wrong; all supporting "
            f"facts still in memory for {result['support_recall']:.1f}% of the questions"
        )
        return None


class Compare:
    """Runs several policies over the same stories, with the oracle as the bound."""

    name = "compare"
    help = "compare policies and runs on the same stories, with the clairvoyant bound"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("runs", metavar="RUN", nargs="+", help="runs or presets to compare")
        parser.add_argument("--data", required=True, metavar="F", help="stories, bAbI's format")
        parser.add_argument("--slots", type=whole_numbers(1), default=[5], help="e.g. 5,10")
        parser.add_argument(
            "--policies",
            type=words,
            default=["fifo", "lifo", "uniform", "lru"],
            help="rules to run with the first run's reader; a learned one is taken from a RUN",
        )
        parser.add_argument("--json", action="store_true", help="print JSON")

    def run(self, arguments: argparse.Namespace) -> None:
        from rich.console import Console

        from lemn_tf import retention, runs
        from lemn_tf.commands import babi

        models = {name: runs.load(name) for name in arguments.runs}
        first = next(iter(models.values()))
        rules = {"fifo", "lifo", "uniform", "lru", "oracle"}
        shown = {}
        for policy in arguments.policies:
            retention.get(policy)
            if policy in rules:
                shown[policy] = first.with_policy(policy)
            elif not any(m.memory.policy.name == policy for m in models.values()):
                raise ValueError(
                    f"{policy} is learned: none of the runs given has such a policy "
                    f"({', '.join(f'{n}: {m.memory.policy.name}' for n, m in models.items())})"
                )
        shown |= models
        rows = []
        for slots in arguments.slots:
            bound = babi.score(first.with_policy("oracle"), arguments.data, slots)
            for name, model in shown.items():
                result = babi.score(model, arguments.data, slots)
                regret = round(result["error_rate"] - bound["error_rate"], 3)
                rows.append({"name": name, **result, "regret": regret})
            rows.append({"name": "oracle", **bound, "regret": 0.0})
        if arguments.json:
            print(json.dumps(rows))
            return
        Console().print(table(rows, f"{arguments.data}: error %"))


def table(rows: list[dict], title: str):
    """A table of results, one row each."""
    from rich.table import Table

    shown = Table(title=title)
    for column in ("model", "policy", "slots", "error %", "regret", "support recall %"):
        shown.add_column(column, justify="left" if column in ("model", "policy") else "right")
    for row in rows:
        shown.add_row(
            row["name"],
            row["policy"],
            str(row["slots"]),
            f"{row['error_rate']:.1f}",
            f"{row['regret']:.1f}",
            f"{row['support_recall']:.1f}",
        )
    return shown
