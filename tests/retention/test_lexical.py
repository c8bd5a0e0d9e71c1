"""Rules for streams of words, each against what its name says, on streams written by hand."""

import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import EpisodicMemory, memory, retention
from lemn_tf.model import StreamReader
from lemn_tf.readers import MemN2N


def stream(*slots: list[tuple[int, bool, float]]) -> tf.Tensor:
    """One stream: each slot a list of (stem, salient, idf), padded to three words."""
    rows = np.zeros([1, len(slots), 3, 3], np.float32)
    for t, words in enumerate(slots):
        for k, word in enumerate(words):
            rows[0, t, k] = word
    return tf.constant(rows.reshape([1, len(slots), 9]))


def kept(policy, items, slots=2) -> list[int]:
    state, _ = EpisodicMemory(slots, policy)(items)
    return sorted(state.ids[0].numpy().tolist())


PLAIN, NAME, OTHER = (1, False, 0.0), (2, True, 2.0), (3, True, 2.0)


def test_salient_keeps_the_most_capitals_and_digits():
    items = stream([PLAIN], [NAME, OTHER], [NAME], [PLAIN, PLAIN], [OTHER, NAME, (4, True, 1.0)])
    assert kept("salient", items) == [1, 4]
    assert kept("salient", stream([NAME], [NAME], [NAME])) == [1, 2]  # of equals the older goes


def test_salient_first_keeps_none_that_came_later():
    policy = retention.get("salient-first", first=3)
    items = stream([PLAIN], [NAME], [PLAIN], [NAME, OTHER], [NAME, OTHER, (4, True, 1.0)])
    assert kept(policy, items) == [1, 2]
    assert retention.get("salient-first").first == 20


def test_distinct_salient_counts_a_name_once():
    """The two slots with both names are worth nothing beside each other; a new name is."""
    items = stream([NAME, OTHER], [NAME, OTHER], [(5, True, 1.0)])
    assert kept("salient", items) == [0, 1]
    assert kept("distinct-salient", items) == [1, 2]


def test_novelty_remembers_stems_that_left_memory():
    first, again = [(7, False, 2.0), (8, False, 2.0)], [(8, False, 2.0), (7, False, 2.0)]
    new, half = [(9, False, 2.0), (10, False, 2.0)], [(11, False, 2.0), PLAIN]
    items = stream(half, first, new, again, [(12, False, 2.0)])
    assert kept("novelty", items) == [2, 4]
    # `first` has gone by then, and still `again` is nothing new.
    assert kept("novelty", items[:, :4], slots=1) == [2]


def test_novelty_does_not_count_common_words():
    items = stream([(7, False, 0.5), (8, False, 0.5)], [(9, False, 2.0), PLAIN], [PLAIN])
    assert kept("novelty", items) == [1, 2]
    assert kept(retention.get("novelty", rare=0.1), items) == [0, 1]


def test_overlap_goes_by_the_last_number_and_knows_the_question():
    policy = retention.get("overlap")
    assert policy.question_aware
    items = tf.constant([[[9.0, 0.1], [0.0, 0.7], [5.0, 0.2], [1.0, 0.5]]])
    assert kept(policy, items) == [1, 3]
    with pytest.raises(ValueError, match="question_aware=True"):
        retention.get("overlap", question_aware=False)


def test_they_need_a_reader_of_words():
    for name, told in (("salient", "reader of words"), ("overlap", "does not show questions")):
        with pytest.raises(ValueError, match=told):
            StreamReader(MemN2N(9, sentence_length=4), 3, name)
    with pytest.raises(ValueError, match=r"3 L"):
        EpisodicMemory(2, "salient")(tf.zeros([1, 3, 4]))


def test_the_state_of_novelty_can_be_saved():
    layer = EpisodicMemory(2, "novelty")
    state, _ = layer(stream([NAME], [OTHER], [PLAIN]))
    flat = memory.to_flat(state)
    assert {name for name in flat if "seen" in name}
