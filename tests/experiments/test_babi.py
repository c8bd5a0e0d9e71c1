"""Training and scoring on bAbI files, small: every row of the tables can be run."""

import dataclasses
import json
import resource
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import agents, evaluation, runs, training
from lemn_tf.experiments import babi, babi_cells
from lemn_tf.learning import ActorCritic, Hindsight
from lemn_tf.model import StreamReader
from lemn_tf.pipelines import babi_generator
from lemn_tf.readers import MemN2N
from lemn_tf.text import Vocabulary

ITEM = tf.TensorSpec([3], tf.int32)
TINY = {
    "lemn": {"linear start": 8, "reader": 8},
    "paper": {"fifo": 8},
}


def tiny(files, row, **changes) -> babi.BabiSettings:
    return babi.BabiSettings(
        str(files["train"]),
        str(files["valid"]),
        row.policy,
        slots=3,
        recipe=row.recipe,
        trainer=row.trainer,
        episodes=TINY[row.recipe],
        shuffle=row.shuffle,
        **changes,
    ).lasting(24)


@pytest.mark.parametrize("row", ["fifo", pytest.param("im-lemn", marks=pytest.mark.slow)])
def test_a_row_trains_and_scores(row, files, tmp_path, small_batches):
    settings = tiny(files, babi_cells.ROWS[row])
    trained = babi.train_model(settings, tmp_path / "run", jit_compile=False)
    history = (tmp_path / "run" / "history.jsonl").read_text().splitlines()
    assert [json.loads(line)["phase"] for line in history] == [p.name for p in settings.phases()]
    loaded = runs.load(tmp_path / "run")
    result = babi.score(loaded, files["test"])
    assert result == babi.score(trained, files["test"])
    assert result["questions"] == 40
    assert result["policy"] == babi_cells.ROWS[row].policy
    assert babi.score(loaded, files["test"], slots=40)["support_recall"] == 100


