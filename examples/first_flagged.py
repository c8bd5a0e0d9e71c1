"""Vectors go by, some carry a flag: what colour was the first one that did?

Forty items, four slots. By the time of the question a memory that keeps the newest items has lost
the first flagged one. A learned policy finds out by itself what it should have kept.

    python examples/first_flagged.py
"""

import keras
import numpy as np

import lemn_tf

COLOURS = 8


def streams(count, steps, seed):
    """Items `[count, steps, 9]`, a flag and a colour each, and the colour of the first flagged."""
    rng = np.random.default_rng(seed)
    colours = rng.integers(0, COLOURS, [count, steps])
    flags = rng.random([count, steps]) < 0.2
    flags[:, steps // 2] = True  # there is one, and not among the newest
    items = np.concatenate([flags[..., None], np.eye(COLOURS)[colours]], axis=-1)
    return items.astype("float32"), colours[np.arange(count), flags.argmax(axis=1)]


def main(policy="st-lemn", seed=0, count=9600, steps=40, epochs=3, **options):
    """Trains a model on such streams; returns how often it is right about new ones.

    `options` are passed on to `compile`.
    """
    keras.utils.set_random_seed(seed)
    stream = keras.Input((None, 1 + COLOURS))
    state, _ = lemn_tf.EpisodicMemory(slots=4, policy=policy)(stream)
    seen = keras.layers.GRU(32, go_backwards=True)(state.entries)  # from the newest to the oldest
    answer = keras.layers.Dense(COLOURS, "softmax")(seen)
    model = lemn_tf.MemoryModel(stream, answer)
    model.compile(
        keras.optimizers.Adam(3e-3),
        "sparse_categorical_crossentropy",
        metrics=["accuracy"],
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
