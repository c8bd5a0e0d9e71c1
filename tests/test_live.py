"""A reader one can talk to: text in, text out, and a memory one can look into."""

import pytest

from lemn_tf import live, runs
from lemn_tf.live import LiveReader
from lemn_tf.model import StreamReader
from lemn_tf.readers import MemN2N

STORY = (
    "Mary got the milk.",
    "Sandra is bored.",
    "Mary went to the garden.",
    "Mice are afraid of wolves.",
    "John went to the kitchen.",
    "John is hungry.",
    "Sandra moved to the hallway.",
)


@pytest.fixture(scope="module")
def model():
    return runs.load("babi-noisy-st-lemn-5")


@pytest.fixture
def reader(model):
    return LiveReader(model)


def test_the_story_of_the_readme(reader):
    dropped = [reader.observe(sentence).dropped for sentence in STORY]
    assert [entry and entry.id for entry in dropped] == [None] * 5 + [5, 3]
    assert dropped[5].text == "John is hungry."
    answer = reader.ask("Where is the milk?")
    assert answer.text == "garden"
    assert 0.5 < answer.probability <= 1
    assert {entry.text for entry, _ in answer.evidence[:2]} == {STORY[0], STORY[2]}
    assert [entry.id for entry in reader.memory()] == [0, 1, 2, 4, 6]
    assert all(0 <= entry.keep <= 1 for entry in reader.memory())


def test_asking_changes_nothing_and_resetting_everything(reader):
    reader.observe(STORY[0])
    before = reader.memory()
    reader.ask("Where is the milk?")
    assert reader.memory() == before
    reader.reset()
    assert reader.memory() == []


def test_what_is_pinned_stays(reader):
    reader.observe("Mice are afraid of wolves.", pin=True)
    for sentence in STORY * 2:
        reader.observe(sentence)
    first = reader.memory()[0]
    assert (first.id, first.pinned) == (0, True)


def test_what_would_leave_at_once_stays_if_it_is_pinned(reader):
    for sentence in STORY[:5]:
        reader.observe(sentence)
    hungry = STORY[5]
    assert reader.observe(hungry, dry_run=True).dropped.text == hungry
    seen = reader.observe(hungry, pin=True)
    assert seen.dropped.text != hungry
    assert [entry.text for entry in reader.memory() if entry.pinned] == [hungry]


def test_texts_pinned_together_push_out_none_of_each_other(reader):
    seen = reader.observe_many(STORY[:3], pin=True)
    reader.observe_many(STORY)
    assert [entry.id for entry in reader.memory() if entry.pinned] == [0, 1, 2]
    assert [one.dropped for one in seen] == [None] * 3


def test_with_every_slot_pinned_nothing_more_is_stored(reader):
    last = reader.observe_many(STORY[:6], pin=True)[-1]
    assert (last.dropped, last.entry.pinned) == (last.entry, False)
    assert [entry.id for entry in reader.memory()] == [0, 1, 2, 3, 4]


def test_whole_streams_at_once_are_read_as_one_by_one(reader):
    streams = [STORY, STORY[:3], STORY[2:]]
    questions = ["Where is the milk?", "Where is Mary?", "Where is Sandra?"]
    together = reader.predict(streams, questions)
    one_by_one = []
    for stream, question in zip(streams, questions, strict=True):
        reader.reset()
        for sentence in stream:
            reader.observe(sentence)
        one_by_one.append(reader.ask(question).text)
    assert together == one_by_one
    assert reader.predict([], []) == []


def test_a_memory_is_saved_and_goes_on(reader, model, tmp_path):
    for sentence in STORY[:4]:
        reader.observe(sentence)
    reader.save(tmp_path / "mary.memory")
    other = LiveReader(model)
    other.load(tmp_path / "mary.memory")
    for one in (reader, other):
        for sentence in STORY[4:]:
            one.observe(sentence)
    assert other.memory() == reader.memory()


def test_unknown_words(reader):
    assert reader.unknown_words("Mary took the zeppelin to the Garden!") == ["zeppelin"]


def test_bad_input(reader):
    for text in ("", "  ", None, 3, ["Mary"]):
        with pytest.raises(ValueError, match="expected a sentence in words; got"):
            reader.observe(text)
        with pytest.raises(ValueError, match="expected a question in words; got"):
            reader.ask(text)
    with pytest.raises(TypeError, match="each a list of sentences; got a string"):
        reader.predict(["Mary went home."], ["Where is Mary?"])
    with pytest.raises(ValueError, match="got 1 streams and 2 questions"):
        reader.predict([["Mary went home."]], ["Where is Mary?", "Where is John?"])
    with pytest.raises(ValueError, match="expected a StreamReader with a Vocabulary"):
        live.LiveReader(StreamReader(MemN2N(9, 3), 2, "fifo"))


def test_what_leaves_goes_to_the_sink(model):
    gone = []
    reader = LiveReader(model, sink=gone.append)
    for sentence in STORY:
        reader.observe(sentence)
    assert [entry.text for entry in gone] == ["John is hungry.", "Mice are afraid of wolves."]


def test_a_dry_run_changes_nothing(model):
    gone = []
    reader = LiveReader(model, sink=gone.append)
    for sentence in STORY[:5]:
        reader.observe(sentence)
    before = reader.memory()
    shown = reader.observe(STORY[5], dry_run=True)
    assert shown.dropped.text == STORY[5]
    assert reader.memory() == before
    assert gone == []
    assert reader.observe(STORY[5]) == shown
