"""`lemn evaluate` and `lemn compare`: how well models answer, and how far from the bound."""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lemn_tf import retention, runs
from lemn_tf.commands import documents, maze, world
from lemn_tf.commands.common import (
    add_scheduling_arguments,
    figure_for,
    refuse,
    run_table,
    slot_count,
    slot_counts,
    stories,
    there,
    usable,
    whole_number,
    words,
)
from lemn_tf.files import room_for

if TYPE_CHECKING:
    from rich.table import Table

    from lemn_tf.model import StreamReader
    from lemn_tf.navigation.agent import MemoryAgent


class Evaluate:
    """Scores a trained model: answers every question of a file, or plays a world."""

    name = "evaluate"
    help = "score a trained model: the questions of a file, mazes or other worlds"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run", metavar="RUN", help="folder of a run, .keras file, or preset")
        parser.add_argument("--data", metavar="F", help="stories, bAbI's format")
        parser.add_argument("--slots", type=slot_count, help="another size of the memory")
        parser.add_argument("--policy", help="another policy, over the same reader or agent")
        add_store_questions(parser)
        parser.add_argument(
            "--renamings",
            type=whole_number(1),
            metavar="K",
            help="read every story K times instead, with names exchanged at random",
        )
        parser.add_argument("--json", action="store_true", help="print JSON")
        asked = parser.add_argument_group("for a reader of documents")
        documents.add_arguments(asked)
        asked.add_argument("--predictions", metavar="F", help="write answers in TriviaQA's format")
        documents.add_holding(asked)
        agents = parser.add_argument_group("for an agent, in mazes or any Gymnasium world")
        maze.add_evaluate_arguments(agents)
        world.add_import(agents)

    def check(self, arguments: argparse.Namespace) -> None:
        """Raises if the model or the data is missing, or an output file has no folder."""
        found = runs.about(arguments.run)
        there(arguments.data)
        agent = found.cls in ("Navigator", "MemoryAgent")
        if arguments.holding and (arguments.policy or not found.documents):
            raise ValueError("--holding: for a reader of documents, and in the place of --policy")
        if found.cls == "Navigator":
            maze.check_evaluate(arguments, found.world)
        elif found.cls == "MemoryAgent":
            world.check_evaluate(arguments)
        elif found.documents or arguments.qa or arguments.evidence:
            documents.check(arguments, arguments.run)
        else:
            _check_reader(arguments)
        if arguments.policy and agent:
            usable(arguments.policy)
            retention.check_rule(arguments.policy, found.policy)
        elif arguments.policy:
            check_rules([arguments.policy], [arguments.run])
        room_for(arguments.predictions)
        if not (agent or found.documents):
            stories(arguments.data)

    def run(self, arguments: argparse.Namespace) -> None:
        from lemn_tf.evaluation import with_rule
        from lemn_tf.experiments import babi
        from lemn_tf.navigation.agent import MemoryAgent

        runs.import_modules(arguments.run, arguments.modules)
        model = runs.load(arguments.run)
        if isinstance(model, MemoryAgent):
            return _evaluate_agent(arguments, model)
        if arguments.qa or arguments.evidence:
            return documents.run_evaluate(arguments, model)
        _check_reader(arguments)
        if arguments.policy:
            model = with_rule(model, arguments.policy)
        stored = stores_questions([arguments.run], arguments.store_questions)
        renamings = arguments.renamings or 0
        result = babi.score(model, arguments.data, arguments.slots, stored, renamings)
        print(json.dumps(result) if arguments.json else sentence(result))


def check_rules(policies: Sequence[str], names: Sequence[str]) -> None:
    """Raises unless these runs answer questions, and can do so with each of the policies."""
    found = {name: runs.check_reader(name) for name in names}
    first, *others = found.values()
    for policy in policies:
        if policy not in [one.policy for one in others]:
            retention.check_rule(policy, first.policy)
        if policy in retention.FOR_WORDS and not first.documents:
            raise ValueError(f"{policy} needs the words of documents: {names[0]} reads none")


