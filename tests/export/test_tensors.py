"""What a signature expects."""

from lemn_tf.export.tensors import FLOAT, Spec


def test_metadata_as_json():
    info = {
        "dtype": "DT_FLOAT",
        "tensor_shape": {"dim": [{"size": "-1", "name": ""}, {"size": "3", "name": ""}]},
        "name": "x:0",
    }
    assert Spec.from_json("x", info) == Spec("x", "x:0", FLOAT, (None, 3))
    info["tensor_shape"] = {"unknown_rank": True}
    assert Spec.from_json("x", info) == Spec("x", "x:0", FLOAT, None)
