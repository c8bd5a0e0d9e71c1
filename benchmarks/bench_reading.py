"""Questions a second: training the lite reader, and answering over ten slots of FIFO-LEMN.

The documents are those of `bench_documents.py`: made up, 40 slots, 8 questions each.
`python benchmarks/bench_reading.py [UPDATES]` (default 50). Loading is left out, and of training
the compilation too; evaluation is all that `lemn evaluate` does from texts to answers. Processor
seconds are shown too: they say what is possible when other programs use the same processors.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench_documents import DOCUMENTS, QUESTIONS, make

from lemn_tf.experiments.documents_reader import SLOTS, SpanTrainer, optimizer, with_memories
from lemn_tf.experiments.documents_reading import Reading
from lemn_tf.loop import hold_memory
from lemn_tf.model import StreamReader
from lemn_tf.pipelines import spans
from lemn_tf.readers import LiteReader
from lemn_tf.wordlist import WordList


def show(name: str, questions: int, work: Callable[[], object], wanted: int) -> None:
    """Prints how many questions a second the work is."""
    begin, used = time.perf_counter(), time.process_time()
    work()
    rate = questions / (time.perf_counter() - begin)
    own = questions / (time.process_time() - used)
    print(f"{name:<24} {rate:8,.0f} questions/s {own:8,.0f} per processor second; aim {wanted:,}")


def main(updates: int = 50) -> None:
    hold_memory()  # as training does
    with tempfile.TemporaryDirectory() as folder:
        collection, words = make(Path(folder))
        idf = spans.count_idf(collection, words)
        collection, counts = spans.select(collection, words)
        reader = LiteReader(words.size, 100)
        trainer = SpanTrainer(reader)
        trainer.compile(optimizer(2e-3, 10_000), jit_compile=True)
        data = spans.dataset(
            collection, words, 4, idf=idf, shuffle_seed=0, repeat=True, drop_remainder=True
        )
        data = with_memories(data, SLOTS, 0.0, 0)

        def train(steps: int) -> None:
            trainer.fit(data, steps_per_epoch=steps, shuffle=False, verbose=0)

        train(2)
        share = counts["kept"] / (DOCUMENTS * QUESTIONS)
        asked = round(updates * 4 * QUESTIONS * share)
        show("training", asked, lambda: train(updates), 300)
        known = WordList(words.vocabulary, words.buckets)
        known.set_idf(idf)
        model = StreamReader(reader, 10, "fifo", known)
        Reading(model, collection).answer(model)
        show("evaluation", counts["kept"], lambda: Reading(model, collection).answer(model), 1_000)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
