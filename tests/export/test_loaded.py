"""A SavedModel in a session."""

import time

import numpy as np
import pytest

from lemn_tf.export.errors import Code, ServingError
from lemn_tf.export.limits import Limits
from lemn_tf.export.loaded import LoadedModel


def test_warm_up_requests_are_run(exported):
    model = LoadedModel(exported)
    assert model.warm_up() > 0
    model.close()


def test_which_signatures_loop(exported):
    model = LoadedModel(exported)
    loops = {name for name, signature in model.signatures.items() if signature.loops}
    assert loops == {"serving_default", "observe_many", "observe_many_packed"}
    model.close()


def test_an_answer_that_would_be_too_large_is_not_begun(exported):
    model = LoadedModel(exported, limits=Limits(answer_bytes=20_000))
    model.run("initial_state", {"batch": np.zeros([10], np.int32)})
    with pytest.raises(ServingError, match="at most 20000 are given") as caught:
        model.run("initial_state", {"batch": np.zeros([100], np.int32)})
    assert caught.value.code is Code.RESOURCE_EXHAUSTED
    sentences = np.full([1, 1000], b"Mary left.", object)  # many steps, but a short answer
    model.run("serving_default", {"sentences": sentences, "question": np.array([b"?"], object)})
    model.close()


@pytest.mark.slow
def test_a_stream_is_given_up_at_the_deadline(exported):
    model = LoadedModel(exported)
    sentences = np.full([100, 5000], b"Mary went to the garden.", object)
    arrays = {"sentences": sentences, "question": np.full([100], b"Where is Mary?", object)}
    model.warm_up()
    with pytest.raises(ServingError) as caught:
        model.signature("serving_default")(arrays, time.monotonic() + 0.2)
    assert caught.value.code is Code.DEADLINE_EXCEEDED
    model.close()


def test_a_refusal_does_not_list_the_nodes_of_the_graph(exported):
    model = LoadedModel(exported)
    inputs = {"state": np.array([b"x"], object), "question": np.array([b"Where?"], object)}
    with pytest.raises(ServingError) as caught:
        model.run("answer_packed", inputs)
    assert caught.value.message.startswith("signature 'answer_packed': assertion failed: [state: ")
    model.close()
