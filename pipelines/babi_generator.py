"""A seeded generator of bAbI streams: Original, Noisy and Large, without a download.

It plays a small world of people who walk, pick things up and drop them, tells each event in one
sentence, and asks where a thing is once two facts together say so. The rules were read off the
published files, event by event:

- *Original* (task 2). A random person moves, picks or drops; whatever is impossible is drawn
  again. After every second fact, if some object was touched among the last five facts and its
  place follows from two facts (picked, then carried; or carried, then dropped), one such object
  is asked for, at once. A story ends with its fifth question. Questions thus favour what just
  happened.
- *Noisy*. A third of the events are moves, the rest are drawn from all picks and drops that are
  possible. After every eighth fact any object that somebody holds, at a known place, is asked
  for, however long ago it was picked up: questions say nothing about recency. The last four
  tenths of the stories carry more and more noise, sentences about people and animals that no
  question needs.
- *Large*. The world of Noisy with 20 to 80 lines in a story and questions at any line.
"""

import os
import string
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .babi import Question, Story, write_stories

QUESTIONS = 5
RECENT = 5  # Original asks only for objects touched in this many last facts
OBJECTS = ("apple", "football", "milk")


@dataclass(frozen=True)
class Setting:
    """The people, places and sentences of a variant; templates take a person and a name."""

    people: tuple[str, ...]
    places: tuple[str, ...]
    moves: tuple[str, ...]
    picks: tuple[str, ...]
    drops: tuple[str, ...]
    start_held: float  # how likely an object is in somebody's hands when the story begins


_MOVES = ("journeyed", "moved", "travelled", "went")
_ORIGINAL_DROPS = ("discarded", "dropped", "left", "put down")


def _templates(verbs: Sequence[str], rest: str) -> tuple[str, ...]:
    return tuple(f"{{}} {verb} {rest}" for verb in verbs)


ORIGINAL = Setting(
    people=("Daniel", "John", "Mary", "Sandra"),
    places=("bathroom", "bedroom", "garden", "hallway", "kitchen", "office"),
    moves=_templates((*_MOVES, "went back"), "to the {}."),
    picks=_templates(("got", "grabbed", "picked up", "took"), "the {} there."),
    drops=4 * _templates(_ORIGINAL_DROPS, "the {}.")  # one drop in five says "there"
    + _templates(_ORIGINAL_DROPS, "the {} there."),
    start_held=0.0,
)
NOISY = Setting(
    people=("John", "Mary", "Sandra"),
    places=("bedroom", "garden", "hallway", "kitchen"),
    moves=_templates(_MOVES, "to the {}."),
    picks=_templates(("got", "grabbed", "took"), "the {}."),
    drops=_templates(("dropped", "let go of", "put down"), "the {}."),
    start_held=0.12,
)
# How likely a fact is noise, by the tenth of the file that its story is in.
NOISE = (0, 0, 0, 0, 0, 0, 0.15, 0.29, 0.45, 0.59)
_ATTRIBUTES = (
    ("green", "gray", "yellow"),
    ("bored", "hungry", "thirsty"),
    ("a wolf", "a cat", "a mouse"),
)
_ANIMALS = ("cats", "mice", "sheep", "wolves")
VARIANTS = ("original", "noisy", "large")


class _Dice:
    """Choices from NumPy's plain doubles, whose stream is stable across its versions."""

    def __init__(self, *seed: int):
        self._generator = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed)))
        self._ready: list[float] = []

    def chance(self) -> float:
        if not self._ready:
            self._ready = self._generator.random(256).tolist()
        return self._ready.pop()

    def choice(self, options: Sequence):
        return options[int(self.chance() * len(options))]

    def sample(self, options: Sequence, count: int) -> list:
        rest = list(options)
        return [rest.pop(int(self.chance() * len(rest))) for _ in range(count)]


