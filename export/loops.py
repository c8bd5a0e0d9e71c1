"""Which signatures of a graph have a loop in them, so that the time of a call has no bound."""

from __future__ import annotations

from collections.abc import Iterable

from tensorflow.core.framework import graph_pb2, node_def_pb2

_LOOPS = {"While", "StatelessWhile", "_While", "For", "NextIteration", "RefNextIteration"}


def has_loop(graph: graph_pb2.GraphDef, tensors: Iterable[str]) -> bool:
    """Whether computing these tensors, such as `StatefulPartitionedCall:0`, runs a loop.

    Args:
        graph: of the model.
        tensors: names of tensors in it.
    """
    nodes = {node.name: node for node in graph.node}
    functions = {one.signature.name: one.node_def for one in graph.library.function}
    reached: dict[str, node_def_pb2.NodeDef] = {}
    todo = {_node(name) for name in tensors}
    while todo:
        name = todo.pop()
        if name in nodes and name not in reached:
            reached[name] = nodes[name]
            todo |= {_node(source) for source in nodes[name].input}
    bodies, called = [list(reached.values())], set[str]()
    for body in bodies:  # those of the functions that are called are added on the way
        for node in body:
            if node.op in _LOOPS:
                return True
            new = _functions(node) & functions.keys() - called
            called |= new
            bodies += [list(functions[name]) for name in new]
    return False


def _node(tensor: str) -> str:
    return tensor.removeprefix("^").split(":")[0]


def _functions(node: node_def_pb2.NodeDef) -> set[str]:
    """The functions that a node may call."""
    found = {node.op}
    for value in node.attr.values():
        found |= {value.func.name, *(function.name for function in value.list.func)}
    return found
