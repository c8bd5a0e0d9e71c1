"""The learned policies against the equations of the paper's section 3, cell by cell in NumPy.

The transcription below shares no code with the library and computes one cell at a time, in double
precision. Keras' GRU is the variant with `reset_after=True` (the reset gate is applied after the
recurrent product, with a bias of its own); the paper does not say which it uses, so that is the one
transcribed. Cells that hold nothing are passed over by the recurrent layers.
"""

import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import EpisodicMemory, memory, retention
from lemn_tf.retention import Cells, decide

WIDTH, STEPS, ROWS = 8, 50, 2


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(x, h, kernel, recurrent, bias):
    """One step of a GRU: h_t = z h_{t-1} + (1 - z) tanh(W x + b + r (U h_{t-1} + c))."""
    d = len(h)
    a, b = x @ kernel + bias[0], h @ recurrent + bias[1]
    z = sigmoid(a[:d] + b[:d])
    r = sigmoid(a[d : 2 * d] + b[d : 2 * d])
    return z * h + (1 - z) * np.tanh(a[2 * d :] + r * b[2 * d :])


def weights_of(layer):
    """Weights by the end of their path, such as `forward_gru/gru_cell/kernel`, as doubles."""
    return {w.path: np.asarray(w.numpy(), np.float64) for w in layer.weights}


class Weights:
    def __init__(self, policy):
        self.all = weights_of(policy)

    def __call__(self, ending):
        (found,) = [value for path, value in self.all.items() if path.endswith(ending)]
        return found

    def gru(self, cell):
        return [self(f"{cell}/{name}") for name in ("kernel", "recurrent_kernel", "bias")]


class InputMatching:
    """IM-LEMN; what travels with a cell is v."""

    def __init__(self, policy):
        self.w = Weights(policy)

    def newcomer(self):
        return 0.0

    def scores(self, cells, x, carried):
        """`cells` is a list of vectors or None; returns g of each and of the NOP, and new v's."""
        c = x @ self.w("input_encoding/kernel") + self.w("input_encoding/bias")
        gamma = sigmoid(c @ self.w("gamma/kernel") + self.w("gamma/bias"))[0]
        g, v = [], []
        for e, v_before in zip([*cells, self.w("nop")], [*carried, 0.0], strict=True):
            if e is None:
                g.append(None), v.append(None)
                continue
            z = c @ (e @ self.w("memory_encoding/kernel")) / np.sqrt(len(c))
            g.append(z - gamma * v_before)
            v.append(0.1 * v_before + 0.9 * z)
        v[-1] = 0.0  # the newcomer, if it is stored, has no usage yet
        return g, v


class Spatial:
    """S-LEMN; nothing travels."""

    def __init__(self, policy):
        self.w = Weights(policy)
        self.width = policy.hidden_width

    def newcomer(self):
        return np.zeros(self.width)

    def hidden(self, f, before):
        return f @ self.w("hidden/kernel") + self.w("hidden/bias")

    def scores(self, cells, x, carried):
        cells = [*cells, x]  # the newcomer stands in the place of the NOP
        forward, backward = self.w.gru("forward_gru/gru_cell"), self.w.gru("backward_gru/gru_cell")
        fw, bw = [None] * len(cells), [None] * len(cells)
        h = np.zeros(forward[1].shape[0])
        for i in range(len(cells)):
            if cells[i] is not None:
                fw[i] = h = gru(cells[i], h, *forward)
        h = np.zeros(backward[1].shape[0])
        for i in reversed(range(len(cells))):
            if cells[i] is not None:
                bw[i] = h = gru(cells[i], h, *backward)
        g, hs = [], []
        for i, before in enumerate([*carried, self.newcomer()]):
            if cells[i] is None:
                g.append(None), hs.append(None)
                continue
            pair = np.concatenate([fw[i], bw[i]])
            f = np.maximum(0, pair @ self.w("projection/kernel") + self.w("projection/bias"))
            h = self.hidden(f, before)
            g.append((h @ self.w("importance/kernel") + self.w("importance/bias"))[0])
            hs.append(h)
        return g, hs


class SpatioTemporal(Spatial):
    """ST-LEMN; what travels with a cell is h."""

    def hidden(self, f, before):
        return gru(f, before, *self.w.gru("history"))


TRANSCRIPTIONS = {"im-lemn": InputMatching, "s-lemn": Spatial, "st-lemn": SpatioTemporal}


def rollout(transcription, stream, slots, forget_at):
    """Yields (logits, slot, carried after) for one row; cells are (id, vector, carried) or None."""
    cells = [None] * slots
    for t, x in enumerate(stream):
        x = np.asarray(x, np.float64)
        vectors = [cell and cell[1] for cell in cells]
        carried = [cell[2] if cell else None for cell in cells]
        g, after = transcription.scores(vectors, x, carried)
        slot = g.index(None) if None in g else int(np.argmax(g))
        everyone = [*cells, (t, x, None)]
        everyone = [cell and (cell[0], cell[1], c) for cell, c in zip(everyone, after, strict=True)]
        cells = everyone[:slot] + everyone[slot + 1 :]
        yield g, slot, [cell and cell[2] for cell in cells]
        if t in forget_at:
            cells = [None if cell and cell[0] == forget_at[t] else cell for cell in cells]


