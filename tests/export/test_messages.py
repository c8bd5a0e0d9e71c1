"""Our messages are those of tensorflow-serving-api on the wire."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    predict_pb2,
    prediction_log_pb2,
)

from lemn_tf.export import messages, tensors

OFFICIAL = {
    **vars(get_model_metadata_pb2),
    **vars(predict_pb2),
    **vars(prediction_log_pb2),
    "TensorProto": tf.make_tensor_proto(0).__class__,
}
OFFICIAL |= {
    "PackedResponse": OFFICIAL["PredictResponse"],
    "PackedTensor": OFFICIAL["TensorProto"],
    "TensorShapeProto": tf.TensorShape([]).as_proto().__class__,
}
OURS = [name for name in vars(messages) if name in OFFICIAL and name[0].isupper()]


def wire(field) -> str:
    """How a field's values are laid out: with their length before them, or not."""
    kinds = (field.TYPE_STRING, field.TYPE_BYTES, field.TYPE_MESSAGE)
    if field.type in kinds or (field.is_repeated and field.is_packed):
        return "length first"
    return "a varint" if field.type not in (field.TYPE_FLOAT, field.TYPE_DOUBLE) else "fixed"


def fields(descriptor, seen=()):
    """Every field below a message: path to number and layout."""
    found = {}
    for field in descriptor.fields:
        inner = field.message_type
        found[field.name] = (field.number, wire(field))
        if inner is not None and inner.name not in seen:
            below = fields(inner, (*seen, inner.name)).items()
            found |= {f"{field.name}.{name}": value for name, value in below}
    return found


@pytest.mark.parametrize("name", OURS)
def test_same_fields(name):
    ours = fields(getattr(messages, name).DESCRIPTOR)
    official = fields(OFFICIAL[name].DESCRIPTOR)
    assert ours
    assert ours.items() <= official.items()


def test_nothing_is_lost_between_them():
    request = predict_pb2.PredictRequest(output_filter=["keep"])
    request.model_spec.name, request.model_spec.version.value = "babi", 7
    request.inputs["x"].CopyFrom(tf.make_tensor_proto([1.5, 2.5]))
    request.inputs["half"].CopyFrom(tf.make_tensor_proto([3.0], tf.float16))  # half_val is theirs
    body = request.SerializeToString(deterministic=True)
    ours = messages.PredictRequest.FromString(body)
    assert (ours.model_spec.name, ours.model_spec.version.value) == ("babi", 7)
    assert predict_pb2.PredictRequest.FromString(ours.SerializeToString()) == request


def test_signatures():
    official = get_model_metadata_pb2.SignatureDefMap()
    info = meta_graph_pb2.TensorInfo(name="x:0", dtype=types_pb2.DT_INT64)
    info.tensor_shape.dim.add(size=-1)
    info.tensor_shape.dim.add(size=3)
    official.signature_def["observe"].inputs["ids"].CopyFrom(info)
    ours = messages.SignatureDefMap.FromString(official.SerializeToString())
    spec = tensors.Spec.of("ids", ours.signature_def["observe"].inputs["ids"])
    assert spec == tensors.Spec("ids", "x:0", types_pb2.DT_INT64, (None, 3))
    assert spec.dtype == np.int64
