"""The part of a model behind its memory, to be run again on other memories.

Hindsight credit asks what a model would have answered from another memory. For that only the part
behind the memory must run again, not the reading of the stream. Where that part is found:

    a subclass with an `answer` method      that method, on the memory and the inputs
    a functional model                      cut out of the graph, with any number of slots
    any other subclass                      the whole `call`, with the other memory put in its place

In the first two cases, layers in front of a memory and beside it run once per batch; in the last,
once for each memory that is tried.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf
from keras.src.models.functional import Functional

from lemn_tf import tape
from lemn_tf.layer import EpisodicMemory
from lemn_tf.retention.decision import Decision
from lemn_tf.tape import Call, MemoryTape

Nest = Any
Run = Callable[[Nest, int, bool], Nest]
"""From a memory for `[B * times]` rows, `times` and `training` to what the model answers."""


def behind(model: keras.Model, inputs: Nest, calls: Sequence[Call], which: int) -> Run:
    """The part of the model behind one of its memories.

    Args:
        model: has been called on the inputs.
        inputs: of a batch of B rows.
        calls: of all its memories in that call.
        which: number of the memory among them.
    """
    if hasattr(model, "answer"):
        return _method(model, inputs, calls, which)
    nodes = memory_nodes(model) if isinstance(model, Functional) else []
    if nodes and [node.operation for node in nodes] == [call.layer for call in calls]:
        cuts = model.__dict__.setdefault("_cuts", {})  # past Keras, which would look for weights
        if which not in cuts:
            cuts[which] = _Cut(model, nodes, which, calls[which].ask_at is not None)
        return cuts[which].runner(inputs, calls)
    return _whole(model, inputs, calls, which)


def repeat(nest: Nest, times: int) -> Nest:
    """Every row repeated `times` times, with the masks that Keras attached."""

    def one(leaf):
        if times == 1:
            return leaf
        more = tf.repeat(leaf, times, axis=0)
        mask = getattr(leaf, "_keras_mask", None)
        if mask is not None:
            more._keras_mask = tf.repeat(mask, times, axis=0)
        return more

    return tf.nest.map_structure(one, nest)


def _method(model, inputs, calls, which) -> Run:
    def run(stand_in, times, training):
        states = [repeat(call.returned[0], times) for call in calls]
        states[which] = stand_in
        memories = states[0] if len(states) == 1 else tuple(states)
        return model.answer(memories, repeat(inputs, times), training=training)

    return run


def _whole(model, inputs, calls, which) -> Run:
    def run(stand_in, times, training):
        instead = [repeat(call.returned, times) for call in calls]
        instead[which] = (stand_in, instead[which][1])
        with MemoryTape(instead=instead):
            return model(repeat(inputs, times), training=training)

    return run


def memory_nodes(model: Functional) -> list[Any]:
    """The places in a functional model where memories are called, in the order of the calls."""
    found = {}
    for node in _upstream(model.outputs):
        if isinstance(node.operation, EpisodicMemory):
            found[id(node)] = node
    order = {id(operation): place for place, operation in enumerate(model.operations)}
    return sorted(found.values(), key=lambda node: order[id(node.operation)])


def _node(tensor) -> Any:
    operation, index, _ = tensor._keras_history
    return operation._inbound_nodes[index]


def _upstream(tensors) -> list[Any]:
    """Every node that the tensors come from."""
    seen, todo = {}, [_node(tensor) for tensor in tensors]
    while todo:
        node = todo.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            todo += [_node(tensor) for tensor in node.input_tensors]
    return list(seen.values())


@contextlib.contextmanager
def _untouched(tensors) -> Iterator[None]:
    """Keeps tensors attached to the model they come from while another model is made of them.

    Keras moves an `Input` into the model that is cut out at it, and the original model could then
    no longer be saved.
    """
    histories = [tensor._keras_history for tensor in tensors]
    yield
    for tensor, history in zip(tensors, histories, strict=True):
        tensor._keras_history = history


class _Cut:
    """A functional model cut at one of its memories."""

    def __init__(self, model: Functional, nodes: list[Any], which: int, recalled: bool):
        self.nodes, self.which = nodes, which
        self.memory, self.side = self._frontier(model, nodes[which])
        if not self.memory:
            raise ValueError(
                f"nothing uses the memory {nodes[which].operation.name!r}: expected an output of "
                "the model to depend on what it returns"
            )
        taped = {id(tensor) for node in nodes for tensor in node.outputs}
        self.computed = [tensor for tensor in self.side if id(tensor) not in taped]
        self.output = model.output
        # Keras has no model whose output is one of its inputs, so such outputs go past it.
        given = {id(tensor) for tensor in [*self.memory, *self.side]}
        self.made = [t for t in keras.tree.flatten(self.output) if id(t) not in given]
        with _untouched([*self.memory, *self.side]):
            self.before: Any = keras.Model(model.input, self.computed) if self.computed else None
            self.after = keras.Model([*self.memory, *self.side], self.made) if self.made else None
            if self.after:
                self._free_slots(recalled)

    def _frontier(self, model, node):
        """The tensors where the part behind the memory begins: the memory's, and the others."""
        behind = {id(n) for n in _upstream(model.outputs) if node in _upstream(n.input_tensors)}
        memory, side, seen, todo = [], [], set(), list(model.outputs)
        while todo:
            tensor = todo.pop()
            if id(tensor) in seen:
                continue
            seen.add(id(tensor))
            if _node(tensor) is node:
                memory.append(tensor)
            elif id(_node(tensor)) in behind:
                todo += _node(tensor).input_tensors
            else:
                side.append(tensor)
        return memory, side

    def _free_slots(self, recalled: bool):
        """Lets the part behind the memory take any number of slots, if its layers can."""
        sizes = [list(tensor.shape) for tensor in [*self.memory, *self.side]]
        axis = 2 if recalled else 1
        for size, tensor in zip(sizes, self.memory, strict=False):
            place = [one is tensor for one in self.nodes[self.which].outputs].index(True)
            if place < len(self.nodes[self.which].outputs) - len(Decision._fields):
                size[axis : axis + 1] = [None] * len(
                    size[axis : axis + 1]
                )  # the clock has no slots
        inputs = [
            keras.Input(batch_shape=size, dtype=tensor.dtype)
            for size, tensor in zip(sizes, [*self.memory, *self.side], strict=True)
        ]
        # With layers that need a fixed number of slots, the cut stays as it is.
        with contextlib.suppress(ValueError, TypeError, tf.errors.OpError):
            self.after = keras.models.clone_model(
                self.after, input_tensors=inputs, clone_function=lambda layer: layer
            )

    def runner(self, inputs, calls) -> Run:
        """The part behind the memory for one batch."""
        values: dict[int, tf.Tensor] = {}
        for node, call in zip(self.nodes, calls, strict=True):
            flat = tf.nest.flatten(call.returned)
            values |= {id(tensor): value for tensor, value in zip(node.outputs, flat, strict=True)}
        if self.computed:
            made = self.before(inputs)
            made = made if isinstance(made, list | tuple) else [made]
            values |= {id(tensor): value for tensor, value in zip(self.computed, made, strict=True)}
        node, decisions = self.nodes[self.which], calls[self.which].returned[1]

        def run(stand_in, times, training):
            given = tf.nest.flatten((stand_in, repeat(decisions, times)))
            known = {id(tensor): value for tensor, value in zip(node.outputs, given, strict=True)}
            known |= {id(tensor): repeat(values[id(tensor)], times) for tensor in self.side}
            fed = [known[id(tensor)] for tensor in [*self.memory, *self.side]]
            made = keras.tree.flatten(self.after(fed, training=training)) if self.after else []
            known |= {id(tensor): value for tensor, value in zip(self.made, made, strict=True)}
            return keras.tree.map_structure(lambda tensor: known[id(tensor)], self.output)

        return run


