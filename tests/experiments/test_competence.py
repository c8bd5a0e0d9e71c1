"""A reader that cannot answer is noticed, and others are tried, before a policy learns from it."""

import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import recipes, training
from lemn_tf.experiments import babi, competence
from lemn_tf.readers.base import Answer


@pytest.fixture
def settings(files, small_batches, monkeypatch):
    """Of a training that is over in seconds, with a reader that has no time to learn."""
    short = [
        dataclasses.replace(phase, episodes=16 if phase.linear else 32)
        for phase in recipes.RECIPES["lemn"]
        if phase.name in ("linear start", "reader", "policy")
    ]
    monkeypatch.setitem(recipes.RECIPES, "lemn", tuple(short))
    monkeypatch.setattr(competence, "LENGTHS", ((32, 16), (48, 16)))
    monkeypatch.setattr(training, "EPOCH", 16)
    return babi.BabiSettings(
        str(files["train"]), str(files["valid"]), "s-lemn", slots=3, units=8, wider=12, room=False
    )


def train(settings, folder, callbacks=lambda *_: ()):
    return babi.train_model(settings, folder, callbacks=callbacks, jit_compile=False)


def test_the_whole_past_is_in_memory(files):
    """And no more than that; a reader that answers each question as the one before."""
    data = babi.Stories(files["valid"])
    model = babi.build(babi.BabiSettings("", ""), data.vocabulary, data.sentence_length)
    seen = []

    def answer(episode, kept):
        seen.append((episode["ask_at"].numpy(), kept.numpy()))
        right = tf.one_hot(tf.maximum(episode["answers"], 0), data.vocabulary.size)
        return Answer(tf.roll(right, 1, axis=1), None)

    model.answer = answer
    error = competence.whole_error(model, data.batches(8, buckets=1), window=10)
    for asked, kept in seen:
        for row, stop in np.ndenumerate(asked):
            held = sorted(kept[row][kept[row] >= 0].tolist())
            assert held == (list(range(max(0, stop - 10), stop)) if stop >= 0 else [])
    wrong = [
        story.questions[q].answer != story.questions[q - 1].answer
        for story in data.stories
        for q in range(len(story.questions))
    ]
    assert error == pytest.approx(100 * np.mean(wrong))


def test_what_is_tried(settings):
    first, second, third = competence.attempts(settings)
    assert first == settings
    assert (second.units, third.units) == (12, 12)
    assert [one.rectified for one in (first, second, third)] == [False, True, True]
    assert [phase.rename for phase in first.phases()] == [False, False, False]
    assert [phase.rename for phase in second.phases()] == [False, True, True, False]
    assert [one.phases()[1].episodes for one in (first, second, third)] == [32, 32, 48]
    assert second.phases()[2].name == "settle"
    assert second.phases()[2].keep_share > first.phases()[1].keep_share
    assert second.phases()[3:] == first.phases()[2:]
    for alone in (
        dataclasses.replace(settings, episodes={"reader": 8}),  # as long as somebody asked for
        dataclasses.replace(settings, recipe="paper"),
        dataclasses.replace(settings, competent=None),
        dataclasses.replace(settings, reader_from="elsewhere"),
        dataclasses.replace(settings, start_from="elsewhere"),
    ):
        assert competence.attempts(alone) == (alone,)
    kept = dataclasses.replace(settings, wider=None)
    assert {one.units for one in competence.attempts(kept)} == {8}


@pytest.mark.slow
def test_a_competent_reader_changes_nothing(settings, tmp_path):
    unasked = train(dataclasses.replace(settings, competent=None), tmp_path / "unasked")
    asked = train(dataclasses.replace(settings, competent=100.0), tmp_path / "asked")
    for one, other in zip(unasked.get_weights(), asked.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    lines = (tmp_path / "asked" / "history.jsonl").read_text().splitlines()
    told = [json.loads(line).get("whole_error") for line in lines]
    assert [error is not None for error in told] == [False, False, True, *[False] * (len(told) - 3)]
    assert not (tmp_path / "asked" / "reader.json").exists()


class Stop(keras.callbacks.Callback):
    """Ctrl-C in the second epoch of the wider reader's second phase."""

    def on_epoch_begin(self, epoch, logs=None):
        if self.model.reader.units == 12 and not self.model.linear and epoch == 1:
            raise KeyboardInterrupt


@pytest.mark.slow
def test_if_no_reader_can_the_best_goes_on(settings, tmp_path, capsys):
    settings = dataclasses.replace(settings, competent=1e-6)
    whole = train(settings, tmp_path / "whole")
    said = capsys.readouterr().err
    assert "with everything in memory, the reader (8 units, 48 episodes) gets" in said
    assert "trying 12 units, 64 episodes" in said
    assert "no policy can do better than its reader" in said
    noted = json.loads((tmp_path / "whole" / "reader.json").read_text())
    assert len(noted["errors"]) == 3
    assert noted["chosen"] == int(np.argmin(noted["errors"]))
    assert whole.reader.units == (8, 12, 12)[noted["chosen"]]
    lines = (tmp_path / "whole" / "history.jsonl").read_text().splitlines()
    names = [json.loads(line)["phase"] for line in lines if "settle" not in line]
    assert list(dict.fromkeys(names)) == ["linear start", "reader", "policy"]

    with pytest.raises(KeyboardInterrupt):
        train(settings, tmp_path / "stopped", callbacks=lambda *_: [Stop()])
    resumed = train(settings, tmp_path / "stopped")
    for one, other in zip(whole.get_weights(), resumed.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
