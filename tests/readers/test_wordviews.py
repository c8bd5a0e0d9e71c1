"""What policies see of slots of words, and of the question beside them."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import retention
from lemn_tf.episode import by_question
from lemn_tf.model import StreamReader
from lemn_tf.readers import LiteReader, words
from lemn_tf.readers.wordviews import overlap


@pytest.fixture
def reader(monkeypatch) -> LiteReader:
    monkeypatch.setattr(words, "QUESTION", 4)
    keras.utils.set_random_seed(0)
    return LiteReader(20, width=5, words=6, longest=3, units=4, kinds=(5, 7, 4))


def test_lexical_has_stem_salience_and_idf(reader, documents):
    items = documents["items"]
    seen = reader.lexical()(items).numpy().reshape([3, 7, 6, 3])
    live = items["words"].numpy() > 0
    np.testing.assert_array_equal(seen[..., 0], np.where(live, items["stem"].numpy() + 1, 0))
    np.testing.assert_array_equal(seen[..., 1] > 0, live)  # all features are above 0 here
    np.testing.assert_array_equal(seen[..., 2], items["idf"])


def test_a_question_aware_policy_sees_what_the_reader_makes_of_each_slot(reader, documents):
    episode = by_question(documents)
    assert episode["items"]["asked"]["words"].shape == [6, 7, 4]
    seen = reader.aware()(episode["items"]).numpy()
    query, codes = reader.ask(documents["questions"]), reader.encode(documents["items"])
    _, total, scores = reader.evidence(query, codes, documents["answers"])
    best = tf.reduce_max(scores, axis=[-2, -1])
    np.testing.assert_allclose(seen[..., -3], tf.reshape(best, [6, 7]), atol=1e-4)
    np.testing.assert_allclose(seen[..., -2], tf.reshape(total, [6, 7]), atol=1e-4)
    np.testing.assert_allclose(
        seen[..., :-3], np.repeat(reader.vectors(codes), 2, axis=0), atol=1e-5
    )


def test_a_question_aware_policy_may_see_what_the_slot_before_shares(reader, documents):
    made = type(reader).from_config({**reader.get_config(), "before": True})
    stems = documents["items"]["stem"]
    items = {**documents["items"], "before": tf.pad(stems, [[0, 0], [1, 0], [0, 0]])[:, :-1]}
    seen = made.aware()(by_question({**documents, "items": items})["items"]).numpy()
    assert seen.shape[-1] == made.vectors(made.encode(items)).shape[-1] + 4
    np.testing.assert_allclose(seen[:, 1:, -2], seen[:, :-1, -1])
    assert not seen[:, 0, -2].any()
    assert seen[..., -1].any()


def test_overlap_keeps_the_slots_that_share_the_questions_words(reader, documents):
    model = StreamReader(reader, slots=2, policy="overlap")
    episode = by_question(documents)
    _, kept = model.act(episode)
    items, asked = documents["items"], documents["questions"]
    slots = {"stem": items["stem"][:, None]}
    shared = overlap(slots, {name: leaf[:, :, None] for name, leaf in asked.items()}).numpy()
    lengths = documents["length"].numpy()
    for row in range(6):
        if episode["ask_at"][row, 0] < 0:
            continue
        worth = shared[row // 2, row % 2, : lengths[row // 2]]
        ids = kept[row, 0].numpy()
        assert worth[ids].min() >= np.delete(worth, ids).max() - 1e-3


@pytest.mark.parametrize("policy", ["im-lemn", "s-lemn"])
def test_learned_policies_can_know_the_question(reader, documents, policy):
    aware = retention.get(policy, question_aware=True)
    model = StreamReader(reader, slots=2, policy=aware)
    episode = by_question(documents)
    assert model(episode).shape[:2] == [6, 1]
    with pytest.raises(ValueError, match="asked"):
        model.act(documents)
    blind = model.with_policy("fifo")
    assert blind(documents).shape[:2] == [3, 2]


def test_a_model_with_an_aware_policy_is_saved(reader, documents, tmp_path):
    model = StreamReader(reader, slots=2, policy=retention.get("s-lemn", question_aware=True))
    episode = by_question(documents)
    before = model(episode)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    np.testing.assert_allclose(loaded(episode), before, atol=1e-5)


def test_by_question_needs_items_that_are_a_dict():
    with pytest.raises(TypeError, match="dict"):
        by_question({"items": tf.zeros([1, 2, 3]), "ask_at": tf.zeros([1, 1], tf.int32)})
