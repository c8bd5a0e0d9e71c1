"""Documents on the command line: the branches of `lemn train`, `evaluate` and `compare` for them.

lemn train documents --qa F... --evidence DIR... --embeddings F --policy st-lemn --out RUN
lemn evaluate RUN --qa F --evidence DIR --json --predictions F
lemn compare RUN... --qa F --evidence DIR --policies fifo,salient
lemn reproduce documents RUN --sets DIR...
lemn reproduce triviaqa --qa DIR --evidence DIR --embeddings F
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lemn_tf import runs
from lemn_tf.commands.common import (
    folders,
    given,
    slot_count,
    there,
    usable,
    whole_number,
    words,
)
from lemn_tf.files import place_for

if TYPE_CHECKING:
    from rich.table import Table

    from lemn_tf.experiments.minilm import Store
    from lemn_tf.model import StreamReader


@contextlib.contextmanager
def named() -> Iterator[None]:
    """Bad documents are found while they stream through the graph: says which one, in one line."""
    from tensorflow import errors

    try:
        yield
    except errors.InvalidArgumentError as error:
        found = re.search(r"got binary data in\] \[\"?(.*?)\"?(?: \"|\])", error.message)
        if found is None:
            raise
        raise ValueError(f"{found[1]}: expected a document of text, got binary data") from error


def add_train_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `lemn train documents`."""
    add = parser.add_argument
    add("--qa", nargs="+", required=True, metavar="F", help="question files, TriviaQA's format")
    several = "folder of their documents, or one for each question file"
    add("--evidence", nargs="+", required=True, metavar="DIR", help=several)
    vectors = "word vectors: GloVe's text file, or .npy beside vocab*.txt"
    add("--embeddings", metavar="F", help=vectors)
    add("--limit", type=whole_number(1), help="take at most this many word vectors")
    weights = (
        "how often documents of each question file come, e.g. 1,3 (default: as many as it has)"
    )
    add("--weights", type=numbers, metavar="W,W", help=weights)
    encoded = "folder to keep encoded documents in (TFRecord), for this run and later ones"
    add("--cache", metavar="DIR", help=encoded)
    add("--reader", choices=("lite", "bidaf"), default="lite", help="reader")
    add("--policy", default="st-lemn", help="retention policy")
    add("--slots", type=slot_count, default=10, help="N in the paper")
    aware = "the policy knows the question from the beginning"
    add("--question-aware", action="store_true", help=aware)
    add("--recipe", choices=("lemn", "paper"), default="lemn", help="ours, or the paper's")
    add("--updates", type=whole_number(1), default=4000, help="of the reader, 32 questions each")
    add("--epochs", type=whole_number(1), default=6, help="of the policy, over all documents")
    taken = "take the trained reader, and its words, of a run or preset"
    add("--reader-from", metavar="RUN", help=taken)
    further = "updates by which a reader that was taken learns on from these documents (default 0)"
    add("--further", type=whole_number(0), default=0, help=further)
    add_minilm(parser)
    who = "who sees MiniLM's vectors: the policy (of slots), the reader (of words), or both"
    add("--minilm-for", choices=("policy", "reader", "both"), default="policy", help=who)
    add("--seed", type=whole_number(0), default=0, help="of everything random")
    add("--out", required=True, metavar="RUN", help="folder of the run")


def add_minilm(parser: argparse._ActionsContainer) -> None:
    """The option for MiniLM's vectors."""
    seen = "MiniLM's vectors are seen too; folder to keep them in"
    parser.add_argument("--minilm", metavar="DIR", help=seen)


def store(arguments: argparse.Namespace) -> Store | None:
    """Where MiniLM's vectors are, if they are asked for."""
    from lemn_tf.experiments.minilm import Store

    return None if arguments.minilm is None else Store(arguments.minilm)


def check_train(arguments: argparse.Namespace) -> None:
    """Raises unless the policy is known and everything to read is there."""
    usable(arguments.policy, documents=True)
    there(*arguments.qa)
    folders(*arguments.evidence)
    if arguments.reader_from:
        if not runs.check_reader(arguments.reader_from).documents:
            raise ValueError(
                f"--reader-from: expected a run or preset that reads documents, and "
                f"{arguments.reader_from} does not"
            )
    elif arguments.embeddings is None:
        raise ValueError("expected --embeddings F, or --reader-from RUN; got neither")
    else:
        there(arguments.embeddings)
    if arguments.further and not arguments.reader_from:
        raise ValueError("--further: expected --reader-from RUN, whose reader learns on")
    if arguments.minilm:
        place_for(arguments.minilm)
    if len(arguments.evidence) not in (1, len(arguments.qa)):
        raise ValueError(
            f"--evidence: expected one folder, or one for each of {len(arguments.qa)} question "
            f"files; got {len(arguments.evidence)}"
        )
    if arguments.weights and len(arguments.weights) != len(arguments.qa):
        raise ValueError(
            f"--weights: expected one for each of {len(arguments.qa)} question files; got "
            f"{len(arguments.weights)}"
        )


