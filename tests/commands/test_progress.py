"""The bar of a phase, where there is no terminal: a line for each validation."""

import io

import keras
import numpy as np
from rich.console import Console

from lemn_tf.commands.progress import Bar
from lemn_tf.recipes import Phase


def test_a_line_for_each_validation():
    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy", metrics=["accuracy"])
    data = np.ones([8, 1])
    shown = io.StringIO()
    bar = Bar(Phase("reader", 16, batch_size=4), console=Console(file=shown, width=100))
    model.fit(data, data, 4, epochs=2, validation_data=(data, data), callbacks=[bar], verbose=0)
    first, second = shown.getvalue().splitlines()
    assert first.startswith("reader: 8 of 16 episodes, ")
    assert second.startswith("reader: 16 of 16 episodes, ")
    assert "validation error" in second
