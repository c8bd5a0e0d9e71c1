"""A sensor stream with rare events: how hot was it while the valve was open?

Sixty readings of valve, temperature and pressure; the valve is open in four of them. At the end the
mean temperature at these four is to be estimated, in degrees. Four slots.

    python examples/sensor.py
"""

import keras
import numpy as np

import lemn_tf

EVENTS, MEAN, SPREAD = 4, 60.0, 20.0


def streams(count, steps, seed):
    """Readings `[count, steps, 3]`, of mean 0 and spread 1, and answers `[count, 1]` in degrees."""
    rng = np.random.default_rng(seed)
    valve = rng.random([count, steps]).argsort(axis=1) < EVENTS
    temperature, pressure = rng.normal(size=[2, count, steps])
    answers = MEAN + SPREAD * (valve * temperature).sum(axis=1, keepdims=True) / EVENTS
    readings = np.stack([valve, temperature, pressure], axis=-1)
    return readings.astype("float32"), answers.astype("float32")


def build(policy):
    """A model whose head takes eight weighted means over the readings in memory."""
    stream = keras.Input((None, 3))
    state, _ = lemn_tf.EpisodicMemory(slots=EVENTS, policy=policy)(stream)
    scores = keras.layers.Dense(8)(state.entries)
    scores = keras.ops.where(state.filled[..., None], scores, -1e9)
    means = keras.layers.Dot(axes=1)([keras.ops.softmax(scores, axis=1), state.entries])
    hidden = keras.layers.Dense(32, "relu")(keras.layers.Flatten()(means))
    degrees = keras.layers.Rescaling(SPREAD, MEAN)(keras.layers.Dense(1)(hidden))
    return lemn_tf.MemoryModel(stream, degrees)


def main(policy="st-lemn", seed=0, count=19_200, steps=60, epochs=2, **options):
    """Trains a model on such streams; returns its root mean squared error on new ones, degrees.

    `options` are passed on to `compile`.
    """
    keras.utils.set_random_seed(seed)
    model = build(policy)
    model.compile(
        keras.optimizers.Adam(1e-2),
        "mse",
        metrics=[keras.metrics.RootMeanSquaredError(name="degrees")],
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
    return history.history["val_degrees"][-1]


if __name__ == "__main__":
    fifo, learned = main("fifo"), main("st-lemn")
    print(f"error in degrees: fifo {fifo:.1f}, st-lemn {learned:.1f}")
