"""TriviaQA's official scores: exact match and F1, equal to the official script to the last digit.

A prediction is keyed by its question in the Wikipedia domain (one answer over all documents), and
by `QuestionId--Filename` in every other one. A missing prediction counts 0; one too many is
ignored.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lemn_tf.pipelines.answers import normalize
from lemn_tf.pipelines.qa_files import QaFile


@dataclass(frozen=True)
class Scores:
    """What the official script prints, by its own names.

    Attributes:
        exact_match, f1: in percent of `denominator`.
        common: questions that have a prediction.
        denominator: questions that were scored.
        pred_len, gold_len: predictions and questions there are.
    """

    exact_match: float
    f1: float
    common: int
    denominator: int
    pred_len: int
    gold_len: int

    def as_dict(self) -> dict[str, float]:
        """The same as a dict."""
        return asdict(self)


def exact_match(prediction: str, truth: str) -> bool:
    """Whether two answers have the same normal form.

    Example:

    >>> exact_match("The Beatles!", "beatles"), exact_match("", "the")
    (True, True)
    """
    return normalize(prediction) == normalize(truth)


def f1(prediction: str, truth: str) -> float:
    """The overlap of two answers as bags of tokens; 0 if either is empty.

    Example:

    >>> f1("the big apple", "apple pie"), f1("", "")
    (0.5, 0)
    """
    said, right = normalize(prediction).split(), normalize(truth).split()
    same = sum((Counter(said) & Counter(right)).values())
    if same == 0:
        return 0
    precision, recall = 1.0 * same / len(said), 1.0 * same / len(right)
    return (2 * precision * recall) / (precision + recall)


def truths_of(answer: Mapping[str, Any]) -> list[str]:
    """The right answers of an `Answer` of a question file, in normal form."""
    return [*answer["NormalizedAliases"], *map(normalize, answer.get("HumanAnswers", []))]


def best(prediction: str, truths: Iterable[str]) -> tuple[bool, float]:
    """Exact match and F1 with the right answer that fits best."""
    truths = list(truths)
    return (
        max((exact_match(prediction, truth) for truth in truths), default=False),
        max((f1(prediction, truth) for truth in truths), default=0),
    )


def score(
    truths: Mapping[str, Sequence[str]],
    predictions: Mapping[str, str],
    keys: Iterable[str] | None = None,
) -> Scores:
    """Scores predictions.

    Args:
        truths: the right answers by key, see `gold`.
        predictions: an answer by key.
        keys: score these questions only, e.g. those whose document holds an answer; None for all.

    Example:

    >>> score({"q1": ["rome"], "q2": ["oslo"]}, {"q1": "Rome", "q9": "Bern"}).exact_match
    50.0
    """
    scored = list(truths if keys is None else keys)
    if not scored:
        raise ValueError("expected at least one question to score, got none")
    matches: float = 0
    overlap: float = 0
    common = 0
    for key in scored:
        if key not in predictions or key not in truths:
            continue
        common += 1
        match, part = best(predictions[key], truths[key])
        matches += match
        overlap += part
    return Scores(
        exact_match=100.0 * matches / len(scored),
        f1=100.0 * overlap / len(scored),
        common=common,
        denominator=len(scored),
        pred_len=len(predictions),
        gold_len=len(truths),
    )


def gold(path: str | os.PathLike) -> dict[str, list[str]]:
    """The right answers of a question file, by the official key.

    Of a file made for the verified evaluation only the verified part counts.

    Args:
        path: e.g. `qa/verified-wikipedia-dev.json`.

    Returns:
        Right answers in normal form, by `QuestionId` or `QuestionId--Filename`.
    """
    file = QaFile(path)
    records = []
    for record in file:
        if "Answer" not in record:
            raise file.bad("an Answer to score by", f"none ({record.get('QuestionId')})")
        try:
            pages = [
                (page["Filename"], page.get("DocPartOfVerifiedEval"))
                for kind in ("EntityPages", "SearchResults")
                for page in record.get(kind, [])
            ]
            truths, verified = truths_of(record["Answer"]), record.get("QuestionPartOfVerifiedEval")
            records.append((record["QuestionId"], truths, verified, pages))
        except (KeyError, TypeError) as error:
            raise file.bad("a record as in TriviaQA's files", f"{error!r}") from error
    wikipedia = file.header.get("Domain", "Wikipedia") == "Wikipedia"
    clean = bool(file.header.get("VerifiedEval"))
    found: dict[str, list[str]] = {}
    for key, truths, verified, pages in records:
        if clean and not verified:
            continue
        if wikipedia:
            found[key] = truths
            continue
        for name, part in pages:
            if part or not (clean and file.header.get("Domain") == "Web"):
                found[prediction_key(key, name, "web")] = truths
    return found


def prediction_key(question: str, document: str, domain: str) -> str:
    """The key of a prediction, e.g. `tc_33--Andrew_Lloyd_Webber.txt` in the web domain."""
    return question if domain.lower() == "wikipedia" else f"{question}--{document}"


def score_files(qa: str | os.PathLike, predictions: str | os.PathLike) -> Scores:
    """Scores a file of predictions as the official script does.

    Args:
        qa: the question file.
        predictions: a JSON object of answers by key.
    """
    path = Path(predictions)
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: expected a JSON object of answers: {error}") from error
    if not isinstance(said, dict) or not all(isinstance(each, str) for each in said.values()):
        raise ValueError(f"{path}: expected a JSON object of answers, each a string")
    return score(gold(qa), said)


def merge(candidates: Iterable[tuple[str, float]]) -> str:
    """One answer from those of several documents, or of several spans.

    The confidence is summed over answers of the same normal form; the form with the highest sum
    wins, and of its texts the one with the highest confidence of its own.

    Args:
        candidates: answers with their confidence, at least one.

    Example:

    >>> merge([("Rome", 0.4), ("Oslo", 0.5), ("the rome", 0.3)])
    'Rome'
    """
    sums: defaultdict[str, float] = defaultdict(float)
    strongest: dict[str, tuple[float, str]] = {}
    for text, confidence in candidates:
        form = normalize(text)
        sums[form] += confidence
        if form not in strongest or confidence > strongest[form][0]:
            strongest[form] = (confidence, text)
    if not sums:
        raise ValueError("expected at least one answer to choose from, got none")
    return strongest[max(sums, key=sums.__getitem__)][1]
