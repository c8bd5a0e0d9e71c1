"""Arrays to `TensorProto` and back, as TensorFlow itself does it."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2, types_pb2

from lemn_tf.export import messages, protos, tensors
from lemn_tf.export.errors import ServingError

DTYPES = [
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
]


def spec_of(dtype, shape=(None, 3)):
    return tensors.Spec("x", "x:0", tf.as_dtype(dtype).as_datatype_enum, shape)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers(dtype):
    draw = np.random.default_rng(0).integers(0, 2, [2, 3])
    array = draw.astype(tf.as_dtype(dtype).as_numpy_dtype)
    spec = spec_of(dtype)
    assert spec.dtype == array.dtype
    assert tensors.type_name(spec.enum) == types_pb2.DataType.Name(spec.enum)
    for kind in (messages.PackedTensor, messages.TensorProto):
        proto = kind()
        protos.encode(array, proto)
        theirs = tensor_pb2.TensorProto.FromString(proto.SerializeToString())
        np.testing.assert_array_equal(tf.make_ndarray(theirs), array)
    np.testing.assert_array_equal(protos.decode(proto, spec), array)
    if array.dtype.kind != "c":  # for which TensorFlow uses fields that we do not know
        theirs = tf.make_tensor_proto(array).SerializeToString()
        proto = messages.TensorProto.FromString(theirs)
        np.testing.assert_array_equal(protos.decode(proto, spec), array)


def test_strings():
    array = np.array([[b"", b"\xff", "naïve".encode()]], object)
    proto = messages.TensorProto()
    protos.encode(array, proto)
    theirs = tensor_pb2.TensorProto.FromString(proto.SerializeToString())
    np.testing.assert_array_equal(tf.make_ndarray(theirs), array)
    np.testing.assert_array_equal(protos.decode(proto, spec_of("string")), array)


def test_the_last_value_stands_for_the_rest():
    proto = messages.TensorProto(dtype=types_pb2.DT_INT32, int_val=[1, 2])
    proto.tensor_shape = tf.TensorShape([2, 3]).as_proto().SerializeToString()
    assert protos.decode(proto, spec_of("int32")).tolist() == [[1, 2, 2], [2, 2, 2]]


def test_a_broken_shape():
    proto = messages.TensorProto(dtype=types_pb2.DT_INT32, tensor_shape=b"\xff", int_val=[1])
    with pytest.raises(ServingError, match=r"'x': .*shape is broken"):
        protos.decode(proto, spec_of("int32"))


def test_a_type_that_cannot_travel():
    spec = tensors.Spec("x", "x:0", types_pb2.DT_RESOURCE, ())
    with pytest.raises(ServingError, match="cannot be sent"):
        _ = spec.dtype
    with pytest.raises(ServingError, match="not supported"):
        protos.decode(messages.TensorProto(dtype=types_pb2.DT_RESOURCE), spec)
