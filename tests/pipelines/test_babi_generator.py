"""The generated streams: replayed by a simulator of their own, and measured against the facts."""

import re
from collections import Counter

import numpy as np
import pytest

from lemn_tf.pipelines import babi
from lemn_tf.pipelines.babi_generator import VARIANTS, generate

EPISODES = 1000
EVENTS = {
    "move": r"(\w+) (journeyed|moved|travelled|went back|went) to the (\w+)\.",
    "pick": r"(\w+) (got|grabbed|took|picked up) the (\w+)( there)?\.",
    "drop": r"(\w+) (discarded|dropped|left|put down|let go of) the (\w+)( there)?\.",
    "noise": r"(\w+) (is|are) ((?:a |afraid of )?\w+)\.",
}

FIRST_ORIGINAL = (
    "Sandra went to the bathroom.",
    "John moved to the kitchen.",
    "John moved to the hallway.",
)
FIRST_NOISY = (
    "Mary moved to the bedroom.",
    "Mary grabbed the football.",
    "John went to the kitchen.",
)


def event(fact: str) -> tuple[str, str, str, str]:
    """(kind, person, verb, object or place) of a sentence."""
    for kind, pattern in EVENTS.items():
        found = re.fullmatch(pattern, fact)
        if found:
            there = found[4] or "" if kind in ("pick", "drop") else ""
            return kind, found[1], found[2] + there, found[3]
    raise AssertionError(f"no form of sentence fits {fact!r}")


def replay(story: babi.Story):
    """Yields for each question (question, object, place, facts that told it, held).

    Knows nothing but the sentences; checks on the way that nothing impossible happens.
    """
    at: dict[str, tuple[str, int]] = {}  # person -> place, fact
    hands: dict[str, tuple[str, int]] = {}  # object -> holder, fact
    lying: dict[str, tuple[str, set[int]] | None] = {}  # object -> place, facts; None: unknown
    said: dict[tuple[str, str], str] = {}
    waiting = list(story.questions)
    for time in range(len(story.facts) + 1):
        while waiting and waiting[0].asked_after == time:
            question = waiting.pop(0)
            thing = re.fullmatch(r"Where is the (\w+)\?", question.text)[1]
            if thing in hands:
                holder, picked = hands[thing]
                place, moved = at[holder]
                yield question, thing, place, {picked, moved}, True
            else:
                yield question, thing, *lying[thing], False
        if time == len(story.facts):
            break
        kind, who, _, what = event(story.facts[time])
        if kind == "move":
            assert at.get(who, (None,))[0] != what, "a move leads somewhere else"
            at[who] = (what, time)
        elif kind == "pick":
            assert what not in hands, "nobody takes what somebody holds"
            if who in at and lying.get(what):
                assert at[who][0] == lying[what][0], "things are picked up where they lie"
            hands[what], lying[what] = (who, time), None
        elif kind == "drop":
            if what in hands:
                assert hands.pop(what)[0] == who, "only the holder drops"
            else:
                assert what not in lying, "only an object held from the start is dropped unseen"
            lying[what] = (at[who][0], {time, at[who][1]}) if who in at else None
        else:
            subject = who, "fear" if "afraid" in what else attribute(what)
            assert said.setdefault(subject, what) == what, "noise does not contradict itself"
    assert not waiting


def attribute(what: str) -> str:
    if what.startswith("a "):
        return "animal"
    return "mood" if what in ("bored", "hungry", "thirsty") else "colour"


@pytest.fixture(scope="module")
def data() -> dict[str, list[babi.Story]]:
    return {variant: generate(variant, EPISODES, seed=11) for variant in VARIANTS}


def shares(values) -> dict:
    counts = Counter(values)
    return {key: count / counts.total() for key, count in counts.items()}


def verbs(stories: list[babi.Story], kind: str) -> dict[str, float]:
    events = (event(fact) for story in stories for fact in story.facts)
    return shares(verb for what, _, verb, _ in events if what == kind)