def _check_reader(arguments: argparse.Namespace) -> None:
    """Raises unless the options are those for a reader of stories."""
    names = ("env", "lengths", "maps", "far", "temperature", "count", "seed", "modules")
    refuse(arguments, names, "agents")
    if arguments.data is None:
        raise ValueError("say which stories to answer: --data F")


def _evaluate_agent(arguments: argparse.Namespace, agent: MemoryAgent) -> None:
    from lemn_tf.navigation.navigator import Navigator  # needs an extra

    if arguments.policy or arguments.slots:
        agent = agent.with_memory(arguments.policy, arguments.slots)
    if isinstance(agent, Navigator):
        maze.run_evaluate(arguments, agent)
    else:
        world.run_evaluate(arguments, agent)


def sentence(result: dict) -> str:
    """A score in words."""
    told = (
        f"{result['policy']} with {result['slots']} slots on {result['data']}: "
        f"{result['error_rate']:.1f}% of {result['questions']:,} answers wrong"
    )
    if result["renamings"]:
        told += f"; every story was read {result['renamings']} times, with names exchanged"
    if result["support_recall"] is not None:
        told += (
            f"; all supporting facts still in memory for {result['support_recall']:.1f}% of "
            f"the {result['labelled']:,} questions that name them"
        )
    return told


class Compare:
    """Runs several policies over the same stories, with the oracle as the bound."""

    name = "compare"
    help = "compare policies and runs on the same stories, with the clairvoyant bound"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("runs", metavar="RUN", nargs="+", help="runs or presets to compare")
        parser.add_argument("--data", metavar="F", help="stories, bAbI's format")
        documents.add_arguments(parser.add_argument_group("for readers of documents"))
        parser.add_argument(
            "--slots", type=slot_counts, help="e.g. 5,10 (default: as the first run has)"
        )
        parser.add_argument(
            "--policies",
            type=words,
            help="rules to run with the first run's reader (default: all that fit); a learned one "
            "is taken from a RUN",
        )
        add_store_questions(parser)
        parser.add_argument("--json", action="store_true", help="print JSON")
        drawn = "also draw error against slots, to an .svg or .png"
        parser.add_argument("--figure", metavar="F", help=drawn)
        add_scheduling_arguments(parser, jobs=None)
        kept = "for the scores and logs of jobs (%(default)s)"
        parser.add_argument("--out", default="runs/compare", metavar="DIR", help=kept)
        parser.add_argument("--cell", help=argparse.SUPPRESS)
        parser.set_defaults(report_only=False)

    def check(self, arguments: argparse.Namespace) -> None:
        """Raises if the model or the data is missing, or an output file has no folder."""
        check_rules(arguments.policies or [], arguments.runs)
        if not (arguments.data or arguments.qa or arguments.evidence):
            raise ValueError("say which stories to answer: --data F, or --qa F --evidence DIR")
        there(arguments.data)
        if arguments.qa or arguments.evidence:
            if arguments.jobs or arguments.ray:
                raise ValueError(
                    "--jobs, --ray: for stories; documents are compared in one process"
                )
            for name in arguments.runs:
                documents.check(arguments, name)
        elif any(runs.about(name).documents for name in arguments.runs):
            raise ValueError("questions about documents need both --qa F and --evidence DIR")
        figure_for(arguments.figure)
        stories(arguments.data)

    def run(self, arguments: argparse.Namespace) -> int | None:
        from rich.console import Console

        from lemn_tf.evaluation import with_rule
        from lemn_tf.seeing import figures
        from lemn_tf.seeing.budgets import from_rows

        if arguments.qa or arguments.evidence:
            documents.run_compare(arguments)
            return None
        models = {name: runs.load_reader(name) for name in arguments.runs}
        first = next(iter(models.values()))
        learned = {model.memory.policy.name for model in models.values()}
        asked = arguments.policies or ("fifo", "lifo", "uniform", "lru")
        others = [name for name in asked if name not in learned]
        rules = [name for name in others if not retention.facts(name).clairvoyant]  # shown anyway
        shown = {name: with_rule(first, name) for name in rules} | models
        stored = stores_questions(arguments.runs, arguments.store_questions)
        rows = self._rows(shown, arguments, stored)
        if rows is None:
            return None if arguments.cell else 1
        if arguments.figure:
            trained = {name: model.memory.slots for name, model in models.items()}
            figures.write(figures.budget_curve(from_rows(rows), trained=trained), arguments.figure)
        if arguments.json:
            print(json.dumps(rows))
            return None
        title = f"{arguments.data}: error %" + (", questions stored too" if stored else "")
        few = len({row["slots"] for row in rows}) < 3
        Console().print(table(rows, title) if few else sizes(rows, title))
        return None

    def _rows(
        self, shown: dict[str, StreamReader], arguments: argparse.Namespace, stored: bool
    ) -> list[dict] | None:
        """The scores of all models at all sizes; None if jobs failed, or there was one to do."""
        from lemn_tf.evaluation import compare
        from lemn_tf.experiments import babi
        from lemn_tf.experiments.comparing import ScoreTable

        several = arguments.slots or [shown[arguments.runs[0]].memory.slots]
        if not (arguments.jobs or arguments.ray or arguments.cell):
            rows = []
            for slots in several:
                how = {"path": arguments.data, "slots": slots, "store_questions": stored}
                rows += compare(shown, functools.partial(babi.score, **how))
            return rows
        scores = ScoreTable(arguments.out, shown, arguments.data, stored, arguments.given)
        cells = scores.cells(several)
        failed = run_table(scores, cells, arguments, report=lambda: None)
        return None if failed or arguments.cell else scores.rows(cells)


