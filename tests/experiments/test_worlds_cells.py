"""The trainings of the exam."""

import pytest

from lemn_tf.experiments.worlds_cells import EXAMS, ROWS, plan


def test_the_first_world_comes_first():
    cells = plan(EXAMS, ["fifo", "lstm"], seeds=2)
    assert [cell.name for cell in cells[:3]] == [
        "popgym-RepeatFirstEasy-v0-fifo-seed0",
        "popgym-RepeatFirstEasy-v0-lstm-seed0",
        "popgym-RepeatFirstEasy-v0-fifo-seed1",
    ]
    assert len({cell.name for cell in cells}) == 4 * len(EXAMS)


@pytest.mark.parametrize(
    ("envs", "rows", "said"), [(["nix"], ROWS, "worlds"), (EXAMS, ["nix"], "rows")]
)
def test_what_is_not_in_it(envs, rows, said):
    with pytest.raises(ValueError, match=rf"expected {said} among .*; got \['nix'\]"):
        plan(envs, rows)
