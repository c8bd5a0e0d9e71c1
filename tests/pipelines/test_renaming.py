"""Renamed stories are true stories: names move together, and nothing else moves."""

import numpy as np
import pytest

from lemn_tf.pipelines import babi, babi_generator
from lemn_tf.pipelines.renaming import groups_of, renamed
from lemn_tf.pipelines.roles import find_roles
from lemn_tf.text import Vocabulary


@pytest.fixture(scope="module")
def data():
    stories = babi_generator.generate("original", 40, seed=3)
    words = Vocabulary.from_texts(babi.texts(stories), babi.answers(stories))
    groups = groups_of(["", "", *words.words], find_roles(stories))
    return words, groups, babi.dataset(babi.encode(stories, words), 8, buckets=1)


def test_every_story_keeps_its_shape_and_its_truth(data):
    words, groups, plain = data
    assert [len(group) for group in groups] == [3, 6, 4]
    role = {i: n for n, group in enumerate(groups) for i in group}
    changed = 0
    for before, after in zip(plain, renamed(plain, groups, words.size, seed=1), strict=True):
        for key in ("length", "ask_at", "support"):
            assert (before[key].numpy() == after[key].numpy()).all()
        for story in range(len(before["length"])):
            names: dict[int, int] = {}
            for key in ("items", "questions", "answers"):
                old, new = before[key][story].numpy().ravel(), after[key][story].numpy().ravel()
                for a, b in zip(old.tolist(), new.tolist(), strict=True):
                    assert names.setdefault(a, b) == b, "a word has one new name in a story"
                    assert role.get(a, a) == role.get(b, b), "within its role, or unchanged"
                    changed += a != b
            assert len(set(names.values())) == len(names), "no two words share a name"
    assert changed > 100


def test_a_batch_is_renamed_by_its_number(data):
    words, groups, plain = data
    whole = list(renamed(plain, groups, words.size, seed=1))
    rest = list(renamed(plain.skip(2), groups, words.size, seed=1, start=2))
    other = list(renamed(plain, groups, words.size, seed=2))
    for a, b in zip(whole[2:], rest, strict=True):
        assert np.array_equal(a["items"], b["items"])
    assert not np.array_equal(whole[0]["items"], other[0]["items"])


def test_without_roles_nothing_happens(data):
    words, _, plain = data
    assert renamed(plain, [], words.size, seed=1) is plain
    assert groups_of(["cat", "mary"], [["mary", "john"]]) == []
