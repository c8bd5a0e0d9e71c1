"""`lemn data`: make or fetch data."""

from __future__ import annotations

import argparse

from lemn_tf.commands import data_documents, maze
from lemn_tf.commands.common import VARIANTS, there, whole_number
from lemn_tf.files import place_for


class Data:
    """Makes stories in bAbI's text format, or fetches the official ones."""

    name = "data"
    help = "make or fetch data: bAbI streams, documents with questions, maps of mazes"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        kinds = parser.add_subparsers(dest="kind", metavar="kind", required=True)
        babi = kinds.add_parser(
            "babi", help="two-supporting-facts streams", description=self.__doc__
        )
        babi.add_argument("--variant", choices=VARIANTS, default="noisy", help="which stories")
        babi.add_argument(
            "--episodes", type=whole_number(10), default=2000, help="stories in all splits together"
        )
        babi.add_argument("--seed", type=whole_number(0), default=1, help="of the stories")
        babi.add_argument("--out", required=True, metavar="DIR", help="folder for the files")
        babi.add_argument(
            "--download", action="store_true", help="fetch the official archive into DIR instead"
        )
        data_documents.add_arguments(kinds)
        maze.add_data_arguments(kinds.add_parser("maze", help="maps of mazes"))

    def check(self, arguments: argparse.Namespace) -> None:
        """Raises if options do not go together, or there is no place for the output."""
        if arguments.kind == "maze":
            maze.check_data(arguments)
            return
        if arguments.kind == "squad":
            there(arguments.file)
        place_for(arguments.out)

    def run(self, arguments: argparse.Namespace) -> None:
        if arguments.kind == "maze":
            maze.run_data(arguments)
            return
        if arguments.kind != "babi":
            data_documents.run(arguments)
            return
        from lemn_tf.pipelines import archives, babi, babi_generator

        if arguments.download:
            print(archives.download(archives.BABI, arguments.out))
            return
        files = babi_generator.write_splits(
            arguments.variant, arguments.episodes, arguments.seed, arguments.out
        )
        for path in files.values():
            stories = babi.read_stories(path)
            questions = sum(len(story.questions) for story in stories)
            print(f"{path}: {len(stories):,} stories, {questions:,} questions")
