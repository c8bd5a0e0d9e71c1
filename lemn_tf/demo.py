"""`lemn demo`: the same stories through every policy, and what each still held when asked."""

from __future__ import annotations

import time
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from lemn_tf import EpisodicMemory, evaluation, retention
from lemn_tf.pipelines import babi, babi_generator
from lemn_tf.text import Vocabulary

WIDTH = 16
"""Of the random word vectors that the policies see here."""
LEARNED = ("im-lemn", "s-lemn", "st-lemn")
REMARKS = {
    "fifo": "a sliding window",
    "lifo": "keeps the first items",
    "uniform": "evicts at random",
    "lru": "no reader here to tell it what is used",
    "oracle": "knows the questions to come: a bound",
    **dict.fromkeys(LEARNED, "untrained: random weights"),
}


@dataclass(frozen=True)
class Outcome:
    """What a policy did: `kept` ids `[S, Q, N]` at each question, and the shares still there."""

    kept: np.ndarray
    facts: float
    questions: float


def compare(data: dict[str, np.ndarray], slots: int, seed: int) -> dict[str, Outcome]:
    """Runs every policy over encoded stories.

    Args:
        data: what `lemn_tf.pipelines.babi.encode` returned.
        slots: N, the size of each memory.
        seed: of the word vectors, the weights and the draws.

    Returns:
        The outcome of each policy, by name.
    """
    keras.utils.set_random_seed(seed)
    words = np.random.default_rng(seed).normal(size=[data["items"].max() + 1, WIDTH])
    words[0] = 0.0  # padding
    vectors = words[data["items"]].sum(axis=2).astype(np.float32) / np.sqrt(WIDTH)
    steps = vectors.shape[1]
    needed = evaluation.needed_at(data["support"], data["ask_at"], steps)
    mask = tf.sequence_mask(data["length"], steps)
    outcomes = {}
    for name in retention.NAMES:
        layer = EpisodicMemory(slots, name)
        draws = [seed, 0] if layer.policy.stochastic else None

        def stream(items, layer=layer, draws=draws):
            _, decisions = layer(items, mask=mask, seed=draws)
            return decisions.ids, decisions.slot

        items = tf.constant(needed if name == "oracle" else vectors)
        spec = tf.TensorSpec(items.shape, items.dtype)
        ids, slot = tf.function(stream, autograph=False).get_concrete_function(spec)(items)
        kept = evaluation.kept_at(ids.numpy(), slot.numpy(), data["ask_at"])
        recall = evaluation.support_recall(kept, data["support"], data["ask_at"])
        outcomes[name] = Outcome(kept, **recall)
    return outcomes


def sample(stories: list[babi.Story], outcomes: dict[str, Outcome]) -> tuple[int, int]:
    """A telling story and question: short, and needing a fact that FIFO has lost."""
    fifo = outcomes["fifo"].kept
    for least, most in ((10, 20), (1, 40), (0, 10**9)):
        for s, story in enumerate(stories):
            for q, question in enumerate(story.questions):
                lost = not set(question.support) <= set(fifo[s, q].tolist())
                if (lost or not least) and least <= question.asked_after <= most:
                    return s, q
    raise ValueError("expected stories with questions; got none")


def run(variant: str, episodes: int, slots: int, seed: int) -> None:
    """Generates stories, runs every policy and prints two tables."""
    from rich.console import Console
    from rich.table import Table

    begun = time.perf_counter()
    stories = babi_generator.generate(variant, episodes, seed)
    vocabulary = Vocabulary.build(babi.texts(stories), babi.answers(stories))
    data = babi.encode(stories, vocabulary)
    outcomes = compare(data, slots, seed)
    console = Console(width=None if Console().is_terminal else 110)

    s, q = sample(stories, outcomes)
    story, question = stories[s], stories[s].questions[q]
    console.print(
        f"\nOne of the stories. {question.asked_after} facts have come in, {slots} could be kept; "
        f"now somebody asks:\n[bold]{question.text}[/bold] ({question.answer})\n"
    )
    table = Table(title="what each policy still holds (the question needs the marked facts)")
    table.add_column("fact")
    for name in outcomes:
        table.add_column(name, justify="center")
    for t, fact in enumerate(story.facts[: question.asked_after]):
        needed = t in question.support
        marks = ["●" if t in o.kept[s, q] else "" for o in outcomes.values()]
        text = f"{'>' if needed else ' '} {t + 1:2d} {fact}"
        table.add_row(text, *marks, style="bold green" if needed else None)
    console.print(table)

    count = int((data["ask_at"] >= 0).sum())
    table = Table(title=f"{episodes} stories ({variant}), {count} questions, {slots} slots")
    table.add_column("policy")
    table.add_column("needed facts still there", justify="right")
    table.add_column("questions with all of them", justify="right")
    table.add_column("")
    for name, outcome in sorted(outcomes.items(), key=lambda pair: pair[1].questions):
        shares = (f"{outcome.facts:.1%}", f"{outcome.questions:.1%}")
        table.add_row(name, *shares, REMARKS[name])
    console.print(table)
    console.print(f"{time.perf_counter() - begun:.0f} seconds.")