def close(ours, expected):
    """Whether numbers agree to 1e-5 wherever one is expected."""
    return all(
        np.all(np.abs(value - e) <= 1e-5 * (1 + np.abs(e)))
        for value, e in zip(ours.numpy(), expected, strict=True)
        if e is not None
    )


@pytest.mark.parametrize("slots", [1, 2, 5, 10])
@pytest.mark.parametrize("name", list(TRANSCRIPTIONS))
def test_policy_is_the_papers_equations(name, slots):
    generator = np.random.default_rng(sum(map(ord, name)) + slots)
    options = {"units": 12} if slots == 5 and name != "im-lemn" else {}
    layer = EpisodicMemory(slots, retention.get(name, **options))
    state = layer.initial_state(ROWS, tf.TensorSpec([WIDTH]))
    for weight in layer.weights:
        weight.assign(generator.normal(scale=0.6, size=weight.shape))
    stream = generator.normal(size=[STEPS, ROWS, WIDTH]).astype(np.float32)

    @tf.function(autograph=False)
    def step(state, item):
        cells = memory.candidates(state, item)
        scores = layer.policy(Cells(cells.entries, cells.ids, cells.clock), cells.carry)
        decision = decide(scores.logits, cells)
        after = memory.evict_from(cells._replace(carry=scores.carry), decision.slot)
        return scores.logits, after, decision

    # In the second row an entry is forgotten now and then: a memory with holes, filling again.
    forget_at = {t: int(generator.integers(max(0, t - slots), t + 1)) for t in range(7, STEPS, 6)}
    transcription = TRANSCRIPTIONS[name](layer.policy)
    rows = [rollout(transcription, stream[:, b], slots, [{}, forget_at][b]) for b in range(ROWS)]
    for t in range(STEPS):
        logits, state, decision = step(state, stream[t])
        for b in range(ROWS):
            g, slot, carried = next(rows[b])
            assert close(logits[b], g)
            assert decision.slot[b] == slot
            if name != "s-lemn":
                assert close(state.carry[b], carried)
            if None not in g:
                pi = np.exp(np.array(g) - max(g))
                assert close(decision.keep[b], 1 - pi / pi.sum())
        if t in forget_at:
            state = memory.forget(state, tf.constant([-5, forget_at[t]]))


@pytest.mark.parametrize("name", list(TRANSCRIPTIONS))
@pytest.mark.parametrize("shuffle", [False, True])
def test_step_by_step_is_all_steps_at_once(name, shuffle):
    """Steps, call and replay: the same slots, logits and carry; padded rows included."""
    if shuffle and name == "im-lemn":
        pytest.skip("each cell is scored on its own: there is no order to shuffle")
    seed = tf.constant([3, 4]) if shuffle else None
    layer = EpisodicMemory(3, retention.get(name, **({"shuffle": True} if shuffle else {})))
    items = tf.random.stateless_normal([3, 12, WIDTH], [1, 2])
    lengths = [12, 7, 2]
    mask = tf.sequence_mask(lengths, 12)

    @tf.function(autograph=False)
    def at_once(items):
        state, decisions = layer(items, mask=mask, seed=seed, training=shuffle)
        return state, decisions, layer.replay(items, decisions, seed=seed)

    @tf.function(autograph=False)
    def step(held, item):
        cells = memory.candidates(held, item)
        opinion = layer.policy(Cells(cells.entries, cells.ids, cells.clock, seed), cells.carry)
        return cells, opinion, decide(opinion.logits, cells)

    state, decisions, scores = at_once(items)
    held = layer.initial_state(3, tf.TensorSpec([WIDTH]))
    for t in range(12):
        cells, opinion, decision = step(held, items[:, t])
        live = np.asarray(mask[:, t])
        seen = live[:, None] & np.asarray(cells.filled)
        for field, where in (("logits", seen), ("features", live)):
            one, all_at_once = getattr(opinion, field), getattr(scores, field)[:, t]
            np.testing.assert_allclose(one.numpy()[where], all_at_once.numpy()[where], atol=1e-5)
        np.testing.assert_array_equal(cells.ids[live], decisions.ids[:, t][live])
        # Follow the recorded choice: with a seed, call drew it from its own noise.
        after = memory.evict_from(cells._replace(carry=opinion.carry), decisions.slot[:, t])
        if not shuffle:
            np.testing.assert_array_equal(decision.slot[live], decisions.slot[:, t][live])
        held = tf.nest.map_structure(
            lambda new, old, t=t: tf.where(
                tf.reshape(mask[:, t], [-1] + [1] * (new.shape.rank - 1)), new, old
            ),
            after,
            held,
        )
    for field in ("ids", "entries", "clock"):
        np.testing.assert_array_equal(getattr(held, field), getattr(state, field))
    filled = np.asarray(state.filled)
    for ours, theirs in zip(tf.nest.flatten(held.carry), tf.nest.flatten(state.carry), strict=True):
        np.testing.assert_allclose(ours[filled], theirs[filled], atol=1e-5)
