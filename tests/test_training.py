"""Training runs: what is stopped and resumed gives the numbers of what was never stopped."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import recipes, training
from lemn_tf.experiments.crew import free_ports
from lemn_tf.learning import Hindsight
from lemn_tf.learning.workers import VARIABLE, Cluster, WorkerLost, write_config
from lemn_tf.loop import Interrupted, Run, run_loop
from lemn_tf.model import StreamReader
from lemn_tf.readers import MemN2N
from lemn_tf.recipes import Phase

ROWS = 4
PHASES = (
    Phase("reader", 3 * ROWS, batch_size=ROWS, on_policy=0.0, on_subsets=1.0),
    Phase("policy", 4 * ROWS, batch_size=ROWS, objectives=("hindsight",), final_rate=0.1),
)


def batch_of(number):
    """The batch of that number: a function of it alone."""
    generator = np.random.default_rng(number)
    arrays = {
        "items": generator.integers(1, 9, [ROWS, 3, 3]),
        "length": np.full([ROWS], 3),
        "questions": generator.integers(1, 9, [ROWS, 1, 3]),
        "ask_at": np.full([ROWS, 1], 3),
        "answers": generator.integers(1, 9, [ROWS, 1]),
        "support": np.zeros([ROWS, 1, 1]),
    }
    return {name: tf.constant(array, tf.int32) for name, array in arrays.items()}


def batches(index, phase, start):
    """An endless data set that starts with batch `start`."""
    signature = {k: tf.TensorSpec(v.shape, v.dtype) for k, v in batch_of(0).items()}

    def forever():
        number = start
        while True:
            yield batch_of(100 * index + number)
            number += 1

    return tf.data.Dataset.from_generator(forever, output_signature=signature)


class Stop(keras.callbacks.Callback):
    """Does something after so many updates of the phase, or when its validation begins."""

    def __init__(self, do, update, validating=False):
        super().__init__()
        self.do, self.update, self.validating = do, update, validating

    def _maybe(self, validating):
        if validating == self.validating and int(self.model.optimizer.iterations) == self.update:
            self.do()

    def on_train_batch_end(self, batch, logs=None):
        self._maybe(False)

    def on_test_begin(self, logs=None):
        self._maybe(True)


def trainee_of(folder, stop=None, epoch=2, **options):
    """What trains the small recipe; `stop` is a phase's number and a callback for it."""
    training.EPOCH = epoch * ROWS
    tf.config.run_functions_eagerly(True)  # so few updates are done before a graph is traced
    keras.utils.set_random_seed(0)
    model = StreamReader(MemN2N(9, 3, units=4, hops=1, max_slots=3), 1, "s-lemn")
    return training.PhaseTrainee(
        model,
        PHASES,
        batches,
        tf.data.Dataset.from_tensors(batch_of(999)),
        folder,
        seed=3,
        jit_compile=False,
        callbacks=lambda phase, index: [stop[1]] if stop and stop[0] == index else [],
        **options,
    )


def run(folder, stop=None, **options):
    """Trains the small recipe in `folder`; see `trainee_of`."""
    trainee = trainee_of(folder, stop, **options)
    return trainee, run_loop(trainee, Run(folder, {"phases": len(PHASES)}))


