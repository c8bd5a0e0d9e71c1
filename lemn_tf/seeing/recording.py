"""Recording: what a model did with a batch of streams, as arrays, traces or lines of a file.

`Seen` holds what is known about a batch, whatever model read it: the memory's decisions and the
outcomes of the questions. `examine` makes it for a `StreamReader`, `examine_model` for a
`MemoryModel` of your own. The model itself does not change, and does no extra work when it is not
examined.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from lemn_tf import retention
from lemn_tf.episode import Episode
from lemn_tf.layer import EpisodicMemory
from lemn_tf.learning.model import Lesson, MemoryModel, Stream
from lemn_tf.learning.rollout import kept_at
from lemn_tf.memory import MemoryState
from lemn_tf.model import StreamReader
from lemn_tf.readers.base import Answer
from lemn_tf.retention.decision import Decision
from lemn_tf.seeing.trace import EMPTY, MATTERS, Asked, Line, Step, Trace
from lemn_tf.tape import Call, MemoryTape

Nest = Any


@dataclasses.dataclass(frozen=True)
class Words:
    """A batch in words, row by row; unknown parts may be left out.

    Attributes:
        items: the items of each stream.
        questions: the questions of each stream.
        answers: what was answered, question by question.
        expected: the right answers.
        kinds: what kind each item is.
        pictures: each item as the address of an image.
    """

    items: Sequence[Sequence[str]] = ()
    questions: Sequence[Sequence[str]] = ()
    answers: Sequence[Sequence[str]] = ()
    expected: Sequence[Sequence[str]] = ()
    kinds: Sequence[Sequence[str]] = ()
    pictures: Sequence[Sequence[str]] = ()

    def get(self, name: str, row: int, place: int) -> str:
        """One of them; empty if it is not known."""
        rows = getattr(self, name)
        return rows[row][place] if row < len(rows) and place < len(rows[row]) else ""


@dataclasses.dataclass(frozen=True)
class Seen:
    """What happened to B streams of T items with Q questions, as NumPy arrays.

    Attributes:
        decisions: of `[B, T, ...]`.
        length: `[B]`, the number of items.
        ask_at: `[B, Q]`, when each question was asked; -1 for padding.
        kept: `[B, Q, N]`, ids in memory then.
        attention: `[B, Q, N]`, the reader's; None if it has none.
        right: `[B, Q]` bool, None where it is not known; None if it never is.
        probability: `[B, Q]`, of the right answer; None if it is not known.
        said: nest of `[B, Q, ...]`, the answers.
        support: `[B, Q, K]`, what each question needs; None without labels.
        flipped: `[B, Q, T]`, the probability if an item were put back, or left out; None unless
            hindsight was asked for.
    """

    decisions: Decision
    length: np.ndarray
    ask_at: np.ndarray
    kept: np.ndarray
    attention: np.ndarray | None = None
    right: np.ndarray | None = None
    probability: np.ndarray | None = None
    said: Nest = None
    support: np.ndarray | None = None
    flipped: np.ndarray | None = None

    def runner_up(self) -> np.ndarray:
        """`[B, T]`: of those that stayed, the likeliest to leave; -1 if there was no choice."""
        d = self.decisions
        stayed = np.where(np.arange(d.ids.shape[-1]) == d.slot[..., None], np.inf, d.keep)
        second = np.take_along_axis(d.ids, stayed.argmin(axis=-1)[..., None], axis=-1)[..., 0]
        return np.where(d.free, second, EMPTY)

    def next_attention(self) -> tuple[np.ndarray, np.ndarray] | None:
        """`[B, T, N + 1]`, of each candidate at the next question, and `[B, T]` if there is one."""
        if self.attention is None:
            return None
        ids, never = self.decisions.ids, np.int64(np.iinfo(np.int64).max)
        times = np.arange(ids.shape[1], dtype=np.int64)[:, None]  # [T, 1]
        at = self.ask_at.astype(np.int64)[:, None]  # [B, 1, Q]
        waiting = np.where(at > times, at, never)
        following, known = waiting.argmin(axis=-1), waiting.min(axis=-1) < never  # [B, T]
        kept = np.take_along_axis(self.kept, following[..., None], axis=1)
        weights = np.take_along_axis(self.attention, following[..., None], axis=1)
        weights = np.where(kept == EMPTY, np.float32(0.0), weights)
        found = np.zeros(ids.shape, np.float32)
        for slot in range(kept.shape[-1]):
            found += (ids == kept[..., slot, None]) * weights[..., slot, None]
        return found, known


def traces(seen: Seen, words: Words = Words(), about: dict[str, Any] | None = None) -> list[Trace]:  # noqa: B008 (frozen)
    """A trace for every stream of a batch.

    Args:
        seen: the batch.
        words: the same in words.
        about: further facts for each trace.
    """
    runner_up, attention = seen.runner_up(), seen.next_attention()
    return [
        Trace(list(_lines(seen, words, row, runner_up, attention)), about)
        for row in range(len(seen.length))
    ]


def as_trace(decisions: Decision, texts: Sequence[str] = (), row: int = 0) -> Trace:
    """The decisions about one stream as a `Trace`.

    Args:
        decisions: what `EpisodicMemory` returned for a stream, of `[B, T, ...]`.
        texts: its items in words.
        row: of the batch.
    """
    told = Decision(*(leaf[row : row + 1] for leaf in numpy(decisions)))
    if told.ids.ndim != 3:
        raise ValueError(
            f"expected decisions about streams, ids [B, T, N + 1]; got {told.ids.shape}"
        )
    nothing = np.zeros([1, 0], np.int64)
    seen = Seen(told, np.array([told.ids.shape[1]]), nothing, nothing[..., None])
    return traces(seen, Words([list(texts)]))[0]


def _lines(seen: Seen, words: Words, row: int, runner_up, attention) -> Iterator[Line]:
    d, questions = seen.decisions, list(questions_of(seen, words, row))
    for t in range(int(seen.length[row])):
        while questions and questions[0].at <= t:
            yield questions.pop(0)
        weights = None
        if attention is not None and attention[1][row, t]:
            weights = tuple(attention[0][row, t].tolist())
        yield Step(
            t=int(d.ids[row, t, -1]),
            ids=tuple(d.ids[row, t].tolist()),
            keep=tuple(d.keep[row, t].tolist()),
            slot=int(d.slot[row, t]),
            margin=float(d.margin[row, t]),
            free=bool(d.free[row, t]),
            runner_up=int(runner_up[row, t]),
            text=words.get("items", row, t),
            picture=words.get("pictures", row, t),
            kind=words.get("kinds", row, t),
            attention=weights,
        )
    yield from questions


def questions_of(seen: Seen, words: Words, row: int) -> Iterator[Asked]:
    """The questions of a stream in the order in which they are asked."""
    asked = [q for q in range(seen.ask_at.shape[1]) if seen.ask_at[row, q] >= 0]
    for number, q in enumerate(sorted(asked, key=lambda q: seen.ask_at[row, q]), 1):

        def at(array, q=q):
            return None if array is None else array[row, q]

        support = () if seen.support is None else at(seen.support)
        right, probability = at(seen.right), at(seen.probability)
        yield Asked(
            number=number,
            at=int(seen.ask_at[row, q]),
            ids=tuple(seen.kept[row, q].tolist()),
            attention=() if seen.attention is None else tuple(at(seen.attention).tolist()),
            text=words.get("questions", row, q),
            answer=words.get("answers", row, q),
            expected=words.get("expected", row, q),
            right=None if right is None else bool(right),
            probability=None if probability is None else float(probability),
            support=tuple(dict.fromkeys(int(one) for one in support if one >= 0)),
            costs=_costs(seen, row, q),
        )


def _costs(seen: Seen, row: int, q: int) -> dict[int, float] | None:
    """What each dropped item would have added to the probability of the right answer."""
    if seen.flipped is None or seen.probability is None:
        return None
    gains = seen.flipped[row, q] - seen.probability[row, q]
    gone = set(range(int(seen.ask_at[row, q]))) - set(seen.kept[row, q].tolist())
    return {item: float(gains[item]) for item in sorted(gone) if gains[item] > MATTERS}


# -- models ---------------------------------------------------------------------------------------


def likeliest(answer: Answer) -> tf.Tensor:
    """The answer that a reader of labels gives."""
    return tf.argmax(answer.logits, axis=-1)


def examine(
    model: StreamReader,
    hindsight: bool = False,
    said: Callable[[Answer], Nest] = likeliest,
    spec: Episode | None = None,
) -> Callable[[Episode], Seen]:
    """A function from an episode to what a `StreamReader` made of it, acting greedily.

    Args:
        model: the model.
        hindsight: also try every dropped item in hindsight, which takes longer.
        said: function from the reader's `Answer` to what is shown of it.
        spec: of every episode, if it is known: then the model is traced once, whatever the shapes.
    """

    def run(episode: Episode) -> dict[str, Any]:
        model._meet(episode)
        decisions, kept = model.act(episode, seed=tf.constant([0, 0]))
        codes = model.reader.encode(episode["items"])
        answer = model.answer(episode, kept, codes)
        told = {
            "decisions": decisions,
            "kept": kept,
            "attention": answer.attention,
            "right": model.reader.right(answer, episode["answers"]),
            "probability": model.reader.probability(answer, episode["answers"]),
            "said": said(answer),
        }
        if hindsight:
            query = model.reader.ask(episode["questions"])
            told["flipped"] = model.reader.flipped(query, codes, kept, episode["answers"])
        return told

    # Hindsight loops over the items of a stream and must know their number.
    signature = None if spec is None else [_static(spec)]
    relaxed = spec is None and not hindsight
    program = tf.function(run, signature, autograph=False, reduce_retracing=relaxed)

    def seen(episode: Episode) -> Seen:
        told = numpy(program(_static(episode)))
        support = episode.get("support")
        return Seen(
            length=np.asarray(episode["length"]),
            ask_at=np.asarray(episode["ask_at"]),
            support=None if support is None else np.asarray(support),
            **told,
        )

    return seen


def _static(episode: Episode) -> dict[str, Any]:
    """What a model reads of an episode, without further keys."""
    names = ("items", "length", "questions", "ask_at", "answers", "support")
    given: dict[str, Any] = {**episode}
    return {name: given[name] for name in names if given.get(name) is not None}


def examine_model(
    model: MemoryModel,
    x: Nest,
    y: Nest = None,
    memory: int = 0,
    hindsight: bool = False,
    variants: int = 64,
    rule: str | None = None,
) -> Seen:
    """What one memory in your own model did with a batch, and what the model answered.

    Args:
        model: any Keras model with an `EpisodicMemory` in it; one whose `fit` trains its memories
            (`MemoryModel`, compiled with a loss) can also say what its answers are worth.
        x, y: a batch, as `fit` takes it; without y the answers cannot be judged.
        memory: which of its memories, in the order in which they are called.
        hindsight: also try dropped items in hindsight.
        variants: how many of a stream are tried.
        rule: a policy without weights in the place of the model's own.
    """

    def run() -> dict[str, Any]:
        answers, calls = with_rules(model, x, rules)
        if memory >= len(calls):
            raise ValueError(
                f"expected a memory {memory} in the model {model.name!r}; it called {len(calls)}"
            )
        call = calls[memory]
        stream = Stream.of(call)
        ask_at = stream.length[:, None] if call.ask_at is None else tf.cast(call.ask_at, tf.int32)
        told = {
            "decisions": stream.decisions,
            "length": stream.length,
            "ask_at": ask_at,
            "kept": kept_at(stream.decisions.ids, stream.decisions.slot, ask_at),
            "said": answers,
        }
        if y is None or getattr(model, "sample_loss", None) is None:
            return told
        lesson = Lesson(model, x, y, None, answers, calls, memory)
        rollout = lesson.rollout(None, variants, tf.constant([0, 0]))
        told["probability"] = rollout.probability
        if hindsight:
            told["flipped"] = rollout.flipped()
        return told

    x = tf.nest.map_structure(tf.convert_to_tensor, x)
    y = None if y is None else tf.nest.map_structure(tf.convert_to_tensor, y)
    rules = None if rule is None else memories_like(model, x, rule)
    told = numpy(tf.function(run, autograph=False)())
    return Seen(right=_right(told["said"], y, told["ask_at"].shape), **told)


def memories_like(model: keras.Model, x: Nest, rule: str) -> list[EpisodicMemory]:
    """A memory with that rule for each of a model's own."""
    if retention.get(rule).learns:
        raise ValueError(f"{rule} is learned: expected a rule to put in its place")
    with MemoryTape() as tape:
        model(tf.nest.map_structure(lambda leaf: leaf[:1], x), training=False)
    layers = [call.layer for call in tape.calls]
    return [EpisodicMemory(layer.slots, rule, layer.encoder) for layer in layers]