def takes(run: Run, stand_in: Nest, rows: int, times: int = 1) -> tuple[bool, bool]:
    """Whether the part behind a memory takes this one, and whether its answer depends on it.

    It is traced, not run.

    Args:
        run: what `behind` returned.
        stand_in: a memory for every row of the batch, each repeated `times` times.
        rows: how many rows that makes, which the answer must have too.
        times: memories for each row of the batch.
    """
    leaves = [leaf for leaf in tf.nest.flatten(stand_in) if tf.is_tensor(leaf)]

    def attempt():
        copies = tf.nest.map_structure(tf.identity, stand_in)
        return run(copies, times, False)

    try:
        graph = tf.function(attempt, autograph=False).get_concrete_function().graph
    except Exception as error:
        if isinstance(error, tape.WrongCalls):
            raise
        return False, False
    outputs = [leaf for leaf in tf.nest.flatten(graph.structured_outputs) if leaf is not None]
    fits = all(leaf.shape.rank and leaf.shape[0] in (rows, None) for leaf in outputs)
    inside = {id(inner.op) for outer, inner in graph.captures if any(outer is x for x in leaves)}
    return fits, _reaches([leaf.op for leaf in graph.outputs], inside)


def _reaches(operations: list[tf.Operation], wanted: set[int]) -> bool:
    seen, todo = set(), list(operations)
    while todo:
        operation = todo.pop()
        if id(operation) in wanted:
            return True
        if id(operation) not in seen:
            seen.add(id(operation))
            todo += [tensor.op for tensor in operation.inputs]
            todo += operation.control_inputs
    return False


def warn_fixed(name: str, slots: int) -> None:
    """Warns that hindsight works differently with a head that needs a fixed number of slots."""
    warnings.warn(
        f"what stands behind the memory {name!r} takes exactly {slots} slots, so hindsight credit "
        f"cannot put an item back beside the {slots} that were kept: it puts each in the place of "
        "another one instead. A head that takes any number of slots (attention, pooling, a "
        "recurrent layer) learns sooner",
        stacklevel=2,
    )
