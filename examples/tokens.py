"""Sentences go by as token ids: who lives where is worth keeping, who likes what is not.

Forty sentences of four words. Five say where somebody lives; the others use the same names and
places with another verb. At the end one of the five is asked for. Five slots.

    python examples/tokens.py
"""

import keras
import numpy as np

import lemn_tf

NAMES = ["Anna", "Ben", "Clara", "David", "Emma", "Felix", "Greta", "Hugo", "Ida", "Jonas"]
VERBS = ["lives", "works", "sings", "sleeps", "reads", "waits", "cooks", "runs"]
PLACES = ["Bern", "Cairo", "Delhi", "Lima", "Oslo", "Paris", "Quito", "Rome"]
WORDS = {word: number for number, word in enumerate(["in", *NAMES, *VERBS, *PLACES])}
FACTS = 5


def streams(count, steps, seed):
    """`(sentences, names), places`: `[count, steps, 4]` and `[count, 1]` token ids, and labels."""
    rng = np.random.default_rng(seed)
    order = rng.random([count, steps]).argsort(axis=1)  # numbers the sentences at random
    facts = order < FACTS  # number k is about the k-th of ten shuffled names
    shuffled = rng.random([count, len(NAMES)]).argsort(axis=1)
    known = np.take_along_axis(shuffled, np.minimum(order, FACTS - 1), axis=1)
    name = np.where(facts, known, rng.integers(0, len(NAMES), [count, steps]))
    verb = np.where(facts, 0, rng.integers(1, len(VERBS), [count, steps]))
    place = rng.integers(0, len(PLACES), [count, steps])
    first = [WORDS[words[0]] for words in (NAMES, VERBS, PLACES)]
    parts = [name + first[0], verb + first[1], np.full_like(name, WORDS["in"]), place + first[2]]
    rows, asked = np.arange(count), order.argmin(axis=1)
    names = name[rows, asked, None] + first[0]
    return (np.stack(parts, -1).astype("int32"), names.astype("int32")), place[rows, asked]


class BagOfWords(keras.layers.Layer):
    """Token ids `[..., L]` to vectors `[..., D]`: the sum of the words' embeddings."""

    def __init__(self, words, width):
        super().__init__()
        self.embedding = keras.layers.Embedding(words, width)

    def call(self, tokens):
        return keras.ops.sum(self.embedding(tokens), axis=-2)


def build(policy):
    """A model whose head looks up the name among the sentences that were kept."""
    stream = keras.Input((None, 4), dtype="int32")
    name = keras.Input((1,), dtype="int32")
    words = BagOfWords(len(WORDS), 32)
    state, _ = lemn_tf.EpisodicMemory(slots=FACTS, policy=policy, encoder=words)(stream)
    sentences = words(state.entries)
    wanted = keras.layers.Reshape((1, 32))(keras.layers.Dense(32)(words(name)))
    keys = keras.layers.Dense(32)(sentences)
    found = keras.layers.Attention()([wanted, sentences, keys], mask=[None, state.filled])
    answer = keras.layers.Dense(len(PLACES), "softmax")(keras.layers.Flatten()(found))
    return lemn_tf.MemoryModel([stream, name], answer)


def main(policy="st-lemn", seed=0, count=9600, steps=40, epochs=2, **options):
    """Trains a model on such streams; returns how often it is right about new ones.

    `options` are passed on to `compile`.
    """
    keras.utils.set_random_seed(seed)
    model = build(policy)
    model.compile(
        keras.optimizers.Adam(1e-2, global_clipnorm=40.0),
        "sparse_categorical_crossentropy",
        metrics=["accuracy"],
        shards=2,  # two cores
        **options,
    )
    history = model.fit(
        *streams(count, steps, seed=2 * seed),
        validation_data=streams(1000, steps, seed=2 * seed + 1),
        batch_size=64,
        epochs=epochs,
        verbose=2,
    )
    return history.history["val_accuracy"][-1]


if __name__ == "__main__":
    fifo, learned = main("fifo"), main("st-lemn")
    print(f"right answers: fifo {fifo:.1%}, st-lemn {learned:.1%}")
