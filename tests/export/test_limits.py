"""A few bytes that ask for a great deal are refused before anything is made of them."""

import pytest
from tensorflow.core.framework import types_pb2
from tensorflow_serving.apis import predict_pb2

from lemn_tf.export import messages, protos
from lemn_tf.export.errors import ServingError
from lemn_tf.export.limits import Limits
from lemn_tf.export.tensors import STRING, Spec


def abbreviated(shape, text=b"Mary went to the garden."):
    """A tensor of strings as it comes over the wire, with one value for all."""
    request = predict_pb2.PredictRequest()
    request.inputs["x"].dtype = types_pb2.DT_STRING
    for size in shape:
        request.inputs["x"].tensor_shape.dim.add(size=size)
    request.inputs["x"].string_val.append(text)
    return messages.PredictRequest.FromString(request.SerializeToString()).inputs["x"]


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ((1, 65536), "at most 1024 steps"),
        ((131072, 1), "at most 256 rows"),
        ((256, 1024), "at most 65536 rows times steps"),
        ((2**62, 2**62), "at most 256 rows"),
        ((-1, 1), "expected"),
    ],
)
def test_streams(shape, says):
    spec = Spec("sentences", "x:0", STRING, (None, None), Limits())
    with pytest.raises(ServingError, match=f"'sentences': {says}"):
        protos.decode(abbreviated(shape), spec)
    assert protos.decode(abbreviated((2, 3)), spec).shape == (2, 3)


def test_without_limits_one_value_still_stands_for_so_many_only():
    spec = Spec("x", "x:0", STRING, (None,))
    with pytest.raises(ServingError, match="at most 65536 may be abbreviated"):
        protos.decode(abbreviated((100_000,)), spec)


@pytest.mark.parametrize("name", ["rows", "seconds"])
def test_a_limit_is_above_zero(name):
    with pytest.raises(ValueError, match=f"above 0 for {name}; got 0"):
        Limits(**{name: 0})
