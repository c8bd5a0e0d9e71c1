import numpy as np
import pytest

from lemn_tf.mazes import PALETTE, imaze, random_maze, top_down
from lemn_tf.mazes.pictures import AGENT, TRAIL


def patch(picture, row, column, scale=12):
    return picture[row * scale : (row + 1) * scale, column * scale : (column + 1) * scale]


def test_cells_have_their_colours():
    maze = imaze(5, "L")
    picture = top_down(maze)
    assert picture.shape == (7 * 12, 7 * 12, 3)
    assert picture.dtype == np.uint8
    assert (patch(picture, *maze.indicator_cell) == PALETTE[2]).all()
    assert (patch(picture, 5, 1) == PALETTE[3]).all()
    assert (patch(picture, 5, 5) == PALETTE[4]).all()
    assert (patch(picture, 0, 0) != patch(picture, 2, 1)).any(), "outer and inner walls differ"


@pytest.mark.parametrize("heading", range(4))
def test_the_agent_points_where_it_looks(heading):
    picture = patch(top_down(imaze(5), pose=(1, 3, heading)), 1, 3)
    mark = (picture == AGENT).all(-1)
    assert 15 < mark.sum() < 100
    rows, columns = np.nonzero(mark)
    # the triangle's weight is at its base, behind
    back = {0: rows.mean() - 5.5, 1: 5.5 - columns.mean(), 2: 5.5 - rows.mean()}
    assert back.get(heading, columns.mean() - 5.5) > 0.5


def test_the_trail_is_marked():
    picture = top_down(imaze(5), pose=(2, 3, 2), trail=[(1, 3)])
    assert (patch(picture, 1, 3) == TRAIL).all(-1).any()
    assert not (patch(picture, 3, 3) == TRAIL).all(-1).any()


def test_errors():
    with pytest.raises(ValueError, match=r"free cell .* got pose \(0, 0, 0\)"):
        top_down(random_maze(0), pose=(0, 0, 0))
    with pytest.raises(ValueError, match=r"got pose \(99, 0, 0\)"):
        top_down(random_maze(0), pose=(99, 0, 0))
    with pytest.raises(ValueError, match="scale=2"):
        top_down(random_maze(0), scale=2)
