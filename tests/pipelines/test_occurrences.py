"""Finding answers by hash: compared with looking at every span."""

import random

import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.pipelines import occurrences, tokens
from lemn_tf.pipelines.answers import normalize
from lemn_tf.pipelines.occurrences import Aliases, Parts, find, fingerprint


@pytest.mark.parametrize(
    "pair",
    [
        ("AC/DC", "ac dc"),
        ("The Beatles", "beatles"),
        ("U.S.A.", "u s"),
        ("“O’Brien”", "“ o brien ”"),
        ("a\u00a0b", "b"),
        ("ÉCOLE normale", "école  normale"),
        ("averyveryverylongwordof30letters", "AVERYVERYVERYLONGWORDOF30LETTERS"),
    ],
)
def test_equal_normal_forms_have_one_fingerprint(pair):
    one, other = fingerprint(tf.constant(pair)).value.numpy()
    assert one == other


def test_different_ones_differ():
    texts = ["x y", "y x", "x", "y", "xy", "x x", "x y z", "averyveryverylongwordof30letters", "1"]
    prints = fingerprint(tf.constant(texts))
    assert len(set(prints.value.numpy())) == len(texts)
    assert prints.tokens.numpy().tolist() == [2, 2, 1, 1, 1, 2, 3, 1, 1]


def test_nothing_is_zero():
    prints = fingerprint(tf.constant(["", "the", "A.", "--"]))
    assert not prints.value.numpy().any()
    assert not prints.tokens.numpy().any()
    assert (prints.power.numpy() == 1).all()


def test_joining_is_appending():
    texts = ["red", "AC/DC x", "the", "", "O’Brien"]
    prints = fingerprint(tf.constant(texts))
    for i, left in enumerate(texts):
        for j, right in enumerate(texts):
            pick = [occurrences._take(prints, k) for k in (i, j)]
            both = fingerprint(tf.constant([f"{left} {right}"]))
            for got, expected in zip(occurrences._append(*pick), both, strict=True):
                assert got.numpy() == expected.numpy()[0]


def brute_force(documents, aliases, longest):
    """Every span whose text has the normal form of an alias and whose ends are fit."""
    found, at = [], 0
    for number, raw in enumerate(documents):
        before, word, after = (
            [part.decode() for part in each.numpy()] for each in tokens.strip(tf.constant(raw))
        )
        filled = [bool(normalize(each)) for each in word]
        for first in range(len(raw)):
            for more in range(min(longest, len(raw) - first)):
                last = first + more
                article = word[first].lower() in ("a", "an", "the")
                fit = filled[first] or (article and more and filled[first + 1])
                if not (fit and filled[last]):
                    continue
                text = " ".join(
                    (before[k] if k > first else "") + word[k] + (after[k] if k < last else "")
                    for k in range(first, last + 1)
                )
                found += [
                    (question, at + first, more)
                    for document, question, alias in aliases
                    if document == number and normalize(text) == alias
                ]
        at += len(raw)
    return sorted(found)


@pytest.mark.parametrize("seed", range(8))
def test_every_span_is_found_and_no_other(seed):
    draw = random.Random(seed)
    pool = ["the", "A", "x", "y.", "(z", "AC/DC,", "x's", "--", "Zoë", "the.", "y-x", "u.s."]
    documents = [draw.choices(pool, k=draw.randrange(1, 40)) for _ in range(3)]
    options = ["x", "y", "x y", "ac dc", "y x", "z", "zoë", "x s y", "u s", "u", "s", "x x y z"]
    aliases = [(draw.randrange(3), q, draw.choice(options)) for q in range(12)]
    flat = [word for document in documents for word in document]
    distinct, where = tf.unique(tf.constant(flat))
    prints = fingerprint(tf.constant([alias for *_, alias in aliases]))
    row = np.repeat(range(3), [len(document) for document in documents]).astype(np.int32)
    got = find(
        Parts(*tokens.strip(distinct)),
        where,
        tf.constant(row),
        Aliases(
            prints.first,
            prints.value,
            tf.constant([document for document, *_ in aliases]),
            tf.constant([question for _, question, _ in aliases]),
        ),
        longest=4,
    )
    got = list(zip(*(part.numpy().tolist() for part in got), strict=True))
    expected = brute_force(documents, aliases, 4)
    assert expected
    assert got == expected
