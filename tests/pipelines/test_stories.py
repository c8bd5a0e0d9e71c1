"""Stories of one's own as JSON lines: the same as in bAbI's format, and clear words if not."""

import json

import pytest

from lemn_tf.pipelines import babi, babi_generator, story_files


def as_json(story: babi.Story) -> str:
    """A story as a line of the file."""
    questions = [
        {"after": q.asked_after, "question": q.text, "answer": q.answer, "support": list(q.support)}
        for q in story.questions
    ]
    return json.dumps({"items": list(story.facts), "questions": questions})


def test_both_formats_give_the_same_stories(tmp_path):
    stories = babi_generator.generate("noisy", 5, seed=3)
    babi.write_stories(stories, tmp_path / "a.txt")
    (tmp_path / "a.jsonl").write_text("\n".join(map(as_json, stories)) + "\n\n")
    assert babi.read_stories(tmp_path / "a.jsonl") == babi.read_stories(tmp_path / "a.txt")
    both = babi.read_stories([tmp_path / "a.jsonl", tmp_path / "a.txt"])
    assert len(both) == 10


def test_what_may_be_left_out(tmp_path):
    path = tmp_path / "a.jsonl"
    question = {"question": "Where is Mary?", "answer": "home"}
    path.write_text(
        json.dumps({"items": ["Mary left.", "Mary went home."], "questions": [question]})
    )
    assert babi.read_stories(path)[0].questions == (babi.Question("Where is Mary?", "home", (), 2),)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("not json", r"line 1: expected a story in JSON, got 'not json'"),
        ("[]", "expected an object with items and questions"),
        ('{"items": []}', "expected an object with items and questions"),
        ('{"items": [], "questions": []}', "expected items, a list of sentences"),
        ('{"items": ["a", 3], "questions": []}', "expected items, a list of sentences"),
        ('{"items": ["a"], "questions": 1}', "expected questions, a list"),
        ('{"items": ["a"], "questions": [{}]}', "expected a question and its answer"),
        (
            '{"items": ["a"], "questions": [{"question": "b", "answer": ""}]}',
            "expected answer in words",
        ),
        (
            '{"items": ["a"], "questions": [{"question": "b", "answer": "c", "after": 2}]}',
            "expected after to be from 1 to 1, got 2",
        ),
        (
            '{"items": ["a"], "questions": [{"question": "b", "answer": "c", "support": [1]}]}',
            "expected support to be numbers from 0 to 0",
        ),
        ("", "expected a story on each line, got an empty file"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path, line, message):
    path = tmp_path / "a.jsonl"
    path.write_text(line)
    with pytest.raises(ValueError, match=message) as caught:
        babi.read_stories(path)
    assert str(path) in str(caught.value)


def test_a_question_needs_a_fact_before_it(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1 Where is Mary?\thome\n2 Mary went home.\n")
    with pytest.raises(ValueError, match="expected a fact before the first question of a story"):
        babi.read_stories(path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "\n\nMary went home.\n", "line 3: expected a line number"),
        ("a.jsonl", '\n{"items": []}\n', "line 2: expected an object with items and questions"),
        ("a.txt", "\n", "expected at least one story"),
        ("a.jsonl", "", "expected a story on each line, got an empty file"),
    ],
)
def test_how_a_file_begins(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        story_files.check_beginning(path)


def test_a_beginning_is_enough(tmp_path):
    """What is wrong further on is found when the file is read."""
    story = json.dumps({"items": ["Mary went home."], "questions": []})
    for name, text in (("a.txt", "\n1 Mary went home.\n"), ("a.jsonl", f"\n{story}\n")):
        (tmp_path / name).write_text(text + "rubbish\n")
        story_files.check_beginning(tmp_path / name)
        with pytest.raises(ValueError, match="line 3: expected"):
            babi.read_stories(tmp_path / name)
