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
    functions = {one.signature.name: one for one in graph.library.function}
    todo, entered = {_node(name) for name in tensors}, set()
    called: set[str] = set()
    while todo:
        name = todo.pop()
        if name in entered or name not in nodes:
            continue
        entered.add(name)
        if nodes[name].op in _LOOPS:
            return True
        called |= _functions(nodes[name])
        todo |= {_node(source) for source in nodes[name].input}
    seen: set[str] = set()
    while called:
        name = called.pop()
        if name in seen or name not in functions:
            continue
        seen.add(name)
        for node in functions[name].node_def:
            if node.op in _LOOPS:
                return True
            called |= _functions(node)
    return False


def _node(tensor: str) -> str:
    return tensor.removeprefix("^").split(":")[0]


def _functions(node: node_def_pb2.NodeDef) -> set[str]:
    """The functions that a node may call."""
    found = {node.op}
    for value in node.attr.values():
        found |= {value.func.name, *(function.name for function in value.list.func)}
    return found
