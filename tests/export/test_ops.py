"""Every operation of an exported graph is one that stock TF Serving links."""

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

TEXT = {"TFText>WhitespaceTokenizeWithOffsetsV2", "WhitespaceTokenizeWithOffsetsV2"}
"""The only operations of tensorflow_text that we use."""
CORE = set(dir(tf.raw_ops))
"""Core TensorFlow: `tf.raw_ops` is made when TensorFlow is built, libraries do not add to it."""


def graph_of(exported):
    model = saved_model_pb2.SavedModel()
    model.ParseFromString((exported / "saved_model.pb").read_bytes())
    (meta,) = model.meta_graphs
    return meta.graph_def


def test_only_operations_of_core_and_text(exported):
    graph = graph_of(exported)
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    used = {node.op for node in nodes}
    functions = {f.signature.name for f in graph.library.function}
    assert len(nodes) > 1000
    assert used - CORE - TEXT - functions == set()
    assert used & TEXT, "the tokenizer should be inside the graph"
    assert not {op for op in used if "Xla" in op or op.startswith("PyFunc") or op == "EagerPyFunc"}


def test_nothing_is_compiled_by_xla(exported):
    graph = graph_of(exported)
    holders = [*graph.node, *graph.library.function]
    holders += [node for f in graph.library.function for node in f.node_def]
    assert not any(holder.attr["_XlaMustCompile"].b for holder in holders)
