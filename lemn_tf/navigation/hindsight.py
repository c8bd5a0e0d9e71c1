"""What an agent would have done with another memory: practice, and hindsight credit in a world.

Once an episode is over all of it is at hand, and the reader can be asked what it would have made of
any step with other entries in memory. Nobody knows the right action; but one was taken, and A_t
says how much better than expected that turned out. Two things are learned from this:

    practice     a reader that sees a random part of the episode should do more of what turned out
                 well: - sum_t A_t min(pi'_t / pi_t, 2) log pi'_t
    hindsight    an entry was worth as much at a step as it moved the agent towards what turned out
                 well: Delta_t(j) = A_t (pi(a_t | M_t with j) / pi(a_t | M_t) - 1) for a dropped j,
                 A_t (1 - pi(a_t | M_t without j) / pi(a_t | M_t)) for one in memory, if A_t > 0

where pi_t = pi(a_t | M_t) is how likely the action was that was taken, and pi'_t how likely it is
with the practice memory. From Delta the value of keeping each candidate follows as for questions:
every step asks one (`lemn_tf.learning.hindsight`). So what would have been worth keeping is learned
from the episodes that did not keep it, too. Steps that turned out badly are left out: a reader
that misses an entry reads another one instead and is wrong, and would be blamed for having that
other one, though without it it would only have been wrong in another way.

It is for readers whose context is the current observation alone (MQN), where a step with another
memory is that step and nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from lemn_tf.learning import hindsight
from lemn_tf.memory import EMPTY
from lemn_tf.navigation.agent import MemoryAgent, Views
from lemn_tf.navigation.learning import Lived
from lemn_tf.readers.feedback import MASKED, read
from lemn_tf.retention.chance import salt_of, scramble

TRUSTED = 2.0
"""The largest ratio of probabilities that counts in practice."""
RAREST = 0.1
"""An action less likely than this is judged as if it had been this likely."""


class Reading(NamedTuple):
    """How the steps of episodes would read each other.

    Attributes:
        query: `[B, T, units]`, h of every step.
        values: `[B, T, units]`, what every step left to be read.
        scores: `[B, T, T]`, h_t . k_j.
    """

    query: tf.Tensor
    values: tf.Tensor
    scores: tf.Tensor


def reads(agent: MemoryAgent) -> bool:
    """Whether a step of the agent depends on its memory and the current observation alone."""
    return agent.reader.query_widths == 1 and agent.past is None


def reading(agent: MemoryAgent, views: Views) -> Reading:
    """How the steps would read each other, from what they saw, `[B, T, ...]`."""
    keys, values = tf.split(views.codes, 2, axis=-1)
    scores = tf.matmul(views.query, keys, transpose_b=True)
    if agent.when is not None:
        scores += agent.when.between(views.query)
    return Reading(views.query, values, scores)


def practised(agent: MemoryAgent, seen: Reading, seed: tf.Tensor) -> tf.Tensor:
    """The reader's output `[B, T, units]` at every step from a random part of what came before.

    How large a part is drawn for each episode, from N of the earlier steps to all of them.

    Args:
        agent: whose reader.
        seen: the episodes.
        seed: `[2]` int32.
    """
    rows, steps = seen.query.shape[:2]
    step = tf.range(steps, dtype=tf.int64)
    salt = salt_of(seed + tf.constant([104_729, 0]))
    row = tf.range(rows, dtype=tf.int64)
    least = tf.math.log(tf.minimum(agent.memory.slots / steps, 1.0))
    share = tf.exp(least * scramble(tf.zeros([rows, 1], tf.int64), row, salt))  # [B, 1]
    clock = 1 + row[:, None] * steps + step  # [B, T]
    drawn = scramble(tf.broadcast_to(step, [rows, steps, steps]), clock, salt)
    held = (drawn < share[..., None]) & (step < step[:, None])
    p = tf.nn.softmax(tf.where(held, seen.scores, MASKED)) * tf.cast(held, tf.float32)
    return agent.reader.output(seen.query, tf.matmul(p, seen.values))


def likelihood(agent: MemoryAgent, query: tf.Tensor, o: tf.Tensor, action: tf.Tensor) -> tf.Tensor:
    """pi(a | what was read) `[...]`, from h and o `[..., units]` and actions `[...]`."""
    pi = tf.nn.softmax(agent.reader.actor(agent.reader.output(query, o)))
    return tf.reduce_sum(pi * tf.one_hot(action, pi.shape[-1]), axis=-1)


def flipped(
    agent: MemoryAgent, seen: Reading, kept: tf.Tensor, action: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """How likely the actions were, and would have been with one entry more or less.

    Args:
        agent: whose reader.
        seen: the episodes.
        kept: `[B, T, N]` int64, what was in memory at each step, -1 = unused.
        action: `[B, T]` int32, what was done.

    Returns:
        pi(a_t | M_t), `[B, T]`, and the same with step j left out if it was in memory, else put
        back, `[B, T, T]`; only j < t means anything.
    """
    steps = seen.query.shape[1]

    def one(row):
        (query, values, scores), ids, did = row
        used = ids != EMPTY
        places = tf.maximum(ids, 0)
        held = tf.where(used, tf.gather(scores, places, batch_dims=1), MASKED)  # [T, N]
        kinds = tf.gather(values, places)
        p = tf.nn.softmax(held) * tf.cast(used, tf.float32)
        o = read(p, kinds)
        # One more takes its share of the attention from all others.
        share = tf.sigmoid(scores - tf.reduce_logsumexp(held, axis=-1, keepdims=True))
        back = o[:, None] + share[..., None] * (values - o[:, None])
        after = likelihood(agent, query[:, None], back, did[:, None])
        # One less: the attention over the others.
        others = used[:, None] & ~tf.eye(ids.shape[-1], dtype=tf.bool)  # [T, N, N]
        rest = tf.nn.softmax(tf.where(others, held[:, None], MASKED)) * tf.cast(others, tf.float32)
        left = likelihood(agent, query[:, None], tf.matmul(rest, kinds), did[:, None])
        here = tf.one_hot(ids, steps)  # [T, N, T]; nothing for unused slots
        missing = tf.einsum("tn,tnj->tj", left, here)
        return likelihood(agent, query, o, did), tf.where(
            tf.reduce_any(here > 0, axis=1), missing, after
        )

    kinds = (tf.float32, tf.float32)
    return tf.map_fn(one, (seen, kept, action), fn_output_signature=kinds)


def keeping_value(
    agent: MemoryAgent, seen: Reading, lived: Lived, advantage: tf.Tensor, discount: float
) -> tf.Tensor:
    """U_t(j): what keeping each candidate was worth to the steps to come, `[B, T, N + 1]`.

    Args:
        agent: whose reader.
        seen: the episodes as they are read.
        lived: as they were lived.
        advantage: `[B, T]`, A_t, normalised; only what is above 0 counts.
        discount: weight of a step one later.
    """
    kept, asked = lived.ids[..., :-1], tf.range(lived.ids.shape[1])[None]
    likely, other = flipped(agent, seen, kept, lived.action)
    delta = hindsight.counterfactual(likely, other, kept, asked)
    well = tf.where(lived.valid, tf.maximum(advantage, 0.0), 0.0)
    delta *= (well / tf.maximum(likely, RAREST))[..., None]
    return tf.stop_gradient(hindsight.keeping_value(delta, asked, lived.ids, discount))
