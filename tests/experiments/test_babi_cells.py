"""Which cells the bAbI tables have, and in which order they are run."""

import pytest

from lemn_tf.experiments import babi_cells


def test_the_plan():
    cells = babi_cells.plan(["st-lemn"], ["noisy-5"], seeds=2)
    assert [cell.name for cell in cells] == [
        "fifo-noisy-5-seed0",
        "fifo-noisy-5-seed1",
        "st-lemn-noisy-5-seed0",
        "st-lemn-noisy-5-seed1",
    ]
    everything = babi_cells.plan(list(babi_cells.ROWS), None, seeds=3)
    trained = sum(len(row.episodes) for row in babi_cells.ROWS.values())
    assert len(everything) == 3 * trained
    own = babi_cells.plan(["st-lemn-paper"], ["original-5", "large-10"])
    seeds = {"original": [], "large": []}
    for cell in own:
        seeds[cell.variant] += [cell.seed] if cell.first else []
    assert seeds == {"original": [0, 1, 2], "large": [0, 1, 2, 3, 4]}
    known = {cell.name for cell in everything}
    assert all(cell.first is None or cell.first.name in known for cell in everything)
    with pytest.raises(ValueError, match="unknown columns"):
        babi_cells.plan(["st-lemn"], ["noisy-8"], seeds=1)
    with pytest.raises(ValueError, match="st-lemn-both is not trained on large-10"):
        babi_cells.plan(["st-lemn-both"], ["large-10"])
