"""Reading, writing, encoding and batching bAbI streams, and fetching the archive."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.pipelines import babi, babi_generator
from lemn_tf.pipelines import text as batches
from lemn_tf.pipelines.babi import Question, Story
from lemn_tf.text import Vocabulary

TWO_STORIES = (
    "1 Mary got the milk.\n"
    "2 Where is Mary?\tnobody-knows\n"
    "3 Mary went to the garden.\n"
    "4 Where is the milk? \tgarden\t1 3\n"
    "1 John left.\n"
    "2 What is this?\tmilk,football\t\n"
)
STORIES = [
    Story(
        ("Mary got the milk.", "Mary went to the garden."),
        (
            Question("Where is Mary?", "nobody-knows", (), 1),
            Question("Where is the milk?", "garden", (0, 1), 2),
        ),
    ),
    Story(("John left.",), (Question("What is this?", "milk,football", (), 1),)),
]


@pytest.fixture(scope="module")
def stories() -> list[Story]:
    return babi_generator.generate("original", episodes=40, seed=3)


@pytest.fixture(scope="module")
def vocabulary(stories) -> Vocabulary:
    return Vocabulary.from_texts(babi.texts(stories), babi.answers(stories))


@pytest.fixture(scope="module")
def data(stories, vocabulary) -> dict[str, np.ndarray]:
    return babi.encode(stories, vocabulary)


def written(tmp_path, content: str | bytes, name: str = "stories.txt"):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# Reading and writing


def test_reads_facts_questions_and_support(tmp_path):
    assert babi.read_stories(written(tmp_path, TWO_STORIES)) == STORIES
    paths = [written(tmp_path, TWO_STORIES, name) for name in "ab"]
    assert babi.read_stories(paths) == STORIES * 2
    assert babi.read_stories(str(paths[0])) == STORIES


@pytest.mark.parametrize(
    "content",
    [
        TWO_STORIES.replace("\n", "\r\n"),
        b"\xef\xbb\xbf" + TWO_STORIES.encode(),
        TWO_STORIES + "\n \n\r\n",
        TWO_STORIES.rstrip("\n"),
        TWO_STORIES.replace("\n1 ", "\n\n1 "),
    ],
    ids=["crlf", "bom", "blank lines at the end", "no last newline", "blank line between"],
)
def test_reads_what_editors_make_of_it(tmp_path, content):
    assert babi.read_stories(written(tmp_path, content)) == STORIES


def test_bytes_that_are_not_utf8_do_not_stop_reading(tmp_path):
    story = babi.read_stories(written(tmp_path, b"1 Mary\xff left.\n"))[0]
    assert story == Story(("Mary\ufffd left.",), ())


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("1 A.\nB went.\n", 2, "a line number, a space and a sentence, got 'B went.'"),
        ("1 A.\n2\n", 2, "a line number, a space and a sentence, got '2'"),
        ("2 A.\n", 1, "line number 1, got 2"),
        ("1 A.\n2 B.\n2 C.\n", 3, "line number 1 or one above 2, got 2"),
        ("1 A.\n2 Where?\t\t1\n", 2, "question <tab> answer"),
        ("1 A.\n2 \tgarden\t1\n", 2, "question <tab> answer"),
        ("1 A.\n2 Where?\tgarden\t1\tmore\n", 2, "question <tab> answer"),
        ("1 A.\n\n2 Where?\tgarden\tone\n", 3, "line numbers of earlier facts .* got 'one'"),
        ("1 A.\n2 Where?\tgarden\t3\n3 B.\n", 2, "line numbers of earlier facts .* got '3'"),
        ("1 A.\n2 Q?\tx\t1\n3 Q?\tx\t2\n", 3, "line numbers of earlier facts .* got '2'"),
        ("1 A.\n1 B.\n2 Q?\tx\t2\n", 3, "line numbers of earlier facts .* got '2'"),
    ],
)
def test_a_malformed_line_is_named(tmp_path, content, line, message):
    path = written(tmp_path, content)
    with pytest.raises(ValueError, match=rf"stories\.txt, line {line}: expected .*{message}"):
        babi.read_stories(path)


def test_an_empty_file_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="at least one story"):
        babi.read_stories(written(tmp_path, "\n\n"))
    with pytest.raises(FileNotFoundError):
        babi.read_stories(tmp_path / "none.txt")


def test_round_trip(tmp_path, stories):
    path = tmp_path / "new" / "stories.txt"
    babi.write_stories([*stories, *STORIES], path)
    assert babi.read_stories(path) == [*stories, *STORIES]
    content = path.read_bytes()
    babi.write_stories(babi.read_stories(path), path)
    assert path.read_bytes() == content


def test_a_failed_write_leaves_the_old_file_alone(tmp_path):
    path = written(tmp_path, TWO_STORIES)
    bad = Story(("A.",), (Question("Q?", "x", (), 2),))
    with pytest.raises(ValueError, match="after at most 1 facts"):
        babi.write_stories([*STORIES, bad], path)
    assert path.read_text() == TWO_STORIES
    assert list(tmp_path.iterdir()) == [path]


def test_texts_and_answers():
    assert babi.texts(STORIES * 2)[:3] == [*STORIES[0].facts, "Where is Mary?"]
    assert len(babi.texts(STORIES * 2)) == 6
    assert babi.answers(STORIES * 2) == ["nobody-knows", "garden", "milk,football"]


# Encoding


def test_encode(tmp_path):
    vocabulary = Vocabulary.from_texts(babi.texts(STORIES), ["garden", "milk,football"])
    data = babi.encode(STORIES, vocabulary)
    assert {array.dtype for array in data.values()} == {np.dtype(np.int32)}
    assert data["items"].shape == (2, 2, 5)
    assert vocabulary.text(data["items"]).numpy().tolist() == [
        [b"mary got the milk", b"mary went to the garden"],
        [b"john left", b""],
    ]
    assert vocabulary.text(data["questions"])[0, 1] == b"where is the milk"
    np.testing.assert_array_equal(data["length"], [2, 1])
    np.testing.assert_array_equal(data["ask_at"], [[1, 2], [1, -1]])
    answer = vocabulary.lookup(["garden", "milk,football"]).numpy()
    np.testing.assert_array_equal(data["answers"], [[-1, answer[0]], [answer[1], -1]])
    np.testing.assert_array_equal(data["support"], [[[-1, -1], [0, 1]], [[-1, -1], [-1, -1]]])


def test_encode_with_stored_questions():
    vocabulary = Vocabulary.from_texts(babi.texts(STORIES), babi.answers(STORIES))
    data = babi.encode(STORIES, vocabulary, store_questions=True)
    assert vocabulary.text(data["items"]).numpy().tolist() == [
        [b"mary got the milk", b"where is mary", b"mary went to the garden", b"where is the milk"],
        [b"john left", b"what is this", b"", b""],
    ]
    np.testing.assert_array_equal(data["length"], [4, 2])
    np.testing.assert_array_equal(data["ask_at"], [[1, 3], [1, -1]])
    np.testing.assert_array_equal(data["support"][0], [[-1, -1], [0, 2]])


@pytest.mark.parametrize("store_questions", [False, True])
def test_support_points_at_the_same_sentences(stories, vocabulary, store_questions):
    data = babi.encode(stories, vocabulary, store_questions)
    items = vocabulary.text(data["items"]).numpy()
    for s, story in enumerate(stories):
        for q, question in enumerate(story.questions):
            facts = vocabulary.text(vocabulary([story.facts[i] for i in question.support]))
            assert (items[s, data["support"][s, q]] == facts).numpy().all()
            assert data["support"][s, q].max() < data["ask_at"][s, q]


def test_encode_stories_without_facts_or_questions(vocabulary):
    data = babi.encode([Story((), ()), Story((), (Question("Where?", "x", (), 0),))], vocabulary)
    assert data["items"].shape[:2] == (2, 0)
    np.testing.assert_array_equal(data["answers"], [[-1], [-1]])  # a word it does not know
    assert babi.encode([Story((), ())], vocabulary)["questions"].shape == (1, 0, 0)
    with pytest.raises(ValueError, match="at least one story"):
        babi.encode([], vocabulary)


# Batches


def collect(dataset: tf.data.Dataset, count: int | None = None) -> list[dict]:
    return [
        {name: value.numpy() for name, value in batch.items()}
        for batch in itertools.islice(dataset, count)
    ]


def same(left: list[dict], right: list[dict]) -> bool:
    return len(left) == len(right) and all(
        a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)
        for a, b in zip(left, right, strict=True)
    )


def test_an_epoch_holds_every_story_once(data):
    dataset = babi.dataset(data, 8, shuffle_seed=5, buckets=[20, 40])
    seen = []
    for batch in collect(dataset):
        steps = batch["items"].shape[1]
        assert batch["length"].max() <= steps
        assert steps in (20, 40) or steps == data["length"].max()
        for row, length in zip(batch["items"], batch["length"], strict=True):
            seen.append(row[:length].tobytes())
            assert not row[length:].any()
    expected = [row[:n].tobytes() for row, n in zip(data["items"], data["length"], strict=True)]
    assert sorted(seen) == sorted(expected)
    assert len(seen) == int(dataset.reduce(0, lambda n, batch: n + len(batch["length"])))


def test_shapes_are_static_per_bucket(data):
    dataset = babi.dataset(data, 4, buckets=[16, 24], drop_remainder=True)
    shapes = {tuple(v.shape for k, v in b.items() if k != "items") for b in collect(dataset)}
    assert len(shapes) == 1
    one = babi.dataset(data, 4, buckets=1, drop_remainder=True).element_spec
    assert all(spec.shape.is_fully_defined() for spec in one.values())
    wide = babi.dataset(data, 4, buckets=[100], drop_remainder=True)
    assert wide.element_spec["items"].shape[:2] == (4, 100)
    assert collect(wide, 1)[0]["items"].shape[:2] == (4, 100)


def test_without_a_seed_the_order_is_kept(data):
    batch = collect(babi.dataset(data, len(data["length"]), buckets=1))[0]
    assert all(np.array_equal(batch[name], data[name]) for name in data)


@pytest.mark.parametrize("drop_remainder", [False, True])
def test_resuming_gives_the_batches_of_an_uninterrupted_run(data, drop_remainder):
    def make(start: int, seed: int = 7) -> tf.data.Dataset:
        return babi.dataset(
            data,
            6,
            shuffle_seed=seed,
            buckets=3,
            repeat=True,
            drop_remainder=drop_remainder,
            start=start,
        )

    whole = collect(make(0), 30)
    for start in (0, 1, 7, 13, 20):
        assert same(collect(make(start), 30 - start), whole[start:])
    assert not same(collect(make(0, seed=8), 30), whole)
    steps = int(babi.dataset(data, 6, buckets=3).cardinality())
    assert not same(whole[:steps], whole[steps : 2 * steps])


def test_one_epoch_can_be_resumed_too(data):
    whole = collect(babi.dataset(data, 6, shuffle_seed=1))
    rest = babi.dataset(data, 6, shuffle_seed=1, start=2)
    assert int(rest.cardinality()) == len(whole) - 2
    assert same(collect(rest), whole[2:])
    assert collect(babi.dataset(data, 6, start=len(whole))) == []
    assert same(collect(rest), whole[2:]), "iterating again gives the same batches"


@pytest.mark.parametrize("batch_size", [5, 1000])
def test_no_story_is_left_out_for_being_in_a_small_bucket(data, batch_size):
    bounds = sorted({int(n) for n in data["length"]})  # a bucket for each length
    assert 1 in np.bincount(data["length"])
    options = {"shuffle_seed": 0, "buckets": bounds, "repeat": True, "drop_remainder": True}
    batches = collect(babi.dataset(data, batch_size, **options), 60)
    assert {len(batch["length"]) for batch in batches} == {batch_size}
    seen = {tuple(row) for batch in batches for row in batch["answers"]}
    assert seen == {tuple(row) for row in data["answers"]}


def test_streams_without_an_item_still_have_a_step(vocabulary):
    nothing = Story((), (Question("Where?", "x", (), 0),))
    assert collect(babi.dataset(babi.encode([nothing], vocabulary), 1))[0]["items"].shape[:2] == (
        1,
        1,
    )


def test_bad_arguments(data):
    for arguments, message in [
        ({"batch_size": 0}, "batch_size >= 1"),
        ({"start": -1}, "start >= 0"),
        ({"start": 99}, "start <= "),
        ({"buckets": [4, 3]}, r"ascending bucket boundaries >= 1, got \[4, 3\]"),
        ({"buckets": 0}, "at least one bucket, got 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            babi.dataset(data, **{"batch_size": 6, **arguments})


def test_boundaries_waste_little():
    lengths = np.random.default_rng(0).integers(10, 400, 500)
    bounds = batches.bucket_boundaries(lengths, 4)
    assert bounds == sorted(bounds)
    assert len(bounds) == 4
    assert bounds[-1] == lengths.max()
    padded = np.array(bounds)[np.searchsorted(bounds, lengths)]
    assert padded.mean() - lengths.mean() < 60
    assert batches.bucket_boundaries(np.array([40, 40])) == [40]