def uniform(found: dict, names: str, tolerance: float = 0.02) -> None:
    expected = names.split("|")
    assert sorted(found) == sorted(expected)
    assert all(abs(share - 1 / len(expected)) < tolerance for share in found.values()), found


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_answer_and_support_is_right(data, variant):
    for story in data[variant]:
        for question, _, place, told, held in replay(story):
            assert question.answer == place
            assert set(question.support) == told
            assert len(question.support) == 2
            assert held or variant == "original"


@pytest.mark.parametrize("variant", VARIANTS)
def test_seeds(variant, tmp_path):
    stories = generate(variant, 30, seed=4)
    assert stories == generate(variant, 30, seed=4)
    assert stories != generate(variant, 30, seed=5)
    babi.write_stories(stories, tmp_path / "stories.txt")
    assert babi.read_stories(tmp_path / "stories.txt") == stories


def test_the_stream_of_chances_is_the_same_everywhere():
    assert generate("original", 1, seed=0)[0].facts[:3] == FIRST_ORIGINAL
    assert generate("noisy", 1, seed=0)[0].facts[:3] == FIRST_NOISY


def test_names(data):
    facts = {v: [event(f) for story in data[v] for f in story.facts] for v in VARIANTS}
    for variant, people, places in [
        ("original", "Daniel|John|Mary|Sandra", "bathroom|bedroom|garden|hallway|kitchen|office"),
        ("noisy", "John|Mary|Sandra", "bedroom|garden|hallway|kitchen"),
        ("large", "John|Mary|Sandra", "bedroom|garden|hallway|kitchen"),
    ]:
        events = facts[variant]
        uniform(shares(who for kind, who, *_ in events if kind != "noise"), people)
        uniform(shares(what for kind, *_, what in events if kind == "move"), places)
        objects = shares(what for kind, *_, what in events if kind in ("pick", "drop"))
        uniform(objects, "apple|football|milk")


def test_verbs(data):
    uniform(verbs(data["original"], "move"), "journeyed|moved|travelled|went|went back")
    uniform(verbs(data["original"], "pick"), "got there|grabbed there|picked up there|took there")
    drops = verbs(data["original"], "drop")
    assert sum(share for verb, share in drops.items() if "there" in verb) == pytest.approx(
        0.20, abs=0.02
    )
    assert {verb.removesuffix(" there") for verb in drops} == {
        "discarded",
        "dropped",
        "left",
        "put down",
    }
    for variant in ("noisy", "large"):
        uniform(verbs(data[variant], "move"), "journeyed|moved|travelled|went")
        uniform(verbs(data[variant], "pick"), "got|grabbed|took")
        uniform(verbs(data[variant], "drop"), "dropped|let go of|put down")


@pytest.mark.parametrize(
    ("variant", "move", "pick", "drop"),
    [
        ("original", 0.649, 0.199, 0.153),
        ("noisy", 0.298, 0.293, 0.263),
        ("large", 0.298, 0.293, 0.263),
    ],
)
def test_kinds_of_events(data, variant, move, pick, drop):
    found = shares(event(fact)[0] for story in data[variant] for fact in story.facts)
    assert found["move"] == pytest.approx(move, abs=0.015)
    assert found["pick"] == pytest.approx(pick, abs=0.015)
    assert found["drop"] == pytest.approx(drop, abs=0.015)


def test_original_lengths_and_gaps(data):
    facts = np.array([len(story.facts) for story in data["original"]])
    assert facts.min() >= 10
    assert not (facts % 2).any()
    assert facts.mean() == pytest.approx(21.9, abs=1.0)
    np.testing.assert_allclose(np.percentile(facts, [25, 50, 75]), [16, 20, 26], atol=2)
    assert all(len(story.questions) == 5 for story in data["original"])
    asked = np.array([[q.asked_after for q in story.questions] for story in data["original"]])
    gaps = np.diff(asked, prepend=0)
    assert gaps.min() == 2
    assert not (gaps % 2).any()
    assert (gaps == 2).mean() == pytest.approx(0.583, abs=0.03)
    assert gaps[:, 0].mean() == pytest.approx(9.3, abs=0.6)
    assert (asked[:, -1] == facts).all()


