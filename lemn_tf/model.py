"""StreamReader: a reader over a bounded memory, as one Keras model with `fit` and `evaluate`.

    model = StreamReader(MemN2N(vocabulary.size, sentence_length=7), slots=5, policy="st-lemn")
    model.compile(keras.optimizers.Adam(3e-3), objectives=[Hindsight()])
    model.fit(train, validation_data=valid, callbacks=[keras.callbacks.TensorBoard("logs")])

An update acts first and learns after. `act` runs the policy over the stream without gradients and
keeps only integers: who was a candidate at each step, and who left. `learn` then computes every
time step at once from what was recorded. Both compile to one XLA program for each shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from lemn_tf import memory, retention
from lemn_tf.evaluation import kept_at, labelled, needed_at, supported
from lemn_tf.layer import EpisodicMemory
from lemn_tf.readers.base import Answer, Reader, take_items
from lemn_tf.retention.base import Decision, RetentionPolicy, salt_of, scramble
from lemn_tf.rollout import Episode, Objective, Rollout, entropy_at
from lemn_tf.text import UNKNOWN


@keras.saving.register_keras_serializable("lemn_tf")
class PolicyView(keras.layers.Layer):
    """phi: what the retention policy sees of an entry, by way of the reader's encoding.

    Args:
        reader: encodes the entries.
        matching: the reader's attention, if the policy is IM-LEMN and goes by it.
    """

    def __init__(self, reader: Reader, matching: keras.layers.Layer | None = None, **kwargs):
        super().__init__(**kwargs)
        self.reader, self.matching = reader, matching
        self.built = True

    def call(self, entries):
        if self.matching is not None:
            return self.matching.view(entries)
        return self.reader.vectors(self.reader.encode(entries))

    def get_config(self):
        own = "reader" if self.matching is None else "matching"  # which brings its reader
        part = keras.saving.serialize_keras_object(getattr(self, own))
        return {**super().get_config(), "reader": None, "matching": None, own: part}

    @classmethod
    def from_config(cls, config):
        parts = ("reader", "matching")
        made = {key: keras.saving.deserialize_keras_object(config[key]) for key in parts}
        reader = made["reader"] or made["matching"].reader
        return cls(**{**config, **made, "reader": reader})


@keras.saving.register_keras_serializable("lemn_tf")
class StreamReader(keras.Model):
    """Reads a stream item by item into N slots, and answers questions from what it kept.

    Args:
        reader: answers from the slots.
        slots: N in the paper.
        policy: name or object of the retention policy.
        vocabulary: optional `lemn_tf.text.Vocabulary`, kept with the model for text in and out.

    Call arguments:
        episode: dict with `items [B, T, L]`, `length [B]`, `questions [B, Q, Lq]`, `ask_at [B, Q]`.

    Returns:
        Logits of the answers, `[B, Q, A]`.
    """

    def __init__(
        self,
        reader: Reader,
        slots: int = 10,
        policy: str | RetentionPolicy = "st-lemn",
        vocabulary: keras.layers.Layer | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.reader = reader
        self.vocabulary = vocabulary
        view = PolicyView(reader, name="view")
        if policy == "im-lemn" and hasattr(reader, "matching"):
            view.matching = reader.matching()
            policy = retention.get("im-lemn", similarity=view.matching)
        self.clairvoyant = policy == "oracle"  # sees the future, not the entries
        self.memory = EpisodicMemory(
            slots, policy, None if self.clairvoyant else view, name="memory"
        )
        self.critic = keras.layers.Dense(1, name="critic")
        self._program = None  # what the compiled functions are made for
        self._create_weights()

    def _create_weights(self):
        """Creates every weight now: the sizes are known from the reader."""
        with tf.init_scope():
            items = tf.zeros([1, 1, 1], tf.float32 if self.clairvoyant else tf.int32)
            _, decisions = self.memory(items)
            scores = self.memory.replay(self.memory.encode(items), decisions)
            if scores.features.shape[-1]:
                self.critic(scores.features)
        self.built = True

    def with_policy(self, policy: str | RetentionPolicy, slots: int | None = None) -> StreamReader:
        """The same reader, weights and all, over a memory with another policy."""
        return StreamReader(self.reader, slots or self.memory.slots, policy, self.vocabulary)

    @property
    def learns(self) -> bool:
        """Whether the policy has weights to train."""
        return bool(self.memory.policy.trainable_weights)

    # -- acting -----------------------------------------------------------------------------------

    def act(
        self, episode: Episode, training: bool = False, seed: Any = None, slots: int | None = None
    ) -> tuple[Decision, tf.Tensor]:
        """Runs the policy over the streams.

        Returns:
            The decisions, and what was in memory at each question, ids `[B, Q, N]`.
        """
        items = episode["items"]
        if self.clairvoyant:
            items = needed_at(episode["support"], episode["ask_at"], tf.shape(items)[1])
        mask = tf.sequence_mask(episode["length"], tf.shape(items)[1])
        if not (training or self.memory.policy.stochastic):
            seed = None  # a seed means sampling
        after_step = None
        if type(self.memory.policy).attend is not RetentionPolicy.attend:
            after_step = self._feedback(episode)
        _, decisions = self.memory(
            items, mask=mask, training=training, seed=seed, slots=slots, after_step=after_step
        )
        return decisions, kept_at(decisions.ids, decisions.slot, episode["ask_at"])

    def _feedback(self, episode):
        """After each step, tells the policy what the reader attended to in questions asked then."""
        queries = self.reader.ask(episode["questions"])

        def after_step(t, state):
            codes = self.reader.encode(state.entries)[:, None]
            shape = tf.concat([tf.shape(queries)[:2], tf.shape(state.ids)[1:]], 0)
            ids = tf.broadcast_to(state.ids[:, None], shape)
            attention = self.reader.read(queries, codes, ids).attention
            now = (episode["ask_at"] == t + 1)[..., None]
            return self.memory.attend(state, tf.reduce_max(tf.where(now, attention, 0.0), axis=1))

        return after_step

    def answer(self, episode: Episode, kept: tf.Tensor, codes=None, **options) -> Answer:
        """Answers every question from the items `kept` `[B, Q, N]` when it was asked."""
        if codes is None:
            codes = self.reader.encode(episode["items"])
        queries = self.reader.ask(episode["questions"])
        return self.reader.read(queries, take_items(codes, kept), kept, **options)

    def call(self, episode: Episode, training: bool = False):
        _, kept = self.act(episode)
        return self.answer(episode, kept).logits

    # -- learning ---------------------------------------------------------------------------------

    def compile(
        self,
        optimizer="adam",
        objectives: Sequence[Objective] = (),
        on_policy: float = 0.5,
        on_subsets: float = 0.5,
        keep_share: tuple[float, float] = (0.5, 1.0),
        window: int | None = None,
        linear: bool = False,
        acting: str | RetentionPolicy | None = None,
        slots: int | None = None,
        seed: int = 0,
        updates: int = 1,
        shards: int = 1,
        jit_compile: bool = True,
        **kwargs,
    ):
        """Says how `fit` trains.

        Args:
            optimizer: any Keras optimizer; give it `global_clipnorm` to clip.
            objectives: what the policy learns from; none leaves it as it is.
            on_policy: weight of the reader's loss on the memories that the policy leaves it.
            on_subsets: weight of the reader's loss on random parts of the whole past.
            keep_share: range of the share of the past that such a part keeps.
            window: how many items back such a part reaches; None for the whole past.
            linear: attention without softmax, if the reader can (MemN2N's linear start).
            acting: another policy that fills the memory while training, such as "fifo".
            slots: size of the memory while training; None for the model's own.
            seed: of all sampling; a run is a function of it and the data.
            updates: how many there will be, for objectives with a schedule.
            shards: parts of a batch whose gradients are computed side by side, one core each.
            jit_compile: compile with XLA.
        """
        super().compile(optimizer=optimizer, jit_compile=False, **kwargs)
        if objectives and not self.learns:
            raise ValueError(f"policy {self.memory.policy.name!r} has nothing to learn")
        self.objectives, self.on_policy, self.on_subsets = tuple(objectives), on_policy, on_subsets
        self.keep_share, self.window, self.linear = keep_share, window, linear
        self.seed, self.shards, self.training_slots = seed, shards, slots
        self.updates = max(updates, 1)
        if acting is not None and objectives:
            raise ValueError("a policy learns from what it did itself: no objectives with acting=")
        reading = (on_policy, on_subsets, keep_share, window, linear)
        program = (self.objectives, *reading, id(acting), slots, jit_compile)
        if program != self._program:
            self._program = program
            self._act = self.act if acting is None else self.with_policy(acting).act
            self._gradients = tf.function(self.gradients, autograph=False, jit_compile=jit_compile)
            self._outcome = tf.function(self.outcome, autograph=False, jit_compile=jit_compile)
        self._meters = {}

    def losses_of(self, episode: Episode, seed: tf.Tensor, entropy: tf.Tensor):
        """The loss of one batch, and a dict of scalars to show.

        Args:
            episode: the batch.
            seed: `[2]`, of everything that is drawn.
            entropy: `[objectives]`, the weight of the entropy bonus of each.
        """
        options = {"linear": True} if self.linear else {}
        asked = episode["ask_at"] >= 0
        weight = tf.cast(asked, tf.float32)
        questions = tf.maximum(tf.reduce_sum(weight), 1.0)
        codes = self.reader.encode(episode["items"])
        total, logs = 0.0, {}

        def reader_loss(logits):
            labels = tf.maximum(episode["answers"], 0)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            right = tf.argmax(logits, axis=-1, output_type=labels.dtype) == labels
            return tf.reduce_sum(losses * weight) / questions, right & asked

        if self.on_subsets:
            past = random_past(episode, self.keep_share, seed, self.window)
            queries = self.reader.ask(episode["questions"])
            answer = self.reader.read(queries, codes[:, None], past, **options)
            part, right = reader_loss(answer.logits)
            total += self.on_subsets * part
            logs["subset_accuracy"] = tf.reduce_sum(tf.cast(right, tf.float32)) / questions
        if self.on_policy or self.objectives:
            sampled, slots = bool(self.objectives), self.training_slots
            decisions, kept = self._act(episode, training=sampled, seed=seed, slots=slots)
            decisions, kept = tf.nest.map_structure(tf.stop_gradient, (decisions, kept))
            answer = self.answer(episode, kept, codes, **options)
            part, right = reader_loss(answer.logits)
            total += self.on_policy * part
            logs["loss_reader"] = part
            logs["accuracy"] = tf.reduce_sum(tf.cast(right, tf.float32)) / questions
            known = tf.cast(asked & labelled(episode["support"]), tf.float32)
            found = tf.cast(supported(kept, episode["support"]), tf.float32) * known
            recall = tf.math.divide_no_nan(tf.reduce_sum(found), tf.reduce_sum(known))
            logs["support_recall"] = recall
            reward = tf.where(right, 1.0, -1.0) * weight
            logs["return"] = tf.reduce_mean(tf.reduce_sum(reward, axis=1))
        if self.objectives:
            vectors = self.memory.encode(episode["items"])
            scores = self.memory.replay(vectors, decisions, seed)
            rollout = Rollout(
                episode,
                decisions,
                scores.logits,
                tf.squeeze(self.critic(scores.features), -1),
                kept,
                asked,
                right,
                entropy,
                _chosen(tf.stop_gradient(answer.logits), episode["answers"]),
                lambda: self._flipped(episode, codes, kept),
            )
            for weight, objective in zip(tf.unstack(entropy), self.objectives, strict=True):
                losses, shown = objective(rollout._replace(entropy=weight))
                total += tf.reduce_mean(losses)
                logs.update(shown)
            free = tf.cast(decisions.free, tf.float32)
            logs["entropy"] = tf.reduce_sum(decisions.entropy * free) / (tf.reduce_sum(free) + 1e-9)
        return total, {"loss": total, **logs}

    def _flipped(self, episode, codes, kept):
        queries = tf.stop_gradient(self.reader.ask(episode["questions"]))
        logits = self.reader.read_flipped(queries, tf.stop_gradient(codes), kept)
        return _chosen(tf.stop_gradient(logits), episode["answers"][..., None])

    def gradients(self, episode: Episode, seed: tf.Tensor, entropy: tf.Tensor):
        """Gradients of one shard, and its scalars."""
        with tf.GradientTape() as tape:
            loss, logs = self.losses_of(episode, seed, entropy)
        variables = [v.value for v in self.trainable_variables]
        return tape.gradient(loss, variables, unconnected_gradients="zero"), logs

    def train_step(self, episode: Episode):
        step = tf.cast(self.optimizer.iterations, tf.int32)
        progress = tf.minimum(tf.cast(step, tf.float32) / self.updates, 1.0)
        entropy = tf.stack([entropy_at(one, progress) for one in self.objectives] or tf.zeros([0]))
        size = episode["length"].shape[0]
        if size is not None:
            check_shards(self.shards, size)
        parts = tf.nest.map_structure(lambda x: tf.split(x, self.shards), episode)
        results = [
            self._gradients(
                {name: part[k] for name, part in parts.items()},
                tf.stack([self.seed, step * self.shards + k]),
                entropy,
            )
            for k in range(self.shards)
        ]
        mean = tf.nest.map_structure(lambda *x: tf.add_n(x) / self.shards, *results)
        gradients, logs = mean
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return self._show(logs)

    # Batches are taken from the data set outside the graph: each bucket's shape is then known when
    # its program is traced, which XLA needs for loops with gradients.

    def make_train_function(self, force=False):
        if self.train_function is None or force:
            step = tf.function(self.train_step, autograph=False)
            self.train_function = lambda iterator: step(next(iterator))

    def make_test_function(self, force=False):
        if self.test_function is None or force:
            step = tf.function(self.test_step, autograph=False)
            self.test_function = lambda iterator: step(next(iterator))

    def outcome(self, episode: Episode, slots: int | None = None, seed: tf.Tensor | None = None):
        """Counts of one batch, acting greedily.

        Returns:
            A dict: questions, right answers; questions that are labelled with what they need, those
            that found it in memory (supported), and how many of these were answered right (both).
        """
        _, kept = self.act(episode, slots=slots, seed=seed)
        answer = self.answer(episode, kept)
        asked = episode["ask_at"] >= 0
        guess = tf.argmax(answer.logits, -1, output_type=tf.int32)
        known = episode["answers"] != UNKNOWN  # a word that was never seen cannot be right
        right = asked & known & (guess == episode["answers"])
        told = asked & labelled(episode["support"])
        held = told & supported(kept, episode["support"])
        counted = {"questions": asked, "right": right, "labelled": told, "supported": held}
        counted["both"] = held & right
        return {name: tf.reduce_sum(tf.cast(x, tf.int32)) for name, x in counted.items()}

    def test_step(self, episode: Episode):
        counts = {name: tf.cast(n, tf.float32) for name, n in self._outcome(episode).items()}
        logs = {}
        for name, part, whole in (
            ("accuracy", "right", "questions"),
            ("support_recall", "supported", "labelled"),
        ):
            rate = tf.math.divide_no_nan(counts[part], counts[whole])
            logs |= self._show({name: rate}, counts[whole])
        return logs

    def _show(self, logs, weight=None):
        for name, value in logs.items():
            if name not in self._meters:
                with tf.init_scope():
                    self._meters[name] = keras.metrics.Mean(name=name)
            self._meters[name].update_state(value, sample_weight=weight)
        return {name: self._meters[name].result() for name in logs}

    @property
    def metrics(self):
        return list(getattr(self, "_meters", {}).values())

    # -- saving -----------------------------------------------------------------------------------

    def get_compile_config(self):
        """None: how a model is trained is not saved with it; `compile` a loaded one again."""

    def get_config(self):
        policy = self.memory.policy
        by_name = self.clairvoyant or self.memory.encoder.matching is not None
        return {
            **super().get_config(),
            "reader": keras.saving.serialize_keras_object(self.reader),
            "slots": self.memory.slots,
            "policy": policy.name if by_name else keras.saving.serialize_keras_object(policy),
            "vocabulary": keras.saving.serialize_keras_object(self.vocabulary),
        }

    @classmethod
    def from_config(cls, config):
        parts = [key for key in ("reader", "policy", "vocabulary") if isinstance(config[key], dict)]
        made = {key: keras.saving.deserialize_keras_object(config[key]) for key in parts}
        return cls(**{**config, **made})


def check_shards(shards: int, batch_size: int) -> None:
    """Raises unless a batch can be parted into so many equal shards."""
    if batch_size % shards:
        raise ValueError(f"expected shards that divide a batch of {batch_size}, got {shards}")


def _chosen(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """The probability `[...]` of each label, from logits `[..., A]`."""
    chosen = tf.one_hot(tf.maximum(labels, 0), logits.shape[-1])
    return tf.reduce_sum(tf.nn.softmax(logits) * chosen, axis=-1)


def random_past(
    episode: Episode, share: tuple[float, float], seed: tf.Tensor, window: int | None = None
) -> tf.Tensor:
    """For each question a random part of the items before it: ids `[B, Q, T]`, -1 = left out."""
    items, ask_at = episode["items"], episode["ask_at"]
    batch, steps, questions = items.shape[0], items.shape[1], ask_at.shape[1]
    which = tf.reshape(tf.range(batch * questions), [batch, questions])
    draw = scramble(tf.range(steps + 1), which, salt_of(seed + tf.constant([0, 1 << 20])))
    keep = draw[..., :-1] < share[0] + (share[1] - share[0]) * draw[..., -1:]
    ids = tf.range(steps)
    keep &= ids < ask_at[..., None]
    if window is not None:
        keep &= ids >= ask_at[..., None] - window
    return tf.cast(tf.where(keep, ids, memory.EMPTY), tf.int64)
