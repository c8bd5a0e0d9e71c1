"""`lemn data triviaqa` and `lemn data squad`: documents with questions, fetched or converted."""

from __future__ import annotations

import argparse

from lemn_tf.commands.common import whole_number


def add_arguments(kinds) -> None:
    """Adds the parsers for both kinds of data to `kinds`, which `add_subparsers` returned."""
    about = "fetch the official TriviaQA files with their documents (2.7 GB)"
    triviaqa = kinds.add_parser("triviaqa", help=about, description=about)
    triviaqa.add_argument("--download", action="store_true", required=True, help="fetch them")
    triviaqa.add_argument("--out", required=True, metavar="DIR", help="folder for qa and evidence")
    about = "turn a file of SQuAD's format into TriviaQA's"
    squad = kinds.add_parser("squad", help=about, description=about)
    squad.add_argument("file", metavar="FILE", help="e.g. train-v1.1.json")
    squad.add_argument("--out", required=True, metavar="DIR", help="folder for qa and evidence")
    squad.add_argument("--split", help="train, dev or any name; default: by the file's name")
    squad.add_argument(
        "--words", type=whole_number(1), default=800, help="most words per document (default: 800)"
    )


def run(arguments: argparse.Namespace) -> None:
    """Runs `lemn data triviaqa` or `lemn data squad`."""
    from lemn_tf.pipelines import archives, squad

    if arguments.kind == "triviaqa":
        print(archives.download(archives.TRIVIAQA, arguments.out))
        return
    file, documents, questions, skipped = squad.convert(
        arguments.file, arguments.out, arguments.split, arguments.words
    )
    left = f", {skipped:,} left out because they have no answer" if skipped else ""
    print(f"{file}: {documents:,} documents, {questions:,} questions{left}")
