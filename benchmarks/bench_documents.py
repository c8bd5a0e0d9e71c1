"""Documents a second: 800 words each, with questions, from text files and from TFRecord files.

The documents are made up: words drawn by Zipf's law, with punctuation, numbers and capitals.
`python benchmarks/bench_documents.py [SECONDS]` (default 10 for each line). Processor seconds are
shown too: they say what is possible when other programs use the same processors.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from lemn_tf.pipelines import documents, records, spans
from lemn_tf.pipelines.embeddings import Words
from lemn_tf.pipelines.spans import Layout

DOCUMENTS, WORDS, QUESTIONS, VOCABULARY = 400, 800, 8, 50_000
WANTED = 2_000


def make(folder: Path) -> tuple[documents.Collection, Words]:
    """Writes made-up documents and questions."""
    draw = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlucmfwypvbgkqjxz"))
    known = [
        "".join(draw.choice(letters, size=2 + min(rank.bit_length(), 9)))
        for rank in range(VOCABULARY)
    ]
    (folder / "evidence").mkdir()
    data = []
    for number in range(DOCUMENTS):
        ranks = np.minimum(draw.zipf(1.25, WORDS) - 1, 4 * VOCABULARY)
        text = [known[r] if r < VOCABULARY else str(r) for r in ranks]
        for place in np.flatnonzero(draw.random(WORDS) < 0.12):
            text[place] = text[place].capitalize()
        for place in np.flatnonzero(draw.random(WORDS) < 0.1):
            text[place] += draw.choice([".", ",", ",", "'s", ")", ';"'])
        name = f"document_{number}.txt"
        (folder / "evidence" / name).write_text(" ".join(text))
        for question in range(QUESTIONS):
            place = int(draw.integers(WORDS - 3))
            answer = " ".join(text[place : place + 1 + question % 3])
            data.append(
                {
                    "Question": "what " + " ".join(draw.choice(text, 8)) + "?",
                    "QuestionId": f"q{number}_{question}",
                    "Answer": {"Aliases": [answer]},
                    "EntityPages": [{"Filename": name}],
                }
            )
    (folder / "qa.json").write_text(json.dumps({"Data": data}))
    return documents.read(folder / "qa.json", folder / "evidence"), Words(known)


def speed(name: str, data: tf.data.Dataset, seconds: float) -> float:
    """Prints and returns documents a second."""
    batches = iter(data)
    for _ in range(5):
        next(batches)
    count, begin, used = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - begin < seconds:
        count += int(next(batches)["length"].shape[0])
    rate = count / (time.perf_counter() - begin)
    own = count / (time.process_time() - used)
    print(f"{name:<34} {rate:8,.0f} documents/s {own:8,.0f} per processor second")
    return rate


def main(seconds: float = 10) -> None:
    with tempfile.TemporaryDirectory() as folder:
        collection, words = make(Path(folder))
        layout = Layout(max_words=WORDS, questions=QUESTIONS)
        options = {"shuffle_seed": 1, "repeat": True}
        texts = spans.dataset(collection, words, 32, layout, **options)
        rates = [speed("from text files", texts, seconds)]
        path = Path(folder) / "documents.tfrecord"
        begin = time.perf_counter()
        count = records.write(path, collection, words, layout)
        took = time.perf_counter() - begin
        size = path.stat().st_size / count / 1024
        rate = f"{count / took:8,.0f} documents/s, {size:.0f} KiB each"
        print(f"{'written to a TFRecord file':<34} {rate}")
        stored = records.read(path, words, 32, layout, **options)
        rates.append(speed("from a TFRecord file", stored, seconds))
    print(
        f"target: {WANTED:,} documents of {WORDS} words a second on two processors; best: "
        f"{max(rates):,.0f}"
    )


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