def numbers(text: str) -> tuple[float, ...]:
    """An argparse type: numbers above 0 with commas between them."""
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(0 < number < float("inf") for number in found):
        raise argparse.ArgumentTypeError(f"expected numbers above 0, e.g. 1,3; got {text!r}")
    return found


def run_train(arguments: argparse.Namespace) -> None:
    """Trains a model over documents."""
    from lemn_tf.experiments import documents, documents_training

    files = {"qa": tuple(arguments.qa), "evidence": tuple(arguments.evidence)}
    settings = documents.Settings(**given(arguments, documents.Settings) | files)
    settings.make_policy()  # what is wrong with it is said before any file is read
    with named():
        documents_training.train(settings, arguments.out, print)
    print(f"model: {arguments.out}/model.keras")


def add_arguments(parser: argparse._ArgumentGroup) -> None:
    """The options that `lemn evaluate` and `lemn compare` have for documents."""
    parser.add_argument("--qa", metavar="F", help="question file in TriviaQA's format")
    parser.add_argument("--evidence", metavar="DIR", help="folder of its documents")
    add_minilm(parser)


def check(arguments: argparse.Namespace, run: str) -> None:
    """Raises unless the run reads documents, and its documents and questions exist."""
    if arguments.evidence is None or arguments.qa is None:
        raise ValueError("questions about documents need both --qa F and --evidence DIR")
    if not runs.check_reader(run).documents:
        raise ValueError(f"--qa: meant for readers of documents, and {run} is not one")
    there(arguments.qa)
    folders(arguments.evidence)


def add_holding(parser: argparse._ArgumentGroup) -> None:
    """The option of `lemn evaluate` that asks the reader by itself."""
    drawn = "answer from N slots drawn at random, one of which holds the answer, not a policy's"
    parser.add_argument("--holding", action="store_true", help=drawn)


def run_evaluate(arguments: argparse.Namespace, model: StreamReader) -> None:
    """Answers the questions of a file and prints the official scores."""
    from lemn_tf.evaluation import with_rule
    from lemn_tf.experiments import documents_scoring as scoring
    from lemn_tf.files import write_atomically

    if arguments.policy:
        model = with_rule(model, arguments.policy)
    with named():
        result = scoring.score(
            model,
            arguments.qa,
            arguments.evidence,
            arguments.slots,
            context=store(arguments),
            holding=arguments.holding,
        )
    if arguments.predictions:
        text = json.dumps(result.predictions, ensure_ascii=False, indent=1)
        write_atomically(arguments.predictions, text)
    told = {**result.told, "by_document": result.by_document}
    print(json.dumps(told) if arguments.json else sentence(result.told))


def sentence(told: dict) -> str:
    """A score in words."""
    aware = ", which knows the question," if told["question_aware"] else ""
    text = f"{told['policy']}{aware} with {told['slots']} slots on {told['data']}: "
    if "exact_match" not in told:
        return (
            text + f"{told['questions']:,} questions answered; the file has no answers to mark by"
        )
    held = told["held"]
    text += (
        f"exact match {told['exact_match']:.1f}, F1 {told['f1']:.1f}, an answer in memory for "
        f"{told['answer_in_memory']:.1f}% of {told['questions']:,} questions"
    )
    if held["questions"]:
        text += (
            f"; of the {held['questions']:,} whose document holds one, exact match "
            f"{held['exact_match']:.1f}, F1 {held['f1']:.1f}, in memory "
            f"{held['answer_in_memory']:.1f}%"
        )
    if told["missing_documents"]:
        text += f"; {told['missing_documents']:,} documents are missing"
    return text