def with_rules(
    model: keras.Model,
    x: Nest,
    rules: Sequence[EpisodicMemory] | None = None,
    slots: int | None = None,
) -> tuple[Nest, list[Call]]:
    """What a model answers, and how it called its memories, or `rules` in their place.

    Each of these then sees the same stream as before.
    """
    with MemoryTape(slots=slots) as tape:
        answers = model(x, training=False)
    if rules is None:
        return answers, tape.calls
    calls = []
    for call, other in zip(tape.calls, rules, strict=True):
        given = {} if call.ask_at is None else {"ask_at": call.ask_at}
        state, decisions = other(call.items, mask=call.mask, slots=slots, **given)
        if isinstance(state, MemoryState):  # a rule remembers other things than the policy
            state = state._replace(carry=call.returned[0].carry)
        calls.append(call._replace(returned=(state, decisions)))
    with MemoryTape(instead=[call.returned for call in calls]):
        return model(x, training=False), calls


def _right(said: Nest, y: Nest, shape: tuple[int, ...]) -> np.ndarray | None:
    """Whether answers that are classes are right; None for answers of another kind."""
    if y is None or not isinstance(said, np.ndarray) or len(tf.nest.flatten(y)) != 1:
        return None
    labels = np.asarray(tf.nest.flatten(y)[0])
    if said.ndim < 2 or said.shape[-1] < 2:
        return None
    guess = said.argmax(axis=-1)
    if labels.shape == said.shape and labels.ndim > 1:
        labels = labels.argmax(axis=-1)
    if not np.issubdtype(labels.dtype, np.integer) or labels.size != guess.size:
        return None
    right = guess.reshape(-1) == labels.reshape(-1)
    return right.reshape(shape) if right.size == np.prod(shape) else None


def numpy(nest: Nest) -> Nest:
    """A nest of tensors as one of arrays."""
    return tf.nest.map_structure(lambda leaf: leaf.numpy(), nest)