class _World:
    """Where everybody and everything is, and which facts said so."""

    def __init__(self, setting: Setting, dice: _Dice):
        self.setting, self.dice = setting, dice
        self.facts: list[str] = []
        self.place = {person: dice.choice(setting.places) for person in setting.people}
        self.holder: dict[str, str | None] = dict.fromkeys(OBJECTS)
        self.spot = {thing: dice.choice(setting.places) for thing in OBJECTS}
        for thing in OBJECTS:
            if dice.chance() < setting.start_held:
                self.holder[thing] = dice.choice(setting.people)
        self.moved: dict[str, int] = {}  # person -> fact of the last move
        self.touched: dict[str, int] = {}  # object -> fact of the last pick or drop
        self.laid: dict[str, int | None] = {}  # object -> fact that said where the dropper was

    def snapshot(self) -> tuple:
        state = (self.place, self.holder, self.spot, self.moved, self.touched, self.laid)
        return (len(self.facts), *map(dict, state))

    def restore(self, snapshot: tuple) -> None:
        count, *state = snapshot
        del self.facts[count:]
        self.place, self.holder, self.spot, self.moved, self.touched, self.laid = map(dict, state)

    def options(self) -> list[tuple[str, str]]:
        """Every (person, object) such that the person can pick up or drop the object."""
        return [
            (person, thing)
            for person in self.setting.people
            for thing in OBJECTS
            if self.holder[thing] == person
            or (self.holder[thing] is None and self.spot[thing] == self.place[person])
        ]

    def move(self) -> None:
        person = self.dice.choice(self.setting.people)
        here = self.place[person]
        place = self.dice.choice([place for place in self.setting.places if place != here])
        self.place[person], self.moved[person] = place, len(self.facts)
        self.facts.append(self.dice.choice(self.setting.moves).format(person, place))

    def handle(self, person: str, thing: str) -> None:
        """The person drops the object, or picks it up."""
        if self.holder[thing] == person:
            self.holder[thing], self.spot[thing] = None, self.place[person]
            self.laid[thing] = self.moved.get(person)
            template = self.dice.choice(self.setting.drops)
        else:
            self.holder[thing] = person
            template = self.dice.choice(self.setting.picks)
        self.touched[thing] = len(self.facts)
        self.facts.append(template.format(person, thing))

    def support(self, thing: str) -> tuple[int, int] | None:
        """The facts that tell where an object is: its last pick or drop, and a move."""
        if thing not in self.touched:
            return None
        holder = self.holder[thing]
        told = self.laid[thing] if holder is None else self.moved.get(holder)
        return None if told is None else (self.touched[thing], told)

    def question(self, thing: str, support: tuple[int, ...]) -> Question:
        holder = self.holder[thing]
        answer = self.spot[thing] if holder is None else self.place[holder]
        return Question(f"Where is the {thing}?", answer, support, len(self.facts))


def _original(dice: _Dice) -> Story:
    world, questions = _World(ORIGINAL, dice), list[Question]()
    while len(questions) < QUESTIONS:
        for _ in range(2):
            options = world.options()
            # Weight 1 for each (person, pick or drop) that is possible, 3.2 for a move.
            acts = sorted({(person, world.holder[thing] is None) for person, thing in options})
            if dice.chance() * (3.2 + len(acts)) < 3.2:
                world.move()
                continue
            person, pick = dice.choice(acts)
            mine = [o for o in options if o[0] == person and (world.holder[o[1]] is None) == pick]
            world.handle(*dice.choice(mine))
        candidates = []
        for thing in OBJECTS:
            support = world.support(thing)
            if support and support[0] >= len(world.facts) - RECENT:
                carried = world.holder[thing] is not None and support[1] > support[0]
                if carried or world.holder[thing] is None:
                    candidates.append((thing, support))
        if candidates:
            questions.append(world.question(*dice.choice(candidates)))
    return Story(tuple(world.facts), tuple(questions))


