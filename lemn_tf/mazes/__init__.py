"""Mazes in the first person: maps, a renderer, pose tables and Gymnasium environments.

The tasks are those of Oh et al., "Control of Memory, Active Perception, and Action in Minecraft"
(ICML 2016): an indicator tile near the start tells which of two goals to walk to. Importing this
package registers `lemn/IMaze-v0`, `lemn/SingleIndicator-v0` and `lemn/FarIndicator-v0` with
Gymnasium.

>>> import gymnasium, lemn_tf.mazes
>>> gymnasium.make("lemn/IMaze-v0", length=9).reset(seed=0)[0].shape
(32, 32, 3)

maps <- generate, raycast <- render <- expert <- world <- envs <- vector, graph
"""

from lemn_tf.mazes.envs import MazeEnv, imaze_world, register, single_indicator_world
from lemn_tf.mazes.expert import shortest_ways, steps_to_goal, winnable
from lemn_tf.mazes.generate import (
    SPLITS,
    TEST_LENGTHS,
    TRAIN_LENGTHS,
    imaze,
    imazes,
    random_maze,
    random_mazes,
)
from lemn_tf.mazes.maps import Maze, distances, goal_distance, load_jsonl, save_jsonl
from lemn_tf.mazes.pictures import top_down
from lemn_tf.mazes.render import PALETTE, Camera, Scene, render_batch
from lemn_tf.mazes.vector import MazeVectorEnv
from lemn_tf.mazes.world import (
    ACTIONS,
    FORWARD,
    LEFT,
    RIGHT,
    Rules,
    Step,
    World,
    build,
    default_rules,
    imaze_rules,
    split_rules,
)

__all__ = [
    "ACTIONS",
    "FORWARD",
    "LEFT",
    "PALETTE",
    "RIGHT",
    "SPLITS",
    "TEST_LENGTHS",
    "TRAIN_LENGTHS",
    "Camera",
    "Maze",
    "MazeEnv",
    "MazeVectorEnv",
    "Rules",
    "Scene",
    "Step",
    "World",
    "build",
    "default_rules",
    "distances",
    "goal_distance",
    "imaze",
    "imaze_rules",
    "imaze_world",
    "imazes",
    "load_jsonl",
    "random_maze",
    "random_mazes",
    "register",
    "render_batch",
    "save_jsonl",
    "shortest_ways",
    "single_indicator_world",
    "split_rules",
    "steps_to_goal",
    "top_down",
    "winnable",
]

register()
