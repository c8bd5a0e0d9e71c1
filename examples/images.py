"""Pictures go by, a digit each; a few have a bright spot in a corner.

Twenty pictures of 12 by 12 pixels, kept as they are, as bytes. Four have a spot, each in another
corner. At the end a corner is named: which digit had its spot there? Four slots.

    python examples/images.py
"""

import keras
import numpy as np

import lemn_tf

SIZE, CORNERS, DIGITS = 12, 4, 10
FONT = """
111 010 111 111 101 111 111 111 111 111
101 110 001 001 101 100 100 001 101 101
101 010 111 111 111 111 111 010 111 111
101 010 100 001 001 001 101 010 101 001
111 111 111 111 001 111 111 010 111 111
"""
GLYPHS = np.array([[list(glyph) for glyph in line.split()] for line in FONT.split("\n")[1:-1]])
GLYPHS = GLYPHS.astype("uint8").transpose(1, 0, 2).repeat(2, axis=2)  # [10, 5, 6]


def streams(count, steps, seed):
    """`(pictures, corners), digits`; pictures `[count, steps, 12, 12]` bytes, corners one-hot."""
    rng = np.random.default_rng(seed)
    digits = rng.integers(0, DIGITS, [count, steps])
    pictures = rng.integers(0, 100, [count, steps, SIZE, SIZE], "uint8")
    pictures[:, :, 3:8, 3:9] += 120 * GLYPHS[digits]
    where = rng.random([count, steps]).argsort(axis=1)[:, :CORNERS]  # of the spots
    rows = np.arange(count)
    for corner, (y, x) in enumerate([(0, 0), (0, 10), (10, 0), (10, 10)]):
        pictures[rows, where[:, corner], y : y + 2, x : x + 2] = 255
    asked = rng.integers(0, CORNERS, count)
    corners = np.eye(CORNERS, dtype="float32")[asked]
    return (pictures, corners), digits[rows, where[rows, asked]]


class Eye(keras.layers.Layer):
    """Pictures `[..., 12, 12]` to vectors `[..., 32]`: a small convolutional network."""

    def __init__(self):
        super().__init__()
        self.network = keras.Sequential(
            [
                keras.layers.Rescaling(1 / 255),
                keras.layers.Conv2D(8, 4, strides=2, padding="same", activation="relu"),
                keras.layers.Conv2D(16, 3, strides=2, padding="same", activation="relu"),
                keras.layers.Flatten(),
                keras.layers.Dense(32),
            ]
        )

    def call(self, pictures):
        shape = keras.ops.shape(pictures)
        flat = keras.ops.reshape(pictures, [-1, SIZE, SIZE, 1])
        return keras.ops.reshape(self.network(flat), [*shape[:-2], 32])


def build(policy):
    """A model in which every picture in memory votes for a digit, given the corner."""
    stream = keras.Input((None, SIZE, SIZE), dtype="uint8")
    corner = keras.Input((CORNERS,))
    eye = Eye()
    state, _ = lemn_tf.EpisodicMemory(slots=CORNERS, policy=policy, encoder=eye)(stream)
    seen = keras.layers.Dense(64)(eye(state.entries))
    asked = keras.layers.Reshape((1, 64))(keras.layers.Dense(64)(corner))
    votes = keras.layers.Dense(DIGITS)(keras.activations.relu(seen + asked))
    answer = keras.layers.Softmax()(keras.layers.GlobalMaxPooling1D()(votes))
    return lemn_tf.MemoryModel([stream, corner], answer)


def main(policy="st-lemn", seed=0, count=9600, steps=20, epochs=3, **options):
    """Trains a model on such streams; returns how often it is right about new ones.

    `options` are passed on to `compile`.
    """
    keras.utils.set_random_seed(seed)
    model = build(policy)
    model.compile(
        keras.optimizers.Adam(3e-3, global_clipnorm=40.0),
        "sparse_categorical_crossentropy",
        metrics=["accuracy"],
        shards=2,  # two cores
        **options,
    )
    history = model.fit(
        *streams(count, steps, seed=2 * seed),
        validation_data=streams(1000, steps, seed=2 * seed + 1),
        batch_size=32,
        epochs=epochs,
        verbose=2,
    )
    return history.history["val_accuracy"][-1]


if __name__ == "__main__":
    fifo, learned = main("fifo"), main("st-lemn")
    print(f"right answers: fifo {fifo:.1%}, st-lemn {learned:.1%}")
