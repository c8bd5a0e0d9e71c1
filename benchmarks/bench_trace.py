"""What a trace costs: evaluating a file of stories, with a line for every decision and without.

    python benchmarks/bench_trace.py

Prints seconds of CPU for reading and answering all stories, and how much more a trace of everything
takes, in percent: of what `lemn evaluate` takes, and of what it takes once everything is compiled.
Then the memory that a trace of 100,000 items takes to write and ask.
"""

import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
import tensorflow as tf

import lemn_tf
from lemn_tf.experiments import babi
from lemn_tf.pipelines import babi as pipeline
from lemn_tf.pipelines import babi_generator
from lemn_tf.seeing import files
from lemn_tf.seeing.quickly import json_lines
from lemn_tf.seeing.recording import examine
from lemn_tf.seeing.subjects import TextSubject
from lemn_tf.seeing.trace import Step

STORIES, TIMES, LONG = 1000, 3, 100_000


def seconds(work) -> float:
    """The least CPU time of several runs, after one that compiles."""
    work()
    spent = []
    for _ in range(TIMES):
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    return min(spent)


def cost(folder: Path) -> None:
    """Evaluation with and without a trace."""
    path = folder / "stories.txt"
    pipeline.write_stories(babi_generator.generate("noisy", STORIES, seed=3), path)
    model = lemn_tf.load("babi-noisy-st-lemn-5")
    subject = TextSubject(model, path)
    look, outcome = examine(model), tf.function(model.outcome)
    subject._examine = lambda *_: look  # compiled once, as the evaluation is

    def evaluated():
        stories = babi.Stories(path, model.vocabulary)
        for batch in stories.batches(256, buckets=babi.BUCKETS):
            outcome(batch)

    def traced():
        subject.stories = babi.Stories(path, model.vocabulary)
        with files.writing(folder / "trace.jsonl", subject.about()) as writer:
            for text in subject.lines():
                writer.write_lines(text)

    began = time.process_time()
    babi.score(model, path)
    whole = time.process_time() - began
    without, with_trace = seconds(evaluated), seconds(traced)
    size = (folder / "trace.jsonl").stat().st_size / 1e6
    print(f"{STORIES:,} stories, {STORIES * 40:,} decisions, {size:.1f} MB of trace")
    more = with_trace - without
    print(f"`lemn evaluate`: {whole:.2f} s of CPU, {100 * more / whole:+.1f}% with a trace")
    print(f"once compiled: {without:.2f} s of CPU, {100 * more / without:+.1f}% with a trace")
    rows = np.arange(256)
    seen = look({name: array[rows] for name, array in subject.stories.arrays.items()})
    words = subject.words(seen, rows)
    each = seconds(lambda: json_lines(seen, words, rows.tolist())) / (256 * 45)
    print(f"a line takes {1e6 * each:.1f} microseconds")


def memory(folder: Path) -> None:
    """A trace as long as the stream: what it takes to write, and to ask why."""

    def lines():
        for t in range(LONG):
            ids = tuple(range(t - 5, t + 1)) if t >= 5 else (-1,) * (5 - t) + tuple(range(t + 1))
            yield Step(t, ids, (0.1, *[0.98] * 5), 0, 0.9, t >= 5, ids[1], f"item {t}")

    tracemalloc.start()
    files.save(lines(), folder / "long.jsonl")
    told = files.read(folder / "long.jsonl").why(LONG - 100)
    _, most = tracemalloc.get_traced_memory()
    print(f"a trace of {LONG:,} items, written and asked ({told[:30]}...): {most / 1e6:.1f} MB")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        cost(Path(name))
        memory(Path(name))
