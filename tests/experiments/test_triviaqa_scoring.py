"""TriviaQA's scores: golden cases, an independent transcription of the rules, and their laws."""

import json
import random
import re
import string
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lemn_tf.experiments import triviaqa_scoring as scoring
from lemn_tf.experiments.triviaqa_scoring import exact_match, f1, merge, score

TEXT = st.text(alphabet="ab the,.’_-“É1 \n", max_size=20)


@pytest.mark.parametrize(
    ("said", "right", "match", "overlap"),
    [
        ("U.S.A.", "u s", True, 1),
        ("AC/DC", "ac dc", True, 1),
        ("O’Brien", "o'brien", True, 1),
        ("The_Beatles", "Beatles", True, 1),
        ("1,000", "1 000", True, 1),
        ("1,000", "1000", False, 0),
        ("Vitamin A", "vitamin", True, 1),
        ("“Rome”", "Rome", False, 0),
        ("1939–1945", "1939 1945", False, 0),
        ("", "the", True, 0),
        ("", "", True, 0),
        ("new york city", "new york", False, 0.8),
        ("x x y", "x y y", False, 2 / 3),
    ],
)
def test_golden_cases(said, right, match, overlap):
    assert exact_match(said, right) is match
    assert f1(said, right) == pytest.approx(overlap)


@given(TEXT, TEXT)
def test_bounds_and_symmetry(one, other):
    assert 0 <= f1(one, other) <= 1
    assert f1(one, other) == pytest.approx(f1(other, one))
    assert exact_match(one, other) == exact_match(other, one)
    if exact_match(one, other) and scoring.normalize(one):
        assert f1(one, other) == 1


@given(TEXT, st.lists(TEXT, min_size=1, max_size=5))
def test_another_alias_never_lowers_the_score(said, truths):
    few, many = score({"q": truths[:1]}, {"q": said}), score({"q": truths}, {"q": said})
    assert many.f1 >= few.f1
    assert many.exact_match >= few.exact_match


@given(st.permutations(["the", "red", "fox", "red"]))
def test_the_order_of_words_is_nothing_to_f1(words):
    assert f1(" ".join(words), "red fox red") == 1


def test_missing_predictions_count_and_others_do_not():
    truths = {"q1": ["rome"], "q2": ["oslo"], "q3": ["bern"]}
    got = score(truths, {"q1": "Rome", "q3": "Bonn", "x": "Rome"})
    assert got.as_dict() == {
        "exact_match": 100 / 3,
        "f1": 100 / 3,
        "common": 2,
        "denominator": 3,
        "pred_len": 3,
        "gold_len": 3,
    }
    assert score(truths, {"q1": "Rome"}, keys=["q1", "q2"]).exact_match == 50
    with pytest.raises(ValueError, match="at least one question"):
        score({}, {})


def reference(data, predictions):
    """The official rules once more, written in another way."""

    def normal(text):
        text = text.replace("_", " ").lower()
        text = re.sub("[" + re.escape(string.punctuation + "‘’´`") + "]", " ", text)
        return re.sub(r"\s+", " ", re.sub(r"\b(?:an?|the)\b", " ", text)).strip()

    wanted = {}
    for datum in data["Data"]:
        pages = datum.get("EntityPages", []) + datum.get("SearchResults", [])
        if data["VerifiedEval"]:
            if not datum["QuestionPartOfVerifiedEval"]:
                continue
            if data["Domain"] == "Web":
                pages = [page for page in pages if page["DocPartOfVerifiedEval"]]
        answer, key = datum["Answer"], datum["QuestionId"]
        right = answer["NormalizedAliases"] + answer.get("HumanAnswers", [])
        if data["Domain"] == "Wikipedia":
            wanted[key] = right
        else:
            wanted.update({f"{key}--{page['Filename']}": right for page in pages})
    matches = overlap = 0
    for key, right in wanted.items():
        if key in predictions:
            said = normal(predictions[key]).split()
            matches += any(normal(each) == " ".join(said) for each in right)
            scores = [0]
            for each in right:
                bag = normal(each).split()
                same = sum(min(n, Counter(bag)[word]) for word, n in Counter(said).items())
                if same:
                    precision, recall = same / len(said), same / len(bag)
                    scores.append((2 * precision * recall) / (precision + recall))
            overlap += max(scores)
    return 100.0 * matches / len(wanted), 100.0 * overlap / len(wanted)


