"""A SavedModel in a session."""

from lemn_tf.export.loaded import LoadedModel


def test_warm_up_requests_are_run(exported):
    model = LoadedModel(exported)
    assert model.warm_up() > 0
    model.close()
