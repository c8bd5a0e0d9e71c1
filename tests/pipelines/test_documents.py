"""Question files with their documents."""

import unicodedata

import pytest

from lemn_tf.pipelines import documents


def test_a_document_comes_with_all_its_questions(made):
    collection = documents.read(made.qa, made.evidence)
    assert [document.name for document in collection] == ["Pisa.txt", "Zürich.txt"]
    pisa = collection[0]
    assert [question.id for question in pisa.questions] == ["tc_1", "tc_2", "tc_4"]
    assert pisa.questions[0].aliases == ("Italy", "Republic of Italy")
    assert pisa.text == made.texts["Pisa.txt"]
    assert pisa.between(4, 9) == "tower"
    assert collection.missing == ("Nowhere.txt",)
    assert "1 documents not in the evidence folder: Nowhere.txt" in collection.report()


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_names_match_in_any_form_and_case(made, form):
    name = unicodedata.normalize(form, "ZÜRICH.txt")
    qa = made.write([made.record(1, "?", ["x"], name)])
    assert documents.read(qa, made.evidence)[0].text == made.texts["Zürich.txt"]


def test_names_cannot_leave_the_folder(made):
    (made.evidence.parent / "secret.txt").write_text("secret")
    qa = made.write([made.record(1, "?", ["x"], "../../secret.txt", "Pisa.txt")])
    assert documents.read(qa, made.evidence).missing == ("../../secret.txt",)


def test_human_answers_count(made):
    answer = {"Aliases": ["USA"], "NormalizedAliases": ["usa"], "HumanAnswers": ["The U.S.A."]}
    qa = made.write([made.record(1, "?", ["x"], "Pisa.txt", Answer=answer)])
    question = documents.read(qa, made.evidence).questions[0]
    assert question.aliases == ("USA", "The U.S.A.")
    assert question.normalized_aliases == ("usa", "u s")


def test_a_test_file_has_no_answers(made):
    bare = made.record(1, "Where is Pisa?", ["x"], "Pisa.txt")
    del bare["Answer"]
    qa = made.write([bare])
    assert documents.read(qa, made.evidence).questions[0].aliases == ()
    with pytest.raises(ValueError, match=r"record 0 .*an Answer with Aliases.*tc_1"):
        documents.read(qa, made.evidence, answers=True)


def test_the_web_domain_takes_search_results_too(made):
    (made.evidence / "web" / "12").mkdir(parents=True)
    (made.evidence / "web" / "12" / "12_3.txt").write_text("from the web")
    results = [{"Filename": "12/12_3.txt"}]
    qa = made.write([made.record(1, "?", ["x"], "Pisa.txt", SearchResults=results)], Domain="Web")
    assert [d.name for d in documents.read(qa, made.evidence)] == ["Pisa.txt", "12/12_3.txt"]
    assert len(documents.read(qa, made.evidence, "wikipedia")) == 1
    with pytest.raises(ValueError, match="one of wikipedia, web, got 'news'"):
        documents.read(qa, made.evidence, "news")


@pytest.mark.parametrize(("domain", "names"), [("Web", ["Pisa.txt"]), ("Wikipedia", None)])
def test_a_verified_file_gives_the_verified_part(made, domain, names):
    pages = [
        {"Filename": "Pisa.txt", "DocPartOfVerifiedEval": True},
        {"Filename": "Zürich.txt", "DocPartOfVerifiedEval": False},
    ]
    yes = made.record(1, "?", ["x"], EntityPages=pages, QuestionPartOfVerifiedEval=True)
    no = made.record(2, "?", ["x"], EntityPages=pages, QuestionPartOfVerifiedEval=False)
    qa = made.write([yes, no], Domain=domain, VerifiedEval=True)
    collection = documents.read(qa, made.evidence)
    assert [question.id for question in collection.questions] == ["tc_1"]
    assert collection.questions[0].verified
    assert [d.name for d in collection] == (names or ["Pisa.txt", "Zürich.txt"])


def test_several_files_keep_apart(made):
    other = made.write([made.record(9, "?", ["x"], "Pisa.txt")])
    both = documents.read([made.qa, other], [made.evidence, other.parent / "evidence"])
    assert [entry.source for entry in both.entries] == [0, 0, 1]
    assert len(both.questions) == 6
    assert both[2].questions[0].id == "tc_9"


def test_bad_input_is_named(made, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere: expected a folder of documents"):
        documents.read(made.qa, tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"no-such\.json"):
        documents.read(tmp_path / "no-such.json", made.evidence)
    with pytest.raises(ValueError, match="one evidence folder, or one for each of 1"):
        documents.read(made.qa, [made.evidence] * 2)
    with pytest.raises(ValueError, match="at least one path"):
        documents.read([], made.evidence)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"documents such as Pisa.txt, found none of 3"):
        documents.read(made.qa, tmp_path / "empty")
    with pytest.raises(ValueError, match=r"record 0.*KeyError\('QuestionId'\)"):
        documents.read(made.write([{"Question": "?"}]), made.evidence)


def test_a_document_that_is_no_text_is_named(made):
    path = made.evidence / "wikipedia" / "Pisa.txt"
    path.write_bytes(b"PNG\0\1\2")
    with pytest.raises(ValueError, match=r"Pisa\.txt: expected a document of text, got binary"):
        documents.read(made.qa, made.evidence)[0]
    with path.open("wb") as file:
        file.truncate(50 << 20)
    with pytest.raises(ValueError, match=r"Pisa\.txt: .*at most 16,777,216 bytes, got 52,428,800"):
        documents.read(made.qa, made.evidence)