@pytest.mark.slow
@pytest.mark.parametrize(
    "row",
    [
        "fifo-paper",
        "st-lemn",
        "s-lemn",
        "st-lemn-a2c",
        "st-lemn-paper",
        "shuffled-s-lemn",
        "shuffled-st-lemn",
    ],
)
def test_the_other_rows(row, files, tmp_path, small_batches):
    test_a_row_trains_and_scores(row, files, tmp_path, None)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_memory_stays_flat(files, tmp_path, monkeypatch, small_batches):
    """Sixty epochs more, each with its checkpoint and validation, take under a megabyte each."""
    monkeypatch.setattr(training, "EPOCH", 8)
    pages = []

    class Count(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            pages.append(int(Path("/proc/self/statm").read_text().split()[1]))

    lengths = {**TINY["lemn"], "roomy": 8, "policy": 8, "polish": 80 * 8}
    settings = dataclasses.replace(tiny(files, babi_cells.ROWS["s-lemn"]), episodes=lengths)
    babi.train_model(settings, tmp_path / "run", callbacks=lambda *_: [Count()], jit_compile=False)
    assert len(pages) > 80
    assert (pages[-1] - pages[-61]) * resource.getpagesize() < 60e6


@pytest.mark.slow
def test_a_reader_is_trained_once(files, tmp_path, small_batches):
    first = tiny(files, babi_cells.ROWS["fifo"])
    babi.train_model(first, tmp_path / "first", jit_compile=False)
    second = tiny(files, babi_cells.ROWS["s-lemn"], reader_from=str(tmp_path / "first"))
    assert [phase.name for phase in second.phases()] == ["roomy", "policy", "polish"]
    babi.train_model(second, tmp_path / "second", jit_compile=False)
    missing = dataclasses.replace(second, reader_from=str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="no reader of a finished phase 1"):
        babi.train_model(missing, jit_compile=False)


@pytest.fixture
def beginning(files):
    """The file of a model with three slots, and settings that start from it with five."""
    path = files["train"].with_name("first.keras")
    babi.build(tiny(files, babi_cells.ROWS["st-lemn"]), *known(files)).save(path)
    both, sizes = (str(files["train"]), str(files["valid"])), (3, 5)
    settings = babi.BabiSettings(*both, slots=5, sizes=sizes, seed=1, start_from=str(path))
    return path, settings.lasting(8)


def known(files):
    data = babi.Stories(files["train"])
    return data.vocabulary, data.sentence_length


def test_a_training_starts_from_a_trained_model(files, beginning):
    """Everything of it is taken but its number of slots, and only the last phase is left."""
    path, settings = beginning
    (phase,) = settings.phases()
    assert (phase.name, phase.episodes, phase.sizes) == ("polish", 8, (3, 5))
    model = babi.build(settings, *known(files))
    babi.begin_with(model, path)
    assert model.memory.slots == 5
    for mine, its in zip(model.get_weights(), runs.load(path).get_weights(), strict=True):
        np.testing.assert_array_equal(mine, its)


def test_a_training_starts_from_nothing_of_another_kind(files, beginning):
    path, settings = beginning
    wider = babi.build(dataclasses.replace(settings, hidden=7), *known(files))
    with pytest.raises(ValueError, match=r"first\.keras: expected .* policy's hidden 7, got None"):
        babi.begin_with(wider, path)
    words, length = known(files)
    other = babi.build(settings, Vocabulary([*words.words[:-1], "zebra"], words.example), length)
    with pytest.raises(ValueError, match=r"knows the words of the stories .* zebra"):
        babi.begin_with(other, path)


@pytest.mark.slow
def test_a_training_goes_on_from_a_trained_model(beginning, small_batches):
    path, settings = beginning
    slow = dataclasses.replace(settings, changes={"learning_rate": 1e-6})
    trained = babi.train_model(slow, jit_compile=False)
    pairs = list(zip(trained.get_weights(), runs.load(path).get_weights(), strict=True))
    assert any((mine != its).any() for mine, its in pairs)
    for mine, its in pairs:
        np.testing.assert_allclose(mine, its, atol=1e-4)


def test_words_that_were_never_seen(files, tmp_path):
    model = babi.build(babi.BabiSettings("", ""), babi.Stories(files["train"]).vocabulary, 7)
    path = tmp_path / "strange.txt"
    path.write_text("1 Zorro took the rhinoceros home.\n2 Where is the rhinoceros?\tattic\t1\n")
    assert babi.score(model, path)["error_rate"] == 100


def test_long_sentences_are_read_to_their_end(files, tmp_path):
    """A file may hold longer sentences than the one that the model was trained on."""
    model = babi.build(babi.BabiSettings("", ""), babi.Stories(files["train"]).vocabulary, 7)
    path = tmp_path / "long.txt"
    path.write_text(
        "1 Mary went very far away indeed to the kitchen.\n2 Where is Mary?\tkitchen\t1\n"
    )
    assert babi.Stories(path, model.vocabulary).arrays["items"].shape[-1] == 9
    assert babi.score(model, path)["questions"] == 1


def test_stories_are_scored_with_other_names(files):
    """Facts stay where they are: a rule keeps the same ones, however people are called."""
    model = babi.build(babi.BabiSettings("", ""), babi.Stories(files["train"]).vocabulary, 7)
    model = model.with_policy("fifo")
    plain, renamed = (babi.score(model, files["test"], renamings=k) for k in (0, 3))
    assert (plain["questions"], renamed["questions"]) == (40, 120)
    assert plain["support_recall"] == renamed["support_recall"]


@pytest.mark.slow
def test_questions_without_labels(files, tmp_path):
    """Supporting facts are spoken of where they are known; the oracle needs all of them."""
    model = babi.build(babi.BabiSettings("", ""), babi.Stories(files["train"]).vocabulary, 7)
    path = tmp_path / "stories.txt"
    facts = "1 Mary went to the garden.\n2 Where is Mary?\tgarden{}\n"
    for first, labelled, recall in (("\t1", 2, 100), ("", 1, 100), (None, 0, None)):
        second = "" if first is None else "\t1"
        path.write_text(facts.format(first or "") + facts.format(second))
        result = babi.score(model, path)
        assert (result["questions"], result["labelled"]) == (2, labelled)
        assert result["support_recall"] == recall
        rows = evaluation.compare({"mine": model}, lambda model: babi.score(model, path))
        assert len(rows) == (2 if labelled == 2 else 1)
        assert (rows[0]["regret"] is None) == (labelled < 2)
        data = babi.Stories(path, model.vocabulary).batches(2, buckets=1)
        model.compile(jit_compile=False)
        shown = model.evaluate(data, verbose=0, return_dict=True)
        assert shown["support_recall"] == (recall or 0) / 100
    assert result["right_if_supported"] is None


def test_a_file_without_questions(files, tmp_path):
    path = tmp_path / "stories.txt"
    path.write_text("1 Mary went home.\n")
    for settings in (
        babi.BabiSettings(str(path), str(files["valid"])),
        babi.BabiSettings(str(files["train"]), str(path)),
    ):
        with pytest.raises(ValueError, match=r"stories\.txt: expected stories with questions"):
            babi.train_model(settings, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_is_resumed_with_the_same_data_and_shards_only(files, tmp_path, monkeypatch):
    monkeypatch.setattr(babi, "run_loop", lambda *_: None)
    train = tmp_path / "train.txt"
    train.write_bytes(files["train"].read_bytes())
    settings = babi.BabiSettings(str(train), str(files["valid"]))
    babi.train_model(settings, tmp_path / "run", shards=2)
    babi.train_model(settings, tmp_path / "run", shards=2)
    elsewhere = tmp_path / "copy.txt"
    elsewhere.write_bytes(files["train"].read_bytes())  # the same stories count, not the path
    babi.train_model(
        dataclasses.replace(settings, train=str(elsewhere)), tmp_path / "run", shards=2
    )
    with pytest.raises(ValueError, match=r"other settings \(shards differ\)"):
        babi.train_model(settings, tmp_path / "run", shards=1)
    train.write_bytes(files["test"].read_bytes())
    with pytest.raises(ValueError, match=r"other settings \(train_digest differ\)"):
        babi.train_model(settings, tmp_path / "run", shards=2)


def test_one_entropy_bonus_however_many_objectives():
    both = babi.BabiSettings("", "", trainer="both").phases()[-1]
    first, second = training.objectives_of(both)
    assert (first.entropy, first.final_entropy) == (0.1, 0.02)
    assert (second.entropy, second.final_entropy) == (0.0, None)


def test_the_actor_critic_alone_trains_by_its_own_recipe(files):
    alone = babi.BabiSettings("", "", trainer="a2c", units=8)
    assert [phase.name for phase in alone.phases()[2:]] == ["policy", "anneal"]
    assert {phase.objectives for phase in alone.phases()[2:]} == {("a2c",)}
    lengths = alone.lasting(1000).episodes
    assert list(lengths) == ["policy", "anneal"]
    assert sum(lengths.values()) == 1000
    (objective,) = training.objectives_of(alone.phases()[-1])
    assert objective.rollouts == alone.phases()[-1].rollouts
    words = babi.Stories(files["train"]).vocabulary
    for trainer, hidden, width in (("a2c", None, 8), ("a2c", 3, 3), ("both", None, 2)):
        settings = dataclasses.replace(alone, trainer=trainer, hidden=hidden)
        assert babi.build(settings, words, 7).memory.policy.hidden_width == width
    asked = dataclasses.replace(alone, changes={"entropy": 0.2}).phases()
    assert [phase.entropy for phase in asked] == [0.1, 0.1, 0.2, 0.2]


def test_stories_are_lived_through_several_times(files, monkeypatch, small_batches):
    """An update has as many rows as any other, of fewer stories."""
    seen = []

    def look(trainee, run):
        for index, phase in enumerate(trainee.recipe):
            seen.append((phase, next(iter(trainee.batches(index, phase, 0)))))

    monkeypatch.setattr(babi, "run_loop", look)
    settings = tiny(files, babi_cells.ROWS["st-lemn-a2c"], changes={"rollouts": 2})
    babi.train_model(settings)
    for phase, batch in seen:
        assert all(len(values) == phase.batch_size for values in batch.values())
        items = batch["items"].numpy().reshape(phase.batch_size, -1)
        assert len({row.tobytes() for row in items}) == phase.batch_size // phase.rollouts
        if phase.rollouts == 2:
            assert (items[::2] == items[1::2]).all()
    assert [phase.rollouts for phase, _ in seen] == [1, 1, 2, 2]


def test_a_rule_can_take_the_place_of_a_policy_but_no_untrained_one(files):
    model = babi.build(babi.BabiSettings("", ""), babi.Stories(files["train"]).vocabulary, 7)
    assert evaluation.with_rule(model, "st-lemn") is model
    assert evaluation.with_rule(model, "fifo").memory.policy.name == "fifo"
    with pytest.raises(ValueError, match="s-lemn is learned: expected a run or preset that was"):
        evaluation.with_rule(model, "s-lemn")
    models = {"mine": model, "last in": model.with_policy("lifo")}
    rows = evaluation.compare(models, lambda model: babi.score(model, files["test"], 5))
    assert [row["name"] for row in rows] == ["mine", "last in", "oracle"]
    assert rows[-1]["regret"] == 0 <= rows[0]["regret"]


def test_input_matching_is_pushed_to_explore():
    pushed = babi.BabiSettings("", "", "im-lemn").phases()
    assert [phase.entropy for phase in pushed] == [0.1, 0.1, 0.5, 0.5, 0.5]
    asked = babi.BabiSettings("", "", "im-lemn", changes={"entropy": 0.2}).phases()
    assert [phase.entropy for phase in asked] == [0.1, 0.1, 0.2, 0.2, 0.2]


# -- who drives the updates: an agent of TF-Agents, its drivers, or the model itself


def make_model():
    keras.utils.set_random_seed(2)
    return StreamReader(MemN2N(9, 3, units=4, hops=1, max_slots=8), 2, "s-lemn")


def batch(rows=4, steps=5):
    generator = np.random.default_rng(0)
    arrays = {
        "items": generator.integers(1, 9, [rows, steps, 3]),
        "length": np.array([steps, steps - 1, steps, steps])[:rows],
        "questions": generator.integers(1, 9, [rows, 1, 3]),
        "ask_at": np.full([rows, 1], steps - 1),
        "answers": generator.integers(1, 9, [rows, 1]),
    }
    return {name: tf.constant(array, tf.int32) for name, array in arrays.items()}


def test_the_agent_drives():
    agent = babi.agent_for(make_model(), (Hindsight(),), ITEM, None, driver=False)
    assert isinstance(agent, agents.ActorCriticAgent)


def test_a_driver_reads_the_streams_of_every_batch():
    """The batch's own streams, whatever the order of their lengths; updates as ever."""
    model, chosen = make_model(), (ActorCritic(),)
    driven = babi.agent_for(model, chosen, ITEM, None, driver=True)
    assert isinstance(driven, agents.Driven)
    model.compile(
        keras.optimizers.SGD(0.1), retention=chosen, agent=driven, jit_compile=False, seed=1
    )
    before = model.get_weights()
    data = tf.data.Dataset.from_tensors(batch()).repeat(2)
    history = model.fit(data, verbose=0, shuffle=False).history
    assert np.isfinite(history["total_loss"][0])
    assert {"return", "accuracy", "subset_accuracy"} <= set(history)
    assert any(np.any(a != b) for a, b in zip(before, model.get_weights(), strict=True))
    assert int(driven.agent.train_step_counter) == 2
    assert len(driven._games) == 1


def test_without_tf_agents_the_model_trains_itself_and_says_so(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "lemn_tf.agents.actor_critic", raising=False)
    for name in [name for name in sys.modules if name.split(".")[0] == "tf_agents"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tf_agents", None)
    assert babi.agent_for(make_model(), (Hindsight(),), ITEM, None, driver=False) is None
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "TF-Agents is not installed" in said
    with pytest.raises(ValueError, match="--driver needs TF-Agents"):
        babi.agent_for(make_model(), (Hindsight(),), ITEM, None, driver=True)


@pytest.mark.slow
def test_a_driver_teaches_what_the_fast_path_teaches(tmp_path):
    """On generated stories, reader and all: the two ways end near each other, far from FIFO."""
    files = list(babi_generator.write_splits("noisy", 700, 0, tmp_path).values())
    lengths = {"linear start": 24_000, "reader": 24_000, "policy": 8_000, "polish": 8_000}
    settings = babi.BabiSettings(
        str(files[0]), str(files[1]), slots=5, room=False, episodes=lengths
    )
    errors = {}
    for driver in (False, True):
        run = tmp_path / f"run-{driver}"
        model = babi.train_model(dataclasses.replace(settings, driver=driver), run, shards=1)
        errors[driver] = babi.score(model, files[1])["error_rate"]
    fifo = babi.score(model.with_policy("fifo"), files[1])["error_rate"]
    assert errors[True] < 0.5 * fifo
    assert abs(errors[True] - errors[False]) < 8


def test_questions_that_a_sliding_window_could_not_answer(files):
    model = babi.build(
        babi.BabiSettings("", "", slots=3), babi.Stories(files["train"]).vocabulary, 7
    )
    kitchen = model.vocabulary.lookup(["kitchen"])[0]
    model.reader.bias.assign(99.0 * tf.one_hot(kitchen, model.vocabulary.size))
    found = babi.recollections(model, files["test"], count=2)
    assert len(found) == 2
    for one in found:
        assert one.question in one.story.questions
        assert one.question.asked_after - min(one.question.support) > 6
        assert len(one.kept) == 3
        assert one.kept == sorted(one.kept)
        assert max(one.kept) < one.question.asked_after
        assert one.answer == "kitchen"
