"""Example requests: for people, and for TF Serving to warm up with before the first real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from lemn_tf.export import messages
from lemn_tf.export.protos import encode
from lemn_tf.export.servable import Servable
from lemn_tf.export.signatures import Signature
from lemn_tf.export.tensors import Arrays


def examples(servable: Servable, signatures: dict[str, Signature]) -> dict[str, Arrays]:
    """For each signature inputs of one row, with a memory that has seen the first example item."""
    count = max([1, *(len(servable.example.get(name, ())) for name in servable.item)])
    one, many = {}, {}
    for name, spec in servable.item.items():
        stream = np.asarray(servable.example.get(name, _blank([count, *spec.shape], spec)))
        one[name] = stream[:1]
        many[f"{name}s"] = many[servable.streams.get(name, f"{name}s")] = stream[None]
    asked = {
        name: np.asarray(servable.example.get(name, _blank(spec.shape, spec)))[None]
        for name, spec in servable.question.items()
    }
    asked |= {name: asked[of] for name, of in servable.asked.items()}
    run = {name: signature.function for name, signature in signatures.items()}
    state = run["initial_state"]({"batch": tf.constant([0])})
    told = {name: asked[name] for name in servable.asked}
    specs = {**servable.item, **{k: servable.question[of] for k, of in servable.asked.items()}}
    step = "observe" if servable.act is None else "act"
    state = run[step](state | _tensors(one | told, specs))
    known = {name: state[name].numpy() for name in servable.state}
    known["state"] = run["pack"]({name: state[name] for name in servable.state})["state"].numpy()
    known |= {"batch": np.zeros([1], np.int32), "id": np.zeros([1], np.int64)}
    known["attention"] = np.full([1, servable.memory.slots], 1 / servable.memory.slots, np.float32)
    known |= one | many | asked
    known["text"] = next(iter(asked.values()), None)
    return {
        name: {
            key: tf.constant(known[key], spec.dtype).numpy()
            for key, spec in signature.inputs.items()
        }
        for name, signature in signatures.items()
    }


def _blank(shape, spec: tf.TensorSpec) -> np.ndarray:
    return np.full(shape, "" if spec.dtype == tf.string else 0)


def _tensors(arrays: Arrays, specs) -> dict[str, tf.Tensor]:
    return {name: tf.constant(array, specs[name].dtype) for name, array in arrays.items()}


def as_json(name: str, inputs: Arrays) -> dict[str, Any]:
    """A request as TF Serving's REST takes it: the body for `POST /v1/models/NAME:predict`."""

    def plain(value):
        if isinstance(value, list):
            return [plain(x) for x in value]
        return value.decode() if isinstance(value, bytes) else value

    columns = {key: plain(array.tolist()) for key, array in inputs.items()}
    rows = zip(*columns.values(), strict=True)
    instances = [dict(zip(columns, row, strict=True)) for row in rows]
    return {"signature_name": name, "instances": instances}


def write_warmup(path: Path, model: str, requests: dict[str, Arrays]) -> None:
    """Writes the requests as TF Serving's `tf_serving_warmup_requests`."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for name, inputs in requests.items():
            log = messages.PredictionLog()
            request = log.predict_log.request
            request.model_spec.name = model
            request.model_spec.signature_name = name
            for key, array in inputs.items():
                encode(array, request.inputs[key])
            writer.write(log.SerializeToString())
