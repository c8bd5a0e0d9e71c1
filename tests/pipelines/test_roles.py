"""Roles are found by the places that words fill, or read from a file."""

import pytest

from lemn_tf.pipelines import babi_generator
from lemn_tf.pipelines.roles import find_roles, read_roles
from lemn_tf.pipelines.stories import Question, Story

PEOPLE = ["daniel", "john", "mary", "sandra"]
THINGS = ["apple", "football", "milk"]
PLACES = ["bathroom", "bedroom", "garden", "hallway", "kitchen", "office"]


@pytest.mark.parametrize("variant", babi_generator.VARIANTS)
def test_the_roles_of_babi_are_found(variant):
    people, places = PEOPLE, PLACES
    if variant != "original":
        people, places = PEOPLE[1:], PLACES[1:5]
    assert find_roles(babi_generator.generate(variant, 200, seed=5)) == [THINGS, places, people]


def told(*lines, asked, answer, times=40):
    return [Story(lines, (Question(asked, answer, (), len(lines)),))] * times


def test_other_words():
    stories = [
        *told("Rex bit Tom.", "Tom ran to Rome.", asked="Where is Tom?", answer="Rome"),
        *told("Tom bit Rex.", "Rex ran to Oslo.", asked="Where is Rex?", answer="Oslo"),
    ]
    assert find_roles(stories) == [["oslo", "rome"], ["rex", "tom"]]


def test_what_must_not_change_places():
    """Names that go with other words, parts of answers, answers that are no names, verbs."""
    stories = [
        *told("Mary took the milk.", "Then she left.", asked="Is Mary here?", answer="no"),
        *told("Anna took the milk.", "Then she left.", asked="Is Anna here?", answer="yes"),
        *told("John took the milk.", "Then he left.", asked="Is John here?", answer="no"),
        *told("Paul dropped the milk.", "Then he left.", asked="Is Paul here?", answer="yes"),
        *told("Paul took the milk.", "Then he left.", asked="Is Paul here?", answer="yes"),
        *told("John dropped the milk.", "Then he left.", asked="Is John here?", answer="no"),
    ]
    assert find_roles(stories) == []  # yes and no say who is who
    stories = [
        Story(s.facts, (Question(s.questions[0].text, answer, (), 2),))
        for s in stories
        for answer in ("no", "yes")
    ]
    assert find_roles(stories) == [["anna", "mary"], ["john", "paul"]]  # "she" is not "he"
    carried = [
        *told("Mary took the milk.", asked="What has Mary?", answer="milk"),
        *told("Mary took the apple.", asked="What has Mary?", answer="apple"),
        *told("Mary took the pie.", asked="What has Mary?", answer="pie"),
        *told("Mary took the cake.", asked="What has Mary?", answer="cake,milk"),
    ]
    assert find_roles(carried) == [["apple", "pie"]]


def test_a_file(tmp_path):
    path = tmp_path / "roles.txt"
    path.write_text("# people\nMary, John\n\nkitchen garden\n")
    known = ["mary", "john", "kitchen", "garden", "went"]
    assert read_roles(path, known) == [["mary", "john"], ["kitchen", "garden"]]
    for text, complaint in (
        ("mary\n", "line 1: expected two or more words in a role, got 'mary'"),
        ("mary anna\n", "line 1: expected words of the stories, got 'anna'"),
        ("mary john\nmary garden\n", "line 2: expected each word once, got 'mary' again"),
        ("# nothing\n", "expected a role on each line, found none"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=complaint):
            read_roles(path, known)
