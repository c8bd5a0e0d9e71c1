"""The protobuf messages of TF Serving's API, without TensorFlow.

`tensorflow-serving-api` has the official classes, but importing them imports TensorFlow: seconds,
and half a gigabyte, for a client that only sends a sentence. The messages below have the same
names, field numbers and types, so they are the same on the wire. Fields that nothing here reads are
left out: protobuf keeps them as they came.

Two things are as they are for speed. The shape of a tensor stays a string of bytes, because
there are only a few shapes and each need be read only once. `PackedResponse` is a `PredictResponse`
to write: what is written for packed floats is their bytes, so they can be given as such.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELDS = {
    "Dim": "int64 size 1, string name 2",
    "TensorShapeProto": "Dim* dim 2, bool unknown_rank 3",
    "TensorProto": (
        "int32 dtype 1, bytes tensor_shape 2, bytes tensor_content 4, "
        "float* float_val 5, double* double_val 6, int32* int_val 7, bytes* string_val 8, "
        "int64* int64_val 10, bool* bool_val 11, uint32* uint32_val 16, uint64* uint64_val 17"
    ),
    "PackedTensor": (
        "int32 dtype 1, bytes tensor_shape 2, bytes tensor_content 4, bytes float_val 5, "
        "bytes double_val 6, int32* int_val 7, bytes* string_val 8, int64* int64_val 10, "
        "bytes bool_val 11, uint32* uint32_val 16, uint64* uint64_val 17"
    ),
    "TensorInfo": "string name 1, int32 dtype 2, TensorShapeProto tensor_shape 3",
    "SignatureDef": "map:TensorInfo inputs 1, map:TensorInfo outputs 2, string method_name 3",
    "SignatureDefMap": "map:SignatureDef signature_def 1",
    "Int64Value": "int64 value 1",
    "Any": "string type_url 1, bytes value 2",
    "ModelSpec": (
        "string name 1, Int64Value version 2, string signature_name 3, string version_label 4"
    ),
    "PredictRequest": "ModelSpec model_spec 1, map:TensorProto inputs 2, string* output_filter 3",
    "PredictResponse": "map:TensorProto outputs 1, ModelSpec model_spec 2",
    "PackedResponse": "map:PackedTensor outputs 1, ModelSpec model_spec 2",
    "PredictLog": "PredictRequest request 1",
    "PredictionLog": "PredictLog predict_log 6",
    "GetModelMetadataRequest": "ModelSpec model_spec 1, string* metadata_field 2",
    "GetModelMetadataResponse": "ModelSpec model_spec 1, map:Any metadata 2",
}
"""Message to fields, each `type name number`; `*` marks a repeated field, `map:` a map by name."""
_PACKAGE = "lemn_tf"


def _add_field(message: descriptor_pb2.DescriptorProto, text: str) -> None:
    """Adds the field that a line of `_FIELDS` describes."""
    kind, name, number = text.split()
    field = message.field.add(name=name, number=int(number))
    repeated = kind.endswith("*") or kind.startswith("map:")
    field.label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
    if kind.startswith("map:"):
        entry = message.nested_type.add(name=name.title().replace("_", "") + "Entry")
        entry.options.map_entry = True
        _add_field(entry, "string key 1")
        _add_field(entry, f"{kind.removeprefix('map:')} value 2")
        kind = f"{message.name}.{entry.name}"
    kind = kind.removesuffix("*")
    scalar = getattr(field, f"TYPE_{kind.upper()}", None)
    if scalar is None:
        field.type, field.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    else:
        field.type = scalar


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="lemn_tf/serving.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field in fields.split(", "):
            _add_field(message, field)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    find = pool.FindMessageTypeByName
    return {name: message_factory.GetMessageClass(find(f"{_PACKAGE}.{name}")) for name in _FIELDS}


_CLASSES = _classes()
GetModelMetadataRequest = _CLASSES["GetModelMetadataRequest"]
GetModelMetadataResponse = _CLASSES["GetModelMetadataResponse"]
PredictionLog = _CLASSES["PredictionLog"]
PackedResponse = _CLASSES["PackedResponse"]
PackedTensor = _CLASSES["PackedTensor"]
PredictRequest = _CLASSES["PredictRequest"]
PredictResponse = _CLASSES["PredictResponse"]
SignatureDefMap = _CLASSES["SignatureDefMap"]
TensorProto = _CLASSES["TensorProto"]
TensorShapeProto = _CLASSES["TensorShapeProto"]
