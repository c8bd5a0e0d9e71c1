"""A memory on a server, as an object: carries the state so that the caller need not.

    with MemoryClient("http://127.0.0.1:8501") as client:
        client.observe("Mary took the milk.")
        client.observe("Mary went to the garden.")
        client.ask("Where is the milk?").text        # 'garden'
        client.memory()                              # what it still holds

The server keeps nothing between calls: the memory goes along with each and comes back changed. So
a call that failed has changed nothing, repeating one is safe, and any replica can serve the next.

A client needs numpy, and `requests` for REST or `grpcio` and `protobuf` for gRPC. TensorFlow is
loaded only for a SavedModel in a folder, and to save or load a memory.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lemn_tf.entries import Entry, Observation, Reply
from lemn_tf.export import transport
from lemn_tf.export.errors import Code, ServingError
from lemn_tf.export.tensors import Arrays
from lemn_tf.files import write_atomically

if TYPE_CHECKING:
    from lemn_tf.memory import MemoryState

__all__ = ["Entry", "MemoryClient", "Observation", "Reply", "ServingError"]

TEXT = "entries__text"
"""The tensor of the state that holds the sentences as they were given."""
PACKED = "state"
"""The tensor that holds a memory as one string, among what packed signatures take and give."""
ASKED = "asked"
"""The input beside the items for a policy that knows the question."""
UNUSED = -1
"""The id of a slot that holds nothing."""
_LONGEST_WAIT = 5.0
_LONGEST_STATE = 1 << 24  # bytes; far more than any server takes


class MemoryClient:
    """One memory behind a server or in a SavedModel.

    Args:
        target: `http://HOST:PORT[/v1/models/NAME]`, `grpc://HOST:PORT[/NAME]`, `HOST:PORT` (gRPC),
            or a folder with a SavedModel, which is then loaded into this process. Several
            addresses are replicas of one model: requests go to them in turn, and to the next one
            if one is not available.
        name: of the model, if the target does not say it.
        timeout: seconds for each request.
        retries: how often a request is repeated while the server is not available. Requests that
            are wrong are never repeated.
        backoff: seconds before the first repetition; doubles each time.

    The memory stays with the version of the model that the client met first, since another
    version may understand it differently; `reset` starts afresh with the newest.

    With a server that signs states (`lemn serve --state-key`), the client carries the signed string
    too, and asks the server what is in it: two requests for each change instead of one.
    """

    def __init__(
        self,
        target: transport.Target,
        name: str | None = None,
        timeout: float = 30.0,
        retries: int = 5,
        backoff: float = 0.1,
    ):
        if retries < 0:
            raise ValueError(f"expected retries of 0 or more; got {retries}")
        self.retries, self.backoff = retries, backoff
        self._transport = transport.connect(target, name, timeout)
        try:
            self.reset()
        except BaseException:
            self._transport.close()
            raise

    def reset(self) -> None:
        """Starts with an empty memory, on the newest version of the model."""
        self.version, self._signatures = self._patiently(self._transport.describe)
        if "act" in self._signatures:
            raise ValueError(
                "the model is an agent that acts in a world; it does not talk: send what it "
                "observes to its signature 'act' (docs/serving.md shows how)"
            )
        missing = {"initial_state", "observe", "answer"} - self._signatures.keys()
        if missing:
            raise ValueError(
                f"the model keeps no memory: it has the signatures {sorted(self._signatures)}; "
                f"missing {sorted(missing)}"
            )
        self._state: Arrays = {}
        self._signed: Arrays = {}
        self._expected: str | None = None
        self._adopt(self._first())

    def _first(self) -> Arrays:
        """An empty memory, as named tensors or, if the server refuses those, as a signed string."""
        batch = {"batch": np.zeros([1], np.int32)}
        try:
            return self._patiently(self._transport.run, "initial_state", batch)
        except ServingError as refused:
            if refused.code not in (Code.FAILED_PRECONDITION, Code.INVALID_ARGUMENT):
                raise
            try:
                fresh = self._patiently(self._transport.run, "initial_state_packed", batch)
            except (ServingError, KeyError):
                raise refused from None
        return self._opened(fresh)

    # -- the memory -------------------------------------------------------------------------------

    @property
    def state(self) -> Arrays:
        """The memory as flat tensors `[1, ...]`; see `lemn_tf.memory.to_flat`."""
        return dict(self._state)

    @property
    def clock(self) -> int:
        """How many sentences have been observed."""
        return int(self._state["clock"][0])

    def observe(self, text: str) -> Observation | None:
        """Takes in one sentence.

        Returns:
            What became of it (of its last slot, if it fills several); None for an empty one, which
            changes nothing.
        """
        outputs = self._run("observe", item=[text], **self._anticipated())
        return self._decided([text], outputs)[-1]

    def observe_many(self, texts: Iterable[str], chunk: int = 32) -> list[Observation | None]:
        """Takes in sentences in their order, `chunk` of them with each request.

        A reader of documents also takes texts that fill several slots; there is then an observation
        for each slot. A shorter last part is padded: requests of different lengths cannot share a
        batch, and TF Serving refuses those that meet in one.
        """
        if chunk < 1:
            raise ValueError(f"expected a chunk of at least 1 sentence; got {chunk}")
        lines = list(texts)
        seen: list[Observation | None] = []
        for start in range(0, len(lines), chunk):
            part = lines[start : start + chunk]
            padded = part + [""] * (chunk - len(part))
            outputs = self._run("observe_many", items=[padded], **self._anticipated())
            seen += self._decided(part, outputs)
        return seen

    @property
    def aware(self) -> bool:
        """Whether the policy must be told the question before it reads: see `expect`."""
        return ASKED in self._signatures["observe"].inputs

    def expect(self, question: str) -> None:
        """Tells a policy that knows the question what will be asked, before it reads anything."""
        if not self.aware:
            raise ValueError("the model's policy does not use the question: just ask")
        self._expected = question

    def _anticipated(self) -> dict[str, list[str]]:
        """What is sent beside items to a policy that knows the question."""
        if not self.aware:
            return {}
        if not self._expected:
            raise ValueError(
                "the model's policy needs the question: say what will be asked first, "
                "expect(question)"
            )
        return {ASKED: [self._expected]}

    def ask(self, question: str) -> Reply:
        """Answers a question from the memory."""
        outputs = self._run("answer", question=[question])
        attention = outputs["attention"]
        if "attend" in self._signatures:  # the policy wants to know what was useful
            self._adopt(self._run("attend", attention=attention), self._keep)
        weights = dict(zip(outputs["ids"][0].tolist(), attention[0].tolist(), strict=True))
        evidence = [(entry, weights.get(entry.id, 0.0)) for entry in self.memory()]
        evidence.sort(key=lambda pair: -pair[1])
        text, probability = _text(outputs["answer"][0]), float(outputs["probability"][0])
        source = self._entries().get(int(outputs["source"][0])) if "source" in outputs else None
        return Reply(text, probability, tuple(evidence), source)

    def unknown_words(self, text: str) -> list[str]:
        """The words of a text that the model has never seen; none if it cannot tell."""
        if "unknown_words" not in self._signatures:
            return []
        given = {"text": _strings([text])}
        outputs = self._patiently(self._transport.run, "unknown_words", given)
        return list(dict.fromkeys(_text(outputs["words"][0]).split()))

    def memory(self) -> list[Entry]:
        """What is in memory now, oldest first."""
        return list(self._entries().values())

    def forget(self, id: int) -> None:
        """Erases an entry."""
        self._edit("forget", id)

    def pin(self, id: int) -> None:
        """Keeps an entry for good."""
        self._edit("pin", id)

    def unpin(self, id: int) -> None:
        """Takes back a `pin`."""
        self._edit("unpin", id)

    def save(self, path: str | os.PathLike) -> None:
        """Writes the memory to a file.

        `lemn_tf.memory.load` reads it too, and it needs TensorFlow, unless the server signs states:
        the file then holds the signed string.
        """
        if self._signed:
            write_atomically(path, bytes(self._signed[PACKED][0]))
            return
        from lemn_tf import memory

        memory.save(_nested(self._state), path)

    def load(self, path: str | os.PathLike) -> None:
        """Goes on with a saved memory; needs TensorFlow, unless the server signs states.

        Raises:
            ValueError: it is a memory of another kind, or several, or one that no server signed.
            ServingError: another server signed it.
        """
        if self._signed:
            self._adopt(self._opened({PACKED: _read_signed(path)}))
            return
        from lemn_tf import memory

        loaded = memory.load(path, like=_nested(self._state))
        flat = {name: tensor.numpy() for name, tensor in memory.to_flat(loaded).items()}
        if flat["clock"].shape != (1,):
            raise ValueError(f"{path}: expected one memory; got {flat['clock'].shape[0]}")
        self._adopt(flat)

    def close(self) -> None:
        """Closes the connection; the memory is lost unless saved."""
        self._transport.close()

    def __enter__(self) -> MemoryClient:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # -- how --------------------------------------------------------------------------------------

    def _run(self, signature: str, **inputs: Any) -> Arrays:
        """Runs a signature on the memory; what it gives, with the memory as named tensors."""
        if signature not in self._signatures:
            raise ValueError(f"the model has no {signature!r}: {sorted(self._signatures)}")
        arrays = {
            name: value if isinstance(value, np.ndarray) else _strings(value)
            for name, value in inputs.items()
        }
        if not self._signed:
            return self._patiently(self._transport.run, signature, self._state | arrays)
        packed = self._signed | arrays
        return self._opened(self._patiently(self._transport.run, f"{signature}_packed", packed))

    def _opened(self, outputs: Arrays) -> Arrays:
        """Outputs of a packed signature, and beside a packed state the tensors in it."""
        if PACKED not in outputs:
            return outputs
        packed = {PACKED: outputs[PACKED]}
        return outputs | self._patiently(self._transport.run, "unpack", packed)

    def _patiently(self, function: Callable[..., Any], *arguments: Any) -> Any:
        for attempt in range(self.retries + 1):
            try:
                return function(*arguments)
            except ServingError as error:
                if error.code is not Code.UNAVAILABLE or attempt == self.retries:
                    raise
            wait = min(self.backoff * 2**attempt, _LONGEST_WAIT)
            time.sleep(wait * random.uniform(0.5, 1.0))  # so that clients do not come all at once
        raise AssertionError("unreachable")

    def _adopt(
        self, flat: Mapping[str, np.ndarray], keep: Mapping[int, float] | None = None
    ) -> None:
        names = self._signatures["initial_state"].outputs
        self._state = {name: flat[name] for name in names}
        self._signed = {PACKED: flat[PACKED]} if PACKED in flat else {}
        self._keep = dict(keep or {})

    def _edit(self, signature: str, id: int) -> None:
        if id not in self._entries():
            raise KeyError(f"no entry {id} in memory; there are {list(self._entries())}")
        self._adopt(self._run(signature, id=np.array([id], np.int64)), self._keep)

    def _entries(self) -> dict[int, Entry]:
        ids, pinned = self._state["ids"][0].tolist(), self._state["pinned"][0].tolist()
        texts = self._state[TEXT][0].tolist() if TEXT in self._state else [b""] * len(ids)
        return {
            id: Entry(id, _text(text), self._keep.get(id), pin)
            for id, text, pin in zip(ids, texts, pinned, strict=True)
            if id != UNUSED
        }

    def _decided(self, texts: list[str], outputs: Arrays) -> list[Observation | None]:
        """Adopts the new memory and tells what became of each sentence."""
        known, clock = self._entries(), self.clock
        if "slots" in outputs:  # the texts may have filled several slots, or none
            texts = [_text(slot) for slot in outputs["slots"][0] if slot] or [""]
        evicted = outputs["evicted"].reshape([-1]).tolist()
        slots = outputs["slot"].reshape([-1]).tolist()
        keep = outputs["keep"].reshape([len(slots), -1])
        seen: list[Observation | None] = []
        last = None
        for step, text in enumerate(texts):
            if not text:
                seen.append(None)
                continue
            known[clock] = entry = Entry(clock, text)
            seen.append(Observation(entry, known.pop(evicted[step], None)))
            clock, last = clock + 1, step
        if last is None:
            self._adopt(outputs, self._keep)
            return seen
        # The candidates of the last decision: what is there now, and what has left between it.
        candidates = outputs["ids"][0].tolist()
        candidates.insert(slots[last], evicted[last])
        self._adopt(outputs, dict(zip(candidates, keep[last].tolist(), strict=True)))
        return seen


def _strings(value: list) -> np.ndarray:
    """Nested lists of str as an array of UTF-8 bytes."""
    array = np.array(value, object)
    flat = [item.encode("utf-8", "replace") for item in array.ravel()]
    result = np.empty(len(flat), object)
    result[:] = flat
    return result.reshape(array.shape)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _read_signed(path: str | os.PathLike) -> np.ndarray:
    """The packed state `[1]` in a file."""
    with open(path, "rb") as file:
        content = file.read(_LONGEST_STATE)
    if not content.startswith(b"lemn"):
        raise ValueError(f"{path}: expected a memory that its server has signed; this is not one")
    return np.array([content], object)


def _nested(flat: Mapping[str, np.ndarray]) -> MemoryState:
    import tensorflow as tf

    from lemn_tf import memory

    return memory.from_flat({name: tf.constant(value) for name, value in flat.items()})