def add_reproduce_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `lemn reproduce documents`."""
    add = parser.add_argument
    add("run", metavar="RUN", help="a trained run or preset, whose reader is used throughout")
    sets = "sets, each with qa/wikipedia-{train,dev}.json and evidence/"
    add("--sets", nargs="+", required=True, metavar="DIR", help=sets)
    add("--seeds", type=whole_number(1), default=3, help="trainings of each learned policy")
    only = "run only cells whose name has one of these in it, e.g. squad-stream-10-st,aware"
    add("--only", type=words, metavar="PARTS", help=only)
    add_minilm(parser)
    add("--results", default="results", metavar="DIR", help="for the tables")


def check_reproduce(arguments: argparse.Namespace) -> None:
    """Raises unless the run answers questions about documents and the sets exist."""
    if not runs.check_reader(arguments.run).documents:
        raise ValueError(f"{arguments.run} does not read documents: expected a model that does")
    for one in arguments.sets:
        there(*(Path(one) / "qa" / f"wikipedia-{side}.json" for side in ("train", "dev")))
        folders(Path(one) / "evidence")


def run_reproduce(arguments: argparse.Namespace) -> None:
    """Runs the cells of the table that have no result yet, and writes it."""
    from lemn_tf.experiments import documents_report

    asked = (arguments.sets, arguments.results, arguments.seeds, print, arguments.only)
    path = documents_report.reproduce(arguments.run, *asked, arguments.minilm)
    print(f"wrote {path}")


def add_triviaqa_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `lemn reproduce triviaqa`."""
    add = parser.add_argument
    add("--qa", required=True, metavar="DIR", help="folder of the official question files")
    add("--evidence", required=True, metavar="DIR", help="folder of the documents")
    add("--embeddings", required=True, metavar="F", help="word vectors, as for lemn train")
    add("--limit", type=whole_number(1), help="take at most this many word vectors")
    rows = "policies, e.g. fifo,overlap,st-lemn,st-lemn-aware (default: all)"
    add("--rows", type=words, metavar="NAMES", help=rows)
    add("--recipe", choices=("lemn", "paper"), default="lemn", help="ours, or the paper's")
    add("--slots", type=slot_count, default=10, help="N in the paper")
    add("--updates", type=whole_number(1), default=20_000, help="of the reader, 32 questions each")
    add("--epochs", type=whole_number(1), default=3, help="of each policy, over all documents")
    add("--cache", metavar="DIR", help="folder to keep encoded documents in (TFRecord)")
    add("--seed", type=whole_number(0), default=0, help="of everything random")
    add("--out", default="runs/triviaqa", metavar="DIR", help="for the runs")
    add("--results", default="results", metavar="DIR", help="for the table")


def check_triviaqa(arguments: argparse.Namespace) -> None:
    """Raises unless the rows are those of policies, and everything to read is there."""
    for row in arguments.rows or ():
        usable(row.removesuffix("-aware"), documents=True)
    folders(arguments.qa, arguments.evidence)
    there(Path(arguments.qa) / "wikipedia-train.json", arguments.embeddings)


def run_triviaqa(arguments: argparse.Namespace) -> None:
    """Trains and scores the paper's rows on the official files."""
    from lemn_tf.experiments import triviaqa_table as table
    from lemn_tf.experiments.documents import Settings

    qa, evidence = Path(arguments.qa), Path(arguments.evidence)
    files = {"qa": (str(qa / table.TRAIN),), "evidence": (arguments.evidence,)}
    base = Settings(**given(arguments, Settings) | files)
    plan = table.Plan(qa, evidence, base, tuple(arguments.rows or table.ROWS))
    with named():
        path = table.reproduce(plan, arguments.out, arguments.results, print)
    print(f"wrote {path}")


def run_compare(arguments: argparse.Namespace) -> None:
    """Rules and runs side by side, each compared with the first run."""
    from rich.console import Console

    from lemn_tf.evaluation import with_rule
    from lemn_tf.experiments import documents_scoring as scoring
    from lemn_tf.experiments.documents_table import RULES

    models = {name: runs.load_reader(name) for name in arguments.runs}
    first = next(iter(models.values()))
    for name in arguments.policies or RULES:
        models.setdefault(name, with_rule(first, name))
    rows = []
    for slots in arguments.slots or [first.memory.slots]:
        base = None
        for name, model in models.items():
            with named():
                result = scoring.score(
                    model, arguments.qa, arguments.evidence, slots, context=store(arguments)
                )
            if result.marks is None:
                raise ValueError(f"{arguments.qa}: expected answers to compare by, found none")
            base = base or result.marks
            ahead = {
                field: scoring.bootstrap(
                    getattr(base, field), getattr(result.marks, field), base.document
                )
                for field in ("exact", "in_memory")
            }
            rows.append({"name": name, **result.told, "first_ahead": ahead})
    if arguments.json:
        print(json.dumps(rows))
        return
    Console().print(table(rows, f"{arguments.qa}: how far the first run is ahead"))


def table(rows: list[dict], title: str) -> Table:
    """A table of results, one row each; intervals are a bootstrap over documents."""
    from rich.table import Table

    shown = Table(title=title)
    columns = ("model", "policy", "slots", "EM", "F1", "in memory %", "EM ahead", "in memory ahead")
    for column in columns:
        left = column in ("model", "policy")
        shown.add_column(column, justify="left" if left else "right", overflow="fold")
    for row in rows:
        numbers = [f"{row[name]:.1f}" for name in ("exact_match", "f1", "answer_in_memory")]
        ahead = [
            "{:+.1f} [{:.1f}, {:.1f}]".format(*row["first_ahead"][name])
            for name in ("exact", "in_memory")
        ]
        shown.add_row(row["name"], row["policy"], str(row["slots"]), *numbers, *ahead)
    return shown