def test_original_support(data):
    older, kinds = [], []
    for story in data["original"]:
        for q in story.questions:
            kinds.append("+".join(event(story.facts[fact])[0] for fact in q.support))
            older.append(q.asked_after - min(q.support))
    found = shares(kinds)
    assert found["drop+move"] == pytest.approx(0.69, abs=0.03)
    assert found["pick+move"] == pytest.approx(0.31, abs=0.03)
    assert np.median(older) == pytest.approx(5, abs=1)  # in facts: 6 lines
    assert np.percentile(older, 90) == pytest.approx(11, abs=1)


def test_noisy_shape_and_support(data):
    for story in data["noisy"]:
        assert len(story.facts) == 40
        assert [q.asked_after for q in story.questions] == [8, 16, 24, 32, 40]
    older, order = [], []
    for story in data["noisy"]:
        for q in story.questions:
            assert q.support == tuple(sorted(q.support))
            order.append("+".join(event(story.facts[fact])[0] for fact in q.support))
            older.append(q.asked_after - q.support[0])
    assert shares(order)["move+pick"] == pytest.approx(0.636, abs=0.04)
    assert np.median(older) == pytest.approx(8, abs=1)
    assert np.percentile(older, 90) == pytest.approx(20, abs=2)


@pytest.mark.parametrize("variant", ["noisy", "large"])
def test_noise_by_tenths(data, variant):
    tenth = EPISODES // 10
    found, sentences = [], set()
    for begin in range(0, EPISODES, tenth):
        facts = [fact for story in data[variant][begin : begin + tenth] for fact in story.facts]
        noise = [fact for fact in facts if event(fact)[0] == "noise"]
        sentences.update(noise)
        found.append(len(noise) / len(facts))
    assert found[:6] == [0] * 6
    np.testing.assert_allclose(found[6:], [0.147, 0.285, 0.444, 0.582], atol=0.03)
    assert len(sentences) == 39


def test_large_shape(data):
    lines = [len(story.facts) + len(story.questions) for story in data["large"]]
    assert (min(lines), max(lines)) == (20, 80)
    assert np.mean(lines) == pytest.approx(50, abs=2)
    assert {len(story.questions) for story in data["large"]} == {5}
    asked = [q.asked_after / len(story.facts) for story in data["large"] for q in story.questions]
    assert np.histogram(asked, 4, (0, 1))[0].min() > 0.15 * len(asked)


@pytest.mark.parametrize(
    ("variant", "newest", "middle", "repeats", "within_5", "within_10"),
    [
        ("original", 0.752, 0.228, 0.668, 0.600, 0.889),
        ("noisy", 0.416, 0.380, 0.433, 0.307, 0.649),
    ],
)
def test_questions_are_as_predictable(data, variant, newest, middle, repeats, within_5, within_10):
    """What a policy can foresee: is the object asked for the one touched last, or asked last?"""
    rank, again, age = [], [], []
    for story in data[variant]:
        touched, before = {}, None
        replayed = list(replay(story))
        for question, thing, *_ in replayed:
            touched = {}
            for time, fact in enumerate(story.facts[: question.asked_after]):
                kind, _, _, what = event(fact)
                if kind in ("pick", "drop"):
                    touched[what] = time
            rank.append(sorted(touched, key=touched.get, reverse=True).index(thing))
            age.append(question.asked_after - min(question.support))
            if before:
                again.append(thing == before)
            before = thing
    found = shares(rank)
    assert found[0] == pytest.approx(newest, abs=0.03)
    assert found[1] == pytest.approx(middle, abs=0.03)
    assert np.mean(again) == pytest.approx(repeats, abs=0.035)
    assert np.mean(np.array(age) <= 5) == pytest.approx(within_5, abs=0.03)
    assert np.mean(np.array(age) <= 10) == pytest.approx(within_10, abs=0.03)


def test_bad_arguments():
    with pytest.raises(ValueError, match="variant of original, noisy, large, got 'huge'"):
        generate("huge", 1, 0)
    with pytest.raises(ValueError, match="episodes >= 1 and seed >= 0, got 0 and 0"):
        generate("noisy", 0, 0)
