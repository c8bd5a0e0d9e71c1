"""Whatever is registered with Keras can be written down and made again from what was written."""

import importlib
import json
import pkgutil

import keras
import pytest

import lemn_tf
from lemn_tf import ActorCritic, EpisodicMemory, Hindsight, MemoryModel, retention
from lemn_tf.model import StreamReader
from lemn_tf.navigation.agent import MemoryAgent, RetentionView
from lemn_tf.navigation.navigator import Navigator
from lemn_tf.navigation.observations import ObservationEncoder
from lemn_tf.readers import FRMQN, LSTM, MQN, BiDAF, LiteReader, MemN2N, PolicyView, When
from lemn_tf.readers.mqn import FrameEncoder
from lemn_tf.readers.recurrent import BiGRU, BiLSTM
from lemn_tf.readers.wordviews import Aware, Lexical
from lemn_tf.text import Vocabulary
from lemn_tf.wordlist import WordList

TINY = {"units": 6, "size": (8, 8), "filters": (2, 3)}


def memn2n():
    return MemN2N(9, sentence_length=4, units=6, hops=2, max_slots=8)


def lite():
    return LiteReader(9, width=5, words=4, longest=2, units=3, kinds=(5, 7, 4), view=("words",))


def memory_model():
    stream = keras.Input((None, 4))
    state, _ = EpisodicMemory(3, "st-lemn", name="memory")(stream)
    pooled = keras.layers.GlobalAveragePooling1D()(state.entries)
    return MemoryModel(stream, keras.layers.Dense(2)(pooled), name="mine")


EXAMPLES = {
    "WordList": lambda: WordList(["the", "cat"], buckets=3, stems=5, slot_words=4),
    "SalientFirst": lambda: retention.get("salient-first", first=7),
    "Salient": lambda: retention.get("salient", first=7),
    "Overlap": lambda: retention.get("overlap"),
    "Novelty": lambda: retention.get("novelty", rare=2.0),
    "LiteReader": lite,
    "Lexical": lambda: Lexical(lite()),
    "DistinctSalient": lambda: retention.get("distinct-salient"),
    "BiLSTM": lambda: BiLSTM(5),
    "BiGRU": lambda: BiGRU(5),
    "BiDAF": lambda: BiDAF(9, width=5, words=4, units=3, char_units=2, view=("slot",), slot=2),
    "Aware": lambda: Aware(lite()),
    "ActorCritic": lambda: ActorCritic(discount=0.9, reward="probability", rollouts=2),
    "EpisodicMemory": lambda: EpisodicMemory(7, retention.get("s-lemn", hidden=3)),
    "FIFO": lambda: retention.get("fifo"),
    "FRMQN": lambda: FRMQN(6, 4, FrameEncoder((8, 8), (2, 3))),
    "FunctionalMemoryModel": memory_model,
    "Hindsight": lambda: Hindsight(discount=0.9, entropy=0.2, final_entropy=0.1),
    "FrameEncoder": lambda: FrameEncoder((8, 12), (2, 5)),
    "InputMatching": lambda: retention.InputMatching(retention.Similarity(5)),
    "LIFO": lambda: retention.get("lifo"),
    "LRU": lambda: retention.get("lru"),
    "LSTM": lambda: LSTM(6, 4, FrameEncoder((8, 8), (2, 3))),
    "MQN": lambda: MQN(6, 4, FrameEncoder((8, 8), (2, 3))),
    "Matching": lambda: memn2n().matching(),
    "MemN2N": memn2n,
    "MemoryAgent": lambda: MemoryAgent(
        ObservationEncoder({"kind": "vector", "shape": [3]}, 5), 2, "frmqn", 3, units=6, width=5
    ),
    "Navigator": lambda: Navigator("frmqn", 3, "st-lemn", width=5, hidden=2, **TINY),
    "ObservationEncoder": lambda: ObservationEncoder(
        {"kind": "image", "shape": [12, 9, 2], "scale": 255.0}, units=5, filters=2
    ),
    "Oracle": lambda: retention.get("oracle"),
    "PolicyView": lambda: PolicyView(memn2n()),
    "RetentionView": lambda: RetentionView(MQN(6, eyes=FrameEncoder((8, 8), (2, 3))), 5),
    "Similarity": lambda: retention.Similarity(5),
    "Spatial": lambda: retention.Spatial(units=6, hidden=3, shuffle=True),
    "SpatialEncoder": lambda: retention.SpatialEncoder(units=5),
    "SpatioTemporal": lambda: retention.SpatioTemporal(units=6, hidden=3),
    "StreamReader": lambda: StreamReader(memn2n(), 3, retention.get("st-lemn", hidden=2)),
    "Uniform": lambda: retention.get("uniform"),
    "Vocabulary": lambda: Vocabulary.from_texts(["Mary went home", "John left"], ["home"]),
    "When": lambda: When(4, exact=6),
}
"""One of each class, with settings that are not the defaults."""


def test_every_registered_class_is_here():
    for module in pkgutil.walk_packages(lemn_tf.__path__, "lemn_tf."):
        importlib.import_module(module.name)
    registered = [name for name in keras.saving.get_custom_objects() if name.startswith("lemn_tf>")]
    assert sorted(name.removeprefix("lemn_tf>") for name in registered) == sorted(EXAMPLES)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_a_configuration_says_everything(name):
    """It is plain JSON, it names every argument, and it gives the same thing again."""
    one = EXAMPLES[name]()
    config = one.get_config()
    written = json.dumps(config, sort_keys=True, default=tuple)
    again = type(one).from_config(json.loads(written))
    assert json.dumps(again.get_config(), sort_keys=True, default=tuple) == written
    asked = one.options() if isinstance(one, retention.RetentionPolicy) else ()
    assert set(asked) <= set(config)
    weights = [[w.shape for w in getattr(this, "weights", ())] for this in (one, again)]
    assert weights[0] == weights[1]
    by_keras = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(one))
    assert type(by_keras) is type(one)