def _noise_sentences(dice: _Dice, people: Sequence[str]) -> list[str]:
    """Thirteen statements that do not contradict each other."""
    sentences = []
    for values in _ATTRIBUTES:
        for person, value in zip(people, dice.sample(values, len(people)), strict=True):
            sentences.append(f"{person} is {value}.")
    for animal in _ANIMALS:
        other = dice.choice([name for name in _ANIMALS if name != animal])
        sentences.append(f"{string.capwords(animal)} are afraid of {other}.")
    return sentences


def _held(dice: _Dice, noise: float, asked_after: Sequence[int], count: int) -> Story:
    """A story of Noisy's world: `count` facts, questions after given numbers of them."""
    while True:  # starts again if nobody holds anything in time, which is rare
        world, questions = _World(NOISY, dice), []
        sentences = _noise_sentences(dice, NOISY.people)
        for end in asked_after:
            candidates = _play_to_question(world, end, noise, sentences)
            if not candidates:
                break
            thing = dice.choice(candidates)
            questions.append(world.question(thing, tuple(sorted(world.support(thing) or ()))))
        else:
            _play(world, count, noise, sentences)
            return Story(tuple(world.facts), tuple(questions))


def _play(world: _World, end: int, noise: float, sentences: Sequence[str]) -> None:
    """Adds facts until there are `end`."""
    while len(world.facts) < end:
        if world.dice.chance() < noise:
            world.facts.append(world.dice.choice(sentences))
            continue
        options = world.options()
        if not options or world.dice.chance() < 1 / 3:
            world.move()
        else:
            world.handle(*world.dice.choice(options))


def _play_to_question(world: _World, end: int, noise: float, sentences: Sequence[str]) -> list[str]:
    """Tries again until some object is in known hands after `end` facts."""
    before = world.snapshot()
    for _ in range(100):
        world.restore(before)
        _play(world, end, noise, sentences)
        held = [thing for thing in OBJECTS if world.holder[thing] and world.support(thing)]
        if held:
            return held
    return []


def generate(variant: str, episodes: int, seed: int) -> list[Story]:
    """Generates stories of a variant.

    Args:
        variant: "original", "noisy" or "large".
        episodes: how many stories.
        seed: the same seed gives the same stories on every machine.

    Returns:
        The stories. In Noisy and Large the last four tenths carry noise, the last the most.

    Example:

    >>> story = generate("noisy", episodes=1, seed=1)[0]
    >>> len(story.facts), [question.asked_after for question in story.questions]
    (40, [8, 16, 24, 32, 40])
    """
    if variant not in VARIANTS:
        raise ValueError(f"expected a variant of {', '.join(VARIANTS)}, got {variant!r}")
    if episodes < 1 or seed < 0:
        raise ValueError(f"expected episodes >= 1 and seed >= 0, got {episodes} and {seed}")
    stories = []
    for episode in range(episodes):
        dice = _Dice(seed, VARIANTS.index(variant), episode)
        noise = NOISE[episode * 10 // episodes]
        if variant == "original":
            stories.append(_original(dice))
        elif variant == "noisy":
            stories.append(_held(dice, noise, range(8, 41, 8), 40))
        else:
            lines = 20 + int(dice.chance() * 61)
            asked = sorted(dice.sample(range(4, lines), QUESTIONS))  # lines before the question
            after = [line - before for before, line in enumerate(asked)]
            stories.append(_held(dice, noise, after, lines - QUESTIONS))
    return stories


def write_splits(
    variant: str, episodes: int, seed: int, folder: str | os.PathLike
) -> dict[str, Path]:
    """Generates stories and writes them to train, valid and test files (8 : 1 : 1).

    Args:
        variant, episodes, seed: as for `generate`.
        folder: for the files.

    Returns:
        The files by the name of the split.
    """
    stories = generate(variant, episodes, seed)
    # Noisy and Large grow noisier from the first story to the last: every split gets its share.
    parts = {
        "train": [story for i, story in enumerate(stories) if i % 10 < 8],
        "valid": stories[8::10],
        "test": stories[9::10],
    }
    files = {split: Path(folder) / f"{variant}_{split}.txt" for split in parts}
    for split, path in files.items():
        write_stories(parts[split], path)
    return files
