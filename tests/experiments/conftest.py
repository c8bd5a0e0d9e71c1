"""Small files of stories and documents, recipes with small batches, and small word vectors."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from lemn_tf import recipes, retention
from lemn_tf.experiments.documents_words import ARRIVAL
from lemn_tf.model import StreamReader
from lemn_tf.pipelines import babi as pipeline
from lemn_tf.pipelines import babi_generator, tokens
from lemn_tf.pipelines.embeddings import Words, read_vectors
from lemn_tf.readers import LiteReader
from lemn_tf.wordlist import WordList

COLOURS = ("red", "green", "blue", "white", "black", "brown")
FILLER = (
    *("the", "old", "people", "there", "say", "that", "nothing", "ever"),
    *("happens", "and", "every", "day", "is", "long", "but", "quiet"),
)


def paragraphs(sentences: list[str], size: int = 5) -> str:
    """Sentences as a text with an empty line after every few."""
    parts = [" ".join(sentences[k : k + size]) for k in range(0, len(sentences), size)]
    return "\n\n".join(parts)


def corpus(folder: Path, documents: int = 6, facts: int = 6, seed: int = 0) -> SimpleNamespace:
    """Documents of facts among filler; each fact is asked about."""
    random = np.random.default_rng(seed)
    (folder / "evidence" / "wikipedia").mkdir(parents=True)
    data = []
    for d in range(documents):
        sentences = []
        for k in range(facts):
            town, colour = f"Town{d}x{k}", COLOURS[random.integers(len(COLOURS))]
            sentences.append(f"The gate of {town} is {colour} .")
            sentences.append(" ".join(random.permutation(FILLER)[: random.integers(8, 14)]) + ".")
            data.append(
                {
                    "Question": f"What colour is the gate of {town}?",
                    "QuestionId": f"q{d}_{k}",
                    "Answer": {
                        "Value": colour,
                        "Aliases": [colour],
                        "NormalizedAliases": [colour],
                    },
                    "EntityPages": [{"Filename": f"doc{d}.txt"}],
                    "SearchResults": [],
                }
            )
        (folder / "evidence" / "wikipedia" / f"doc{d}.txt").write_text(paragraphs(sentences))
    qa = folder / "qa.json"
    qa.write_text(json.dumps({"Data": data, "Domain": "Wikipedia", "VerifiedEval": False}))
    known = sorted({*COLOURS, *FILLER, "the", "gate", "of", "is", "what", "colour"})
    lines = [" ".join([word, *(f"{x:.3f}" for x in random.normal(size=8))]) for word in known]
    (folder / "vectors.txt").write_text("\n".join(lines) + "\n")
    return SimpleNamespace(
        qa=str(qa), evidence=str(folder / "evidence"), vectors=str(folder / "vectors.txt")
    )


def span_model(
    towns: SimpleNamespace, policy: str = "st-lemn", sentence: int = 0, **options
) -> StreamReader:
    """An untrained model over slots of 6 words, which has views of every kind.

    Args:
        towns: what `corpus` made.
        policy: its name.
        sentence: the width of vectors of slots that it sees too; 0 for none.
        options: of the policy.
    """
    keras.utils.set_random_seed(1)
    vectors = read_vectors(towns.vectors)
    words = Words(vectors.vocabulary, buckets=8)
    view = ("hand", "words", "slot", "states", *(["sentence"] if sentence else []))
    more = {"slot": ARRIVAL, "sentence": sentence, "products": 2}
    more["before"] = options.get("question_aware", False)
    reader = LiteReader(words.size, 8, 6, longest=3, units=4, view=view, **more)
    reader.set_table(vectors.table(words))
    known = WordList(words.vocabulary, words.buckets)
    known.set_idf(np.random.default_rng(0).random(tokens.IDF))
    return StreamReader(reader, 3, retention.get(policy, **options), known)


@pytest.fixture(scope="session")
def towns(tmp_path_factory) -> SimpleNamespace:
    return corpus(tmp_path_factory.mktemp("towns"))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    paths = {}
    for number, split in enumerate(("train", "valid", "test")):
        paths[split] = folder / f"noisy_{split}.txt"
        pipeline.write_stories(babi_generator.generate("noisy", 8, seed=number), paths[split])
    return paths


@pytest.fixture
def small_batches(monkeypatch):
    """Recipes with batches of 4: the number of an update's stories is not the point here."""
    small = {
        name: tuple(dataclasses.replace(phase, batch_size=4) for phase in phases)
        for name, phases in recipes.RECIPES.items()
    }
    monkeypatch.setattr(recipes, "RECIPES", small)