@pytest.mark.parametrize("domain", ["Wikipedia", "Web"])
@pytest.mark.parametrize("verified", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_whole_files_by_the_official_rules(tmp_path, domain, verified, seed):
    draw = random.Random(seed)
    pool = ["The Who", "who", "AC/DC", "a b c", "U.S.", "café", "“x” y", "1,000", "O’Neil", "the"]

    def text():
        return " ".join(draw.choices(pool, k=draw.randrange(1, 4)))

    def pages(kind):
        return [
            {"Filename": f"{kind}{draw.randrange(9)}.txt", "DocPartOfVerifiedEval": not k}
            for k in range(draw.randrange(1, 3))
        ]

    data = {"Data": [], "Domain": domain, "VerifiedEval": verified}
    predictions = {"unknown": "x"}
    for number in range(40):
        answer = {"NormalizedAliases": [scoring.normalize(text()) for _ in range(3)]}
        if draw.random() < 0.4:
            answer["HumanAnswers"] = [text()]
        datum = {"QuestionId": f"q{number}", "Answer": answer, "Question": "?"}
        datum |= {"EntityPages": pages("e"), "SearchResults": pages("s")}
        datum["QuestionPartOfVerifiedEval"] = number == 0 or draw.random() < 0.6
        data["Data"].append(datum)
        pool.append(answer["NormalizedAliases"][0])
        for page in datum["EntityPages"] + datum["SearchResults"]:
            if draw.random() < 0.7:
                predictions[f"q{number}--{page['Filename']}"] = draw.choice([text(), pool[-1]])
        if draw.random() < 0.7:
            predictions[f"q{number}"] = draw.choice([text(), pool[-1]])
    (tmp_path / "qa.json").write_text(json.dumps(data))
    (tmp_path / "said.json").write_text(json.dumps(predictions))
    got = scoring.score_files(tmp_path / "qa.json", tmp_path / "said.json")
    assert (got.exact_match, got.f1) == reference(data, predictions)
    assert got.exact_match > 0
    assert got.pred_len == len(predictions)


def test_answers_of_several_documents_are_merged():
    assert merge([("Oslo", 0.5), ("Rome", 0.4), ("the rome!", 0.3)]) == "Rome"
    assert merge([("Oslo", 0.8), ("Rome", 0.4), ("rome", 0.3)]) == "Oslo"
    assert merge([("rome", 0.1), ("ROME", 0.2)]) == "ROME"
    with pytest.raises(ValueError, match="at least one answer"):
        merge([])


def test_keys():
    assert scoring.prediction_key("tc_1", "A.txt", "Wikipedia") == "tc_1"
    assert scoring.prediction_key("tc_1", "12/12_3.txt", "web") == "tc_1--12/12_3.txt"


def test_bad_files_are_named(tmp_path):
    qa, said = tmp_path / "qa.json", tmp_path / "said.json"
    qa.write_text(json.dumps({"Data": [{"QuestionId": "q1"}]}))
    said.write_text("{}")
    with pytest.raises(ValueError, match=r"qa\.json, record 0.*an Answer to score by, got none"):
        scoring.score_files(qa, said)
    for text in ("[1]", '{"q1": 3}', "{"):
        said.write_text(text)
        with pytest.raises(ValueError, match=r"said\.json: expected a JSON object of answers"):
            scoring.score_files(qa, said)