def history(folder):
    """The lines of the history, without times."""
    lines = [json.loads(line) for line in (Path(folder) / "history.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k != "seconds"} for line in lines]


def checkpoint(folder):
    with np.load(Path(folder) / "checkpoint.npz") as file:
        return {name: file[name] for name in file.files if name != "progress/seconds"}


def interrupt():
    raise KeyboardInterrupt


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module", autouse=True)
def _as_before():
    """Leaves no trace of what `run` sets."""
    epoch = training.EPOCH
    yield
    training.EPOCH = epoch
    tf.config.run_functions_eagerly(False)


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """A run that nothing stopped: its folder and its model."""
    folder = tmp_path_factory.mktemp("straight")
    trainee, standing = run(folder)
    assert trainee.finished
    assert standing.lines == 4
    return folder, trainee.model


def same_as(straight, folder, model):
    """Asserts that a run came to the same numbers as the one that nothing stopped."""
    expected = checkpoint(straight[0])
    found = checkpoint(folder)
    assert set(found) == set(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
    for ours, theirs in zip(model.get_weights(), straight[1].get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for phase in range(2):
        for ours, theirs in zip(
            training.reader_after(folder, phase),
            training.reader_after(straight[0], phase),
            strict=True,
        ):
            np.testing.assert_array_equal(ours, theirs)
    lines, expected = history(folder), history(straight[0])
    assert [line["update"] for line in lines] == [line["update"] for line in expected]
    for ours, theirs in zip(lines, expected, strict=True):
        for name in theirs:
            if name.startswith("val_"):
                assert ours[name] == theirs[name]


def test_a_run_leaves_what_it_promises(straight):
    folder, model = straight
    names = {path.name for path in folder.iterdir()}
    files = {"config.json", "history.jsonl", "checkpoint.npz", "model.keras"}
    assert names == files | {".lock", "reader-0.npz", "reader-1.npz"}
    lines = history(folder)
    assert [(line["phase"], line["update"]) for line in lines] == [
        ("reader", 2),
        ("reader", 3),
        ("policy", 2),
        ("policy", 4),
    ]
    best = keras.saving.load_model(folder / "model.keras", compile=False)
    for ours, theirs in zip(best.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("phase", "update", "validating"),
    [
        pytest.param(0, 1, False, id="first phase", marks=pytest.mark.slow),
        pytest.param(1, 3, False, id="second phase"),
        pytest.param(1, 2, True, id="validation"),
    ],
)
def test_ctrl_c_and_resume(straight, tmp_path, phase, update, validating):
    with pytest.raises(Interrupted, match="run the same command again"):
        run(tmp_path, (phase, Stop(interrupt, update, validating)))
    trainee, _ = run(tmp_path)
    same_as(straight, tmp_path, trainee.model)


def test_kill_and_resume(straight, tmp_path):
    """The process is really killed, in the middle of an epoch, after a checkpoint."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, __file__, str(tmp_path)], env=environment, capture_output=True, timeout=300
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-2000:]
    assert int(checkpoint(tmp_path)["progress/update"]) == 2
    trainee, _ = run(tmp_path)
    same_as(straight, tmp_path, trainee.model)


def test_a_finished_run_stays_as_it_is(straight):
    folder, model = straight
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".jsonl"}
    trainee, standing = run(folder)
    assert trainee.where() == "update 4 of 4 in phase 'policy'"
    assert standing.lines == 4
    assert before["checkpoint.npz"] == (folder / "checkpoint.npz").read_bytes()
    for ours, theirs in zip(trainee.model.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_reader_of_an_unfinished_phase(tmp_path):
    with pytest.raises(ValueError, match="no reader of a finished phase 1"):
        training.reader_after(tmp_path, 1)


@pytest.mark.parametrize("name", recipes.RECIPES)
@pytest.mark.parametrize("trainer", [None, "a2c", "hindsight", "both"])
def test_every_phase_of_every_recipe_can_be_compiled(name, trainer):
    model = StreamReader(MemN2N(9, 3, units=6, hops=1, max_slots=5), 2, "s-lemn")
    phases = recipes.get(name, trainer)
    assert phases
    assert any(phase.objectives for phase in phases)
    for phase in phases:
        assert phase.episodes >= phase.batch_size > 0
        assert 0 < phase.final_rate <= 1
        assert phase.learning_rate > 0
        assert phase.on_policy + phase.on_subsets > 0
        assert set(phase.objectives) <= {"a2c", "hindsight"}
        assert phase.reward in ("sign", "probability")
        model.compile(
            keras.optimizers.Adam(phase.learning_rate, global_clipnorm=phase.clip),
            retention=[Hindsight() for _ in phase.objectives] or None,
            on_policy=phase.on_policy,
            on_subsets=phase.on_subsets,
            linear=phase.linear,
            acting=phase.acting,
            slots=phase.slots,
        )
    assert all(not phase.objectives for phase in recipes.without_policy(phases))


def test_a_phase_may_have_a_smaller_memory_or_a_larger_one():
    roomy, tight = Phase("roomy", 1, slots=10), Phase("tight", 1, at_most=5)
    assert [training.slots_of(roomy, own) for own in (5, 12)] == [(10,), (12,)]
    assert [training.slots_of(tight, own) for own in (3, 10)] == [(3,), (5,)]
    assert training.slots_of(Phase("own", 1), 7) == (7,)
    assert training.slots_of(Phase("several", 1, sizes=(3, 9)), 7) == (3, 9)


def test_training_watches_any_metric(tmp_path):
    _, standing = run(tmp_path, watch="loss")
    learned = [line["val_loss"] for line in history(tmp_path) if line["phase"] == "policy"]
    assert -standing.best[0] == pytest.approx(min(learned), rel=1e-6)
    with pytest.raises(ValueError, match="no metric 'speed' to watch; validation gives accuracy"):
        run(tmp_path / "other", watch="speed")


# -- several workers


def start_workers(folder, dies_at=0):
    """Two workers of one training; the second is killed after that update of the second phase."""
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    return [
        subprocess.Popen(
            [sys.executable, __file__, str(folder), str(dies_at * rank)],
            env={**os.environ, VARIABLE: write_config(addresses, rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]


def work(folder, dies_at):
    """What each of them does."""
    workers = Cluster()
    options = {"shards": 2, "workers": workers}
    if workers.rank == 0:
        run(folder, **options)
        workers.tell({})
        return
    trainee = trainee_of(None, (1, Stop(kill, dies_at)), **options)
    for told in iter(workers.hear, {}):
        trainee.follow(told)


def ended(processes):
    """How each worker ended, and what it said."""
    said = [process.communicate(timeout=300)[1] for process in processes]
    return [(process.returncode, text) for process, text in zip(processes, said, strict=True)]


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """A run of one worker that takes each batch in two shards: its folder."""
    folder = tmp_path_factory.mktemp("halves")
    run(folder, shards=2)
    return folder


def same_to_rounding(folder, expected):
    """Asserts that two runs came to the same weights, optimizers and histories."""
    found, wanted = checkpoint(folder), checkpoint(expected)
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-6, err_msg=name)
    for ours, theirs in zip(history(folder), history(expected), strict=True):
        assert ours.pop("phase") == theirs.pop("phase")
        assert ours == pytest.approx(theirs, rel=1e-4, abs=1e-5)
    assert {path.name for path in folder.iterdir()} == {path.name for path in expected.iterdir()}


def test_two_workers_come_to_the_weights_of_one(halves, tmp_path):
    """Half the batch each: draws, weights and scalars are those of the whole."""
    for code, said in ended(start_workers(tmp_path)):
        assert code == 0, said[-2000:]
    same_to_rounding(tmp_path, halves)


@pytest.mark.slow
def test_a_killed_worker_stops_the_other_and_the_run_goes_on(halves, tmp_path):
    chief, other = start_workers(tmp_path, dies_at=3)
    assert ended([other])[0][0] == -signal.SIGKILL
    began = time.monotonic()
    ((code, said),) = ended([chief])
    assert time.monotonic() - began < 60
    assert code == 2, said[-2000:]
    told = said.strip().splitlines()[-1]
    assert told.startswith("worker 1 of 2 lost contact with another one (")
    assert told.endswith(f"in {tmp_path}: run the same command again to go on")
    assert "; stopped after update 2 of 4 in phase 'policy'; saved in " in told
    assert int(checkpoint(tmp_path)["progress/update"]) == 2
    for code, said in ended(start_workers(tmp_path)):
        assert code == 0, said[-2000:]
    same_to_rounding(tmp_path, halves)


if __name__ == "__main__":
    if VARIABLE not in os.environ:
        run(sys.argv[1], (1, Stop(kill, 3)))
    try:
        work(Path(sys.argv[1]), int(sys.argv[2]))
    except WorkerLost as lost:
        print(lost, file=sys.stderr)
        sys.exit(2)
