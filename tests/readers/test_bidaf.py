"""BiDAF against the equations of the paper, written out in NumPy word by word."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.model import StreamReader
from lemn_tf.readers import BiDAF, Reader
from lemn_tf.readers.bidaf import attend

KINDS = {"kinds": (5, 7, 4), "words": 6}


@pytest.fixture
def reader() -> BiDAF:
    keras.utils.set_random_seed(0)
    made = BiDAF(20, width=5, units=3, char_units=2, **KINDS)
    random = np.random.default_rng(1)
    for weight in made.trainable_weights:
        weight.assign(random.normal(scale=0.4, size=weight.shape))
    return made


def sigma(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - np.max(x))
    return e / e.sum()


def lstm(layer, x):
    """Both directions over `[L, D]`, all words live."""
    outputs = []
    for way, order in ((0, range(len(x))), (1, reversed(range(len(x))))):
        kernel, recurrent, bias = (w.numpy()[way] for w in layer.weights)
        h = c = np.zeros(layer.units)
        states = [None] * len(x)
        for t in order:
            i, f, g, o = np.split(x[t] @ kernel + h @ recurrent + bias, 4)
            c = sigma(f + 1) * c + sigma(i) * np.tanh(g)
            h = states[t] = sigma(o) * np.tanh(c)
        outputs.append(np.array(states))
    return np.concatenate(outputs, axis=-1)


def attention_by_hand(h, u, w):
    """`[L, 8d]` of one slot and one question, word by word."""
    s = np.array([[w @ np.concatenate([a, b, a * b]) for b in u] for a in h])
    asked = np.array([softmax(row) @ u for row in s])
    from_slot = softmax(s.max(axis=1)) @ h
    return np.concatenate([h, asked, h * asked, h * from_slot], axis=-1)


def output_by_hand(reader, h, u):
    """log p1_i p2_j for slots `h` of the words' states, as {(slot, i, j): log p}."""
    w = reader.trilinear.numpy().reshape(-1)
    p0 = [attention_by_hand(slot, u, w) for slot in h]
    g1 = [lstm(reader.models[1], lstm(reader.models[0], x)) for x in p0]

    def dense(layer, x):
        return (x @ layer.kernel.numpy() + layer.bias.numpy())[:, 0]

    start = [dense(reader.first, np.concatenate(x, axis=-1)) for x in zip(g1, p0, strict=True)]
    p1 = softmax(np.concatenate(start))
    a1 = p1 @ np.concatenate(g1)
    end = []
    for p, g in zip(p0, g1, strict=True):
        wide = np.broadcast_to(a1, g.shape)
        g2 = lstm(reader.end_model, np.concatenate([p, g, wide, g * wide], axis=-1))
        end.append(dense(reader.last, np.concatenate([g2, p], axis=-1)))
    p2 = softmax(np.concatenate(end))
    edges = np.cumsum([0, *(len(slot) for slot in h)])
    found = {}
    for slot, (low, high) in enumerate(itertools.pairwise(edges)):
        for i in range(low, high):
            for j in range(i, high):
                found[slot, i - low, j - low] = np.log(p1[i]) + np.log(p2[j])
    return found


def test_attention(reader):
    random = np.random.default_rng(2)
    h, u = random.normal(size=[2, 4, 6]), random.normal(size=[3, 6])
    live = np.array([[True] * 4, [True, True, False, False]])
    told = np.array([True, True, False])
    found = attend(*(tf.constant(x, tf.float32) for x in (h, u)), reader.trilinear, live, told)
    w = reader.trilinear.numpy().reshape(-1)
    for slot, words in ((0, 4), (1, 2)):
        expected = attention_by_hand(h[slot, :words], u[:2], w)
        np.testing.assert_allclose(found[slot, :words], expected, rtol=1e-4, atol=1e-5)