def sizes(rows: list[dict], title: str) -> Table:
    """The error of each model at each number of slots, when there are many."""
    from rich.table import Table

    slots = list(dict.fromkeys(row["slots"] for row in rows))
    shown = Table(title=title)
    shown.add_column("model", overflow="fold")
    for size in slots:
        shown.add_column(f"{size} slots", justify="right")
    for name in dict.fromkeys(row["name"] for row in rows):
        errors = {row["slots"]: row["error_rate"] for row in rows if row["name"] == name}
        shown.add_row(name, *(f"{errors[size]:.1f}" for size in slots))
    return shown


def add_store_questions(parser: argparse.ArgumentParser) -> None:
    """Adds the switch that both commands have."""
    parser.add_argument(
        "--store-questions",
        action=argparse.BooleanOptionalAction,
        help="questions enter the stream too (default as the run was trained)",
    )


def stores_questions(names: list[str], asked: bool | None) -> bool:
    """Whether questions enter the stream: as the option says, or as these runs were trained."""
    if asked is not None:
        return asked
    trained = {name: runs.config(name).get("store_questions", False) for name in names}
    if len(set(trained.values())) > 1:
        raise ValueError(
            "expected runs trained alike, got some with and some without questions in the stream "
            f"({trained}): say --store-questions or --no-store-questions"
        )
    return trained[names[0]]


def table(rows: list[dict], title: str) -> Table:
    """A table of results, one row each."""
    from rich.table import Table

    shown = Table(title=title)
    for column in ("model", "policy", "slots", "error %", "regret", "support recall %"):
        left = column in ("model", "policy")
        shown.add_column(column, justify="left" if left else "right", overflow="fold")
    for row in rows:
        numbers = [row[name] for name in ("error_rate", "regret", "support_recall")]
        told = ["-" if number is None else f"{number:.1f}" for number in numbers]
        shown.add_row(row["name"], row["policy"], str(row["slots"]), *told)
    return shown
