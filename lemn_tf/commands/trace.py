"""`lemn trace`: what a memory did with a stream, decision by decision.

lemn trace RUN --data F --episode 3 --out trace.jsonl
lemn trace RUN --data F --episode 3 --why 17
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from lemn_tf import runs
from lemn_tf.commands import world
from lemn_tf.commands.common import figure_for, folders, stories, there, whole_number, whole_numbers
from lemn_tf.commands.documents import add_minilm
from lemn_tf.files import room_for
from lemn_tf.pipelines import documents
from lemn_tf.pipelines.story_files import read_stories
from lemn_tf.seeing.amounts import EPISODES, KINDS, LENGTHS, MAPS


class Trace:
    """Writes a trace, or says why an item left."""

    name = "trace"
    help = "write what a memory kept and dropped, decision by decision, or say why"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run", metavar="RUN", help="folder of a run, model file, or preset")
        add_data_arguments(parser)
        number = "which episode, from 0 (default all of them)"
        parser.add_argument("--episode", type=whole_number(0), metavar="K", help=number)
        parser.add_argument("--out", metavar="F", help="file to write, JSON lines")
        lines = "draw the life-lines of the items of one episode, .svg or .png"
        parser.add_argument("--figure", metavar="F", help=lines)
        asked = "say what happened to this item, and why"
        parser.add_argument("--why", type=whole_number(0), metavar="ITEM", help=asked)

    def check(self, arguments: argparse.Namespace) -> None:
        """Raises if no output was asked for, or the run, data or output folder is missing."""
        if arguments.out is None and arguments.why is None and arguments.figure is None:
            raise ValueError("say what to make: --out F, --figure F, or --why ITEM")
        check_shown([arguments.run], arguments, arguments.out)
        figure_for(arguments.figure)
        known, episode, item = lengths_in(arguments), arguments.episode or 0, arguments.why
        if known is None:
            return
        if episode >= len(known):
            raise ValueError(f"expected an episode 0 to {len(known) - 1}, got {episode}")
        items = known[episode]
        if items is not None and item is not None and item >= items:
            raise ValueError(f"no item {item}: expected one from 0 to {items - 1}")

    def run(self, arguments: argparse.Namespace) -> None:
        from lemn_tf.seeing import figures, files

        subject = subject_of(arguments.run, arguments)
        episode = arguments.episode
        if episode is None and arguments.why is None and arguments.figure is None:
            with files.writing(arguments.out, subject.about()) as writer:
                for text in subject.lines():
                    writer.write_lines(text)
            print(f"wrote {arguments.out}: {subject.count:,} episodes")
            return
        if (episode or 0) >= subject.count:
            raise ValueError(f"expected an episode 0 to {subject.count - 1}, got {episode}")
        trace = subject.traces([episode or 0])[0]
        if arguments.why is not None:
            print(trace.why(arguments.why))
        if arguments.figure is not None:
            figures.write(figures.life_lines(trace), arguments.figure)
            print(f"wrote {arguments.figure}")
        if arguments.out is not None:
            print(f"wrote {arguments.out}: {files.save(trace, arguments.out):,} lines")


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options for data that `lemn trace` and `lemn report` share."""
    what = "stories; questions about documents; maps of mazes; .npz of x and y for your own model"
    parser.add_argument("--data", metavar="F", help=what)
    parser.add_argument("--evidence", metavar="DIR", help="folder of the documents")
    lengths = "I-Mazes to play without --data, such as 5,9 (maze agents)"
    parser.add_argument("--lengths", type=whole_numbers(3), help=lengths)
    add_minilm(parser)


def check_shown(names: Sequence[str], arguments: argparse.Namespace, *made: str | None) -> None:
    """Raises unless the runs, their data or worlds, and the folders for the outputs exist."""
    for run in names:
        found = runs.about(run)
        if found.cls == "MemoryAgent":
            check_world(run, arguments)
        elif found.cls != "Navigator" and arguments.data is None:
            raise ValueError(f"say which data to show {run} with: --data F")
        if arguments.minilm is not None and arguments.evidence is None:
            raise ValueError("--minilm: for models of documents, shown with --data and --evidence")
        if found.cls != "Navigator" and arguments.lengths is not None:
            raise ValueError(f"lengths are for maze agents, and {run} is not one")
        if found.documents and arguments.evidence is None:
            raise ValueError(f"{run} reads documents: say where they are with --evidence DIR")
        if found.cls == "StreamReader" and not found.documents:
            stories(arguments.data)
    there(arguments.data)
    folders(arguments.evidence)
    room_for(*made)


def check_world(run: str, arguments: argparse.Namespace) -> None:
    """Raises unless it is known which Gymnasium world an agent is to be shown in."""
    made = runs.config(run)
    if arguments.data is not None:
        raise ValueError(f"--data: {run} acts in {made.get('env', 'a world')}, and needs no file")
    if "env" not in made:
        raise ValueError(f"{run} does not say its world: expected the folder of its run")
    world.check_modules(made["modules"])
    if not made["modules"]:
        world.check_world(made["env"])


def lengths_in(arguments: argparse.Namespace) -> Sequence[int | None] | None:
    """The number of items of each episode, as far as the data says it without TensorFlow."""
    found = runs.about(arguments.run)
    if found.cls == "Navigator" and arguments.data is not None:
        from lemn_tf.mazes import load_jsonl  # needs an extra

        return [None] * 4 * len(load_jsonl(arguments.data))
    if found.cls == "Navigator":  # in two I-Mazes of each length, or in random ones; four headings
        imazes = arguments.lengths or (LENGTHS if found.world == "imaze" else ())
        return [None] * 4 * (2 * len(imazes) or KINDS * MAPS)
    if found.cls == "MemoryAgent":
        return [None] * EPISODES
    if found.documents:
        return [None] * len(documents.read(arguments.data, arguments.evidence))
    if found.cls != "StreamReader":
        return None
    stored = runs.config(arguments.run).get("store_questions", False)
    told = read_stories(arguments.data)
    return [len(story.facts) + stored * len(story.questions) for story in told]


def subject_of(run: str, arguments: argparse.Namespace):
    """The run with the data that the options name."""
    from lemn_tf.seeing import find

    given = (arguments.data, arguments.evidence, arguments.lengths)
    return find(run, *given, minilm=arguments.minilm)