def test_output(reader, documents):
    """Three slots of different lengths, one of them unused, and a question that ends early."""
    items = {name: leaf[0, :3] for name, leaf in documents["items"].items()}
    asked = {name: leaf[0, 0] for name, leaf in documents["questions"].items()}
    codes, query = reader.encode(items), reader.ask(asked)
    answer = reader.read(query, codes, tf.constant([4, -1, 9], tf.int64))
    text, question = reader.unpack(codes), reader.unpack_question(query)
    counts = tf.reduce_sum(tf.cast(text.live, tf.int32), axis=-1).numpy()
    assert len(set(counts)) > 1
    h = [text.states.numpy()[k, : counts[k]] for k in (0, 2)]
    u = question.states.numpy()[question.live.numpy()]
    expected = output_by_hand(reader, h, u)
    logits = answer.logits.numpy().reshape([3, 6, 6])
    for (slot, i, j), log_p in expected.items():
        np.testing.assert_allclose(logits[2 * slot, i, j - i], log_p, rtol=1e-3, atol=1e-4)
    assert (logits > -1e8).sum() == len(expected)
    best = reader.best(answer)
    slot, i, j = max(expected, key=expected.get)
    assert (int(best.slot), int(best.start), int(best.end)) == ([4, 9][slot], i, j)


def test_words_and_chars_pass_two_highway_layers(reader, documents):
    one = {name: leaf[0, 0] for name, leaf in documents["items"].items()}
    live = one["words"].numpy() > 0
    table = reader.chars.get_weights()[0]
    kernel, bias = reader.filters.get_weights()
    rows = []
    for word, chars in zip(one["words"].numpy(), one["chars"].numpy(), strict=True):
        windows = [table[chars[k : k + 5]].reshape(-1) for k in range(12)]
        spelt = np.max([np.maximum(x @ kernel + bias, 0) for x in windows], axis=0)
        x = np.concatenate([reader.table.numpy()[word].astype(np.float32), spelt])
        for gate, change in zip(reader.gates, reader.changes, strict=True):
            g = sigma(x @ gate.kernel.numpy() + gate.bias.numpy())
            x = g * np.maximum(x @ change.kernel.numpy() + change.bias.numpy(), 0) + (1 - g) * x
        rows.append(x)
    expected = lstm(reader.context, np.array(rows)[live])
    found = reader.contextual(one, False).numpy()[live]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_flipped_is_close_to_reading_every_memory(reader, documents):
    """It differs only by a1, which is taken from the memory as it was."""
    codes, query = reader.encode(documents["items"]), reader.ask(documents["questions"])
    kept = tf.constant([[[0, 2, 5], [1, 3, 6]], [[-1, 0, 4], [1, 2, 3]], [[0, 1, 2], [3, 4, 5]]])
    given = (query, codes, tf.cast(kept, tf.int64), documents["answers"])
    found, exact = reader.flipped(*given).numpy(), Reader.flipped(reader, *given).numpy()
    np.testing.assert_allclose(found, exact, rtol=0.2, atol=1e-4)
    reader.end_model.kernel.assign(
        tf.concat([reader.end_model.kernel[:, :30], 0.0 * reader.end_model.kernel[:, 30:]], axis=1)
    )
    found, exact = reader.flipped(*given).numpy(), Reader.flipped(reader, *given).numpy()
    np.testing.assert_allclose(found, exact, rtol=1e-3, atol=1e-6)  # nothing hangs on a1 now


def test_the_size_of_the_paper():
    reader = BiDAF(10)
    shape = (2, None, 2 * reader.units)
    assert reader.models[1].kernel.shape[1] == shape[2]
    count = sum(int(np.prod(w.shape)) for w in reader.trainable_weights)
    assert abs(count - 2.57e6) < 0.1e6


@pytest.mark.slow
def test_it_learns_in_a_stream_reader(reader, documents):
    model = StreamReader(reader, slots=3, policy="fifo")
    model.compile(keras.optimizers.Adam(2e-2), jit_compile=False)
    data = tf.data.Dataset.from_tensors(documents).repeat(25)
    before = model.evaluate(data.take(1), verbose=0, return_dict=True)["loss"]
    model.fit(data, verbose=0)
    assert model.evaluate(data.take(1), verbose=0, return_dict=True)["loss"] < 0.5 * before
