"""Keys and values among distractors: six of sixty items matter, and six can be kept.

Every item has a key and a value; six of them are marked. At the end the key of one of these is
given, with some noise, and its value is asked for.

    python examples/associative_recall.py
"""

import keras
import numpy as np

import lemn_tf

WIDTH, VALUES, MARKED = 8, 8, 6


def streams(count, steps, seed):
    """`(items, queries), answers`; an item is a key, a value (one-hot) and a mark."""
    rng = np.random.default_rng(seed)
    keys = rng.normal(size=[count, steps, WIDTH])
    keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
    values = rng.integers(0, VALUES, [count, steps])
    order = rng.random([count, steps]).argsort(axis=1)  # a random order of the items
    marks = order < MARKED
    rows, asked = np.arange(count), order.argmin(axis=1)
    items = np.concatenate([keys, np.eye(VALUES)[values], marks[..., None]], axis=-1)
    queries = keys[rows, asked] + 0.05 * rng.normal(size=[count, WIDTH])
    return (items.astype("float32"), queries.astype("float32")), values[rows, asked]


def build(policy):
    """A model whose head looks up the query among the entries, by attention."""
    stream, query = keras.Input((None, WIDTH + VALUES + 1)), keras.Input((WIDTH,))
    state, _ = lemn_tf.EpisodicMemory(slots=MARKED, policy=policy)(stream)
    wanted = keras.layers.Reshape((1, 32))(keras.layers.Dense(32)(query))
    keys = keras.layers.Dense(32)(state.entries)
    found = keras.layers.Attention()([wanted, state.entries, keys], mask=[None, state.filled])
    answer = keras.layers.Dense(VALUES, "softmax")(keras.layers.Flatten()(found))
    return lemn_tf.MemoryModel([stream, query], answer)


def main(policy="st-lemn", seed=0, count=12_800, steps=60, epochs=2, **options):
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
