"""StreamReader: a reader over a bounded memory, as one Keras model with `fit` and `evaluate`.

    model = StreamReader(MemN2N(vocabulary.size, sentence_length=7), slots=5, policy="st-lemn")
    model.compile(keras.optimizers.Adam(3e-3))
    model.fit(train, validation_data=valid, callbacks=[RetentionBoard(valid)])

An update acts first and learns afterwards. `act` runs the policy over the stream without gradients
and records only integers: who was a candidate at each step, and who left. Everything else is then
computed from this record for all time steps at once.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from lemn_tf import memory, retention
from lemn_tf.episode import Episode, random_past
from lemn_tf.evaluation import labelled, needed_at, supported
from lemn_tf.layer import EpisodicMemory
from lemn_tf.learning.rollout import Rollout, kept_at
from lemn_tf.learning.training import RetentionTrainer
from lemn_tf.readers.base import Answer, Reader, take_items
from lemn_tf.readers.view import PolicyView
from lemn_tf.retention.base import RetentionPolicy
from lemn_tf.retention.decision import Decision
from lemn_tf.streams import item_spec, spec_from_text, spec_to_text

Nest = Any


@keras.saving.register_keras_serializable("lemn_tf")
class StreamReader(RetentionTrainer):
    """Reads a stream item by item into N slots, and answers questions from what it kept.

    Args:
        reader: answers from the slots.
        slots: N in the paper.
        policy: name or object of the retention policy.
        vocabulary: optional `lemn_tf.text.Vocabulary`, kept with the model for text in and out.
        item: nest of `tf.TensorSpec`, one item of a stream. Default: what the reader declares, or
            what the model is first called with.

    Call arguments:
        episode: an `Episode`; of it `items`, `length`, `questions` and `ask_at` are read.

    Returns:
        Logits of the answers, `[B, Q, A]`.
    """

    def __init__(
        self,
        reader: Reader,
        slots: int = 10,
        policy: str | RetentionPolicy = "st-lemn",
        vocabulary: keras.layers.Layer | None = None,
        item: Nest | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.reader = reader
        self.vocabulary = vocabulary
        policy = retention.get(policy)
        view = PolicyView(reader, policy.meet(reader), name="view")
        encoder = None if policy.clairvoyant else view  # it sees the future instead of the entries
        self.memory = EpisodicMemory(slots, policy, encoder, name="memory")
        self.critic = keras.layers.Dense(1, name="critic")
        self.reader_loss = None
        own = reader.entry_spec()
        if policy.question_aware and item is None:
            own = {**own, "asked": reader.question_spec()}
        self.item = own if item is None else item
        if self.item is not None or policy.clairvoyant:
            self._create_weights()

    def _create_weights(self):
        """Creates every weight; reader and item determine the sizes."""
        with tf.init_scope():
            spec = tf.TensorSpec([1]) if self.clairvoyant else self.item
            items = memory.empty(1, 1, spec).entries
            _, decisions = self.memory(items)
            scores = self.memory.replay(self.memory.encode(items), decisions)
            if scores.features.shape[-1]:
                self.critic(scores.features)
        self.built = True

    def build(self, shapes=None):
        """Creates the weights on the first call, unless they exist."""

    def _meet(self, episode: Episode):
        if self.built and self.item is not None:
            return
        self.item = item_spec(episode["items"])
        self._tracker.unlock()
        self._create_weights()

    @property
    def clairvoyant(self) -> bool:
        """Whether the policy sees the question beforehand."""
        return self.memory.policy.clairvoyant

    def with_policy(self, policy: str | RetentionPolicy, slots: int | None = None) -> StreamReader:
        """The same reader, weights and all, over a memory with another policy."""
        item = self.item if self.reader.entry_spec() is None else None
        return StreamReader(self.reader, slots or self.memory.slots, policy, self.vocabulary, item)

    @property
    def learns(self) -> bool:
        """Whether the policy has weights to train."""
        return self.memory.policy.learns

    # -- acting -----------------------------------------------------------------------------------

    def act(
        self, episode: Episode, training: bool = False, seed: Any = None, slots: int | None = None
    ) -> tuple[Decision, tf.Tensor]:
        """Runs the policy over the streams.

        Returns:
            The decisions, and what was in memory at each question, ids `[B, Q, N]`.
        """
        items, steps = episode["items"], tf.shape(tf.nest.flatten(episode["items"])[0])[1]
        if self.clairvoyant:
            if episode.get("support") is None:
                raise ValueError(
                    f"policy {self.memory.policy.name!r} is told what will be asked: expected "
                    "'support' in the episodes, got none"
                )
            items = needed_at(episode["support"], episode["ask_at"], steps)
        mask = tf.sequence_mask(episode["length"], steps)
        if not (training or self.memory.policy.stochastic):
            seed = None  # a seed means sampling
        after_step = self._feedback(episode) if self.memory.policy.listens else None
        _, decisions = self.memory(
            items, mask=mask, training=training, seed=seed, slots=slots, after_step=after_step
        )
        return decisions, kept_at(decisions.ids, decisions.slot, episode["ask_at"])

    def _feedback(self, episode):
        """After each step, tells the policy what the reader attended to in questions asked then."""
        queries = self.reader.ask(episode["questions"])

        def asked(state, now):
            codes = self.reader.encode(state.entries)[:, None]
            shape = tf.concat([tf.shape(queries)[:2], tf.shape(state.ids)[1:]], 0)
            ids = tf.broadcast_to(state.ids[:, None], shape)
            attention = self.reader.read(queries, codes, ids).attention
            return tf.reduce_max(tf.where(now[..., None], attention, 0.0), axis=1)

        def after_step(t, state):
            now = episode["ask_at"] == t + 1
            nothing = tf.zeros(tf.shape(state.ids))  # unread unless a question is asked now
            attention = tf.cond(tf.reduce_any(now), lambda: asked(state, now), lambda: nothing)
            attention.set_shape(state.ids.shape)
            return self.memory.attend(state, attention)

        return after_step

    def answer(self, episode: Episode, kept: tf.Tensor, codes=None, **options) -> Answer:
        """Answers every question from the items `kept` `[B, Q, N]` when it was asked."""
        if codes is None:
            codes = self.reader.encode(episode["items"])
        queries = self.reader.ask(episode["questions"])
        return self.reader.read(queries, take_items(codes, kept), kept, **options)

    def call(self, episode: Episode, training: bool = False):
        self._meet(episode)
        _, kept = self.act(episode)
        return self.answer(episode, kept).logits

    # -- learning ---------------------------------------------------------------------------------

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        *args,
        metrics: Any = None,
        retention: Any = "hindsight",
        on_policy: float = 0.5,
        on_subsets: float = 0.5,
        keep_share: tuple[float, float] = (0.5, 1.0),
        window: int | None = None,
        linear: bool = False,
        acting: str | RetentionPolicy | None = None,
        **kwargs,
    ):
        """Sets how `fit` trains.

        Args:
            optimizer, *args: as in Keras; give an optimizer `global_clipnorm` to clip.
            loss: of answers and logits, before any mean is taken; default the reader's own.
            metrics: of answers and logits, beside those that are always shown.
            retention: what the policy learns from: "hindsight", "actor-critic", "both", an
                objective or several; None leaves it as it is.
            on_policy: weight of the reader's loss on the memories that the policy leaves it.
            on_subsets: weight of the reader's loss on random parts of the whole past.
            keep_share: range of the share of the past that such a part keeps.
            window: how many items back such a part reaches; None for the whole past.
            linear: attention without softmax, if the reader can (MemN2N's linear start).
            acting: another policy that fills the memory while training, such as "fifo".
            **kwargs: of `RetentionTrainer.compile` (`slots`, `seed`, `updates`, `shards`,
                `jit_compile`) and of `keras.Model.compile`.
        """
        if retention == "hindsight" and (acting is not None or not self.learns):
            retention = None  # the default, but there is nothing to train
        if retention and not self.learns:
            raise ValueError(f"policy {self.memory.policy.name!r} has nothing to learn")
        if retention and acting is not None:
            raise ValueError("a policy learns from what it did itself: no retention with acting=")
        self.on_policy, self.on_subsets = on_policy, on_subsets
        self.keep_share, self.window, self.linear = keep_share, window, linear
        self.reader_loss = None if loss is None else keras.losses.get(loss)
        names = ("on_policy", "on_subsets", "keep_share", "window", "linear")
        own = {**{name: getattr(self, name) for name in names}, "acting": acting}
        self._act = self.act if acting is None else self.with_policy(acting).act
        given = {"metrics": metrics, "retention": retention, "own": own, **kwargs}
        super().compile(optimizer, loss, *args, **given)

    def _make_programs(self):
        super()._make_programs()
        self._examined = self.program(self._examine)

    def losses_of(
        self, episode: Episode, seed: tf.Tensor, entropy: tf.Tensor, slots: int | None = None
    ):
        """See `RetentionTrainer.losses_of`."""
        self._meet(episode)
        options = {"linear": True} if self.linear else {}
        asked = tf.cast(episode["ask_at"] >= 0, tf.float32)
        count = tf.maximum(tf.reduce_sum(asked), 1.0)
        codes = self.reader.encode(episode["items"])
        total, part = 0.0, 0.0
        logs: dict[str, tf.Tensor] = {}
        if self.on_subsets:
            past = random_past(episode, self.keep_share, seed, self.window)
            queries = self.reader.ask(episode["questions"])
            answer = self.reader.read(queries, codes[:, None], past, **options)
            part, right = self._marks(answer, episode, asked)
            total += self.on_subsets * tf.reduce_sum(part) / count
            logs["subset_accuracy"] = tf.reduce_sum(right) / count
        if self.on_policy or self.objectives:
            decisions = episode.get("decisions")
            if decisions is None:
                sampled = bool(self.objectives)
                decisions, _ = self._act(episode, training=sampled, seed=seed, slots=slots)
            decisions = tf.nest.map_structure(tf.stop_gradient, decisions)
            kept = kept_at(decisions.ids, decisions.slot, episode["ask_at"])
            answer = self.answer(episode, kept, codes, **options)
            part, right = self._marks(answer, episode, asked)
            total += self.on_policy * tf.reduce_sum(part) / count
            logs |= self._shown(episode, kept, right, asked)
        if self.objectives:
            drawn = None if "decisions" in episode else seed
            rollout = self._rollout(episode, decisions, kept, codes, answer, right, drawn)
            loss, shown = self.retention_loss(rollout, entropy)
            total += loss
            logs |= shown
        return total, tf.reduce_sum(part) / count, answer.logits, logs

    def _marks(self, answer: Answer, episode: Episode, asked: tf.Tensor):
        """`[B, Q]` each: the loss of every answer, and 1 where it is right; 0 for padding."""
        if self.reader_loss is None:
            losses = self.reader.loss(answer, episode["answers"])
        else:
            loss = getattr(self.reader_loss, "call", self.reader_loss)
            losses = loss(_at_least_0(episode["answers"]), answer.logits)
        right = self.reader.right(answer, episode["answers"])
        return losses * asked, tf.cast(right, tf.float32) * asked

    def _shown(self, episode, kept, right, asked) -> dict[str, tf.Tensor]:
        count = tf.maximum(tf.reduce_sum(asked), 1.0)
        reward = tf.reduce_sum((2.0 * right - 1.0) * asked, axis=1)
        logs = {"accuracy": tf.reduce_sum(right) / count, "return": tf.reduce_mean(reward)}
        if episode.get("support") is not None:
            known = asked * tf.cast(labelled(episode["support"]), tf.float32)
            found = tf.cast(supported(kept, episode["support"]), tf.float32) * known
            recall = tf.math.divide_no_nan(tf.reduce_sum(found), tf.reduce_sum(known))
            logs["support_recall"] = recall
        return logs

    def _rollout(self, episode, decisions, kept, codes, answer, right, seed) -> Rollout:
        scores = self.memory.replay(self.memory.encode(episode["items"]), decisions, seed)
        answers, fixed = episode["answers"], tf.nest.map_structure(tf.stop_gradient, answer)

        def flipped():
            queries = tf.stop_gradient(self.reader.ask(episode["questions"]))
            found = self.reader.flipped(queries, tf.stop_gradient(codes), kept, answers)
            return tf.stop_gradient(found)

        return Rollout(
            decisions=decisions,
            valid=tf.sequence_mask(episode["length"], decisions.slot.shape[1]),
            logits=tf.cast(scores.logits, tf.float32),
            values=tf.squeeze(self.critic(scores.features), -1),
            ask_at=episode["ask_at"],
            weight=tf.cast(episode["ask_at"] >= 0, tf.float32),
            kept=kept,
            right=right > 0,
            probability=self.reader.probability(fixed, answers),
            flipped=flipped,
            entropy=0.0,
        )

    def report(self, data, loss, answers, logs):
        weight = tf.cast(data["ask_at"] >= 0, tf.float32)
        shown = self.show({"loss": loss, **logs})
        return shown | self._user_metrics(data, answers, weight)

    def _user_metrics(self, episode, logits, weight):
        if self._compile_metrics is None:
            return {}
        labels = _at_least_0(episode["answers"])
        self._compile_metrics.update_state(labels, logits, sample_weight=weight)
        return self._compile_metrics.result()

    # -- evaluating -------------------------------------------------------------------------------

    def outcome(self, episode: Episode, slots: int | None = None, seed: tf.Tensor | None = None):
        """Counts for one batch, acting greedily.

        Returns:
            A dict: questions, right answers; questions that are labelled with what they need, those
            that found it in memory (supported), and how many of these were answered right (both).
        """
        return self._examine(episode, slots, seed)[0]

    def _examine(self, episode, slots=None, seed=None):
        self._meet(episode)
        _, kept = self.act(episode, slots=slots, seed=seed)
        answer = self.answer(episode, kept)
        asked = episode["ask_at"] >= 0
        losses, right = self._marks(answer, episode, tf.cast(asked, tf.float32))
        told = held = tf.zeros_like(asked)
        if episode.get("support") is not None:
            told = asked & labelled(episode["support"])
            held = told & supported(kept, episode["support"])
        counted = {"questions": asked, "right": right > 0, "labelled": told, "supported": held}
        counted["both"] = held & counted["right"]
        counts = {name: tf.reduce_sum(tf.cast(x, tf.int32)) for name, x in counted.items()}
        return counts, tf.reduce_sum(losses), answer.logits

    def test_step(self, episode: Episode):
        counts, loss, logits = self._examined(episode)
        counts = {name: tf.cast(n, tf.float32) for name, n in counts.items()}
        logs: dict[str, tf.Tensor] = {}
        for name, part, whole in (
            ("loss", loss, "questions"),
            ("accuracy", counts["right"], "questions"),
            ("support_recall", counts["supported"], "labelled"),
        ):
            if name != "support_recall" or episode.get("support") is not None:
                rate = tf.math.divide_no_nan(part, counts[whole])
                logs |= self.show({name: rate}, counts[whole])
        weight = tf.cast(episode["ask_at"] >= 0, tf.float32)
        return logs | self._user_metrics(episode, logits, weight)

    def make_test_function(self, force=False):
        if self.test_function is None or force:
            step = tf.function(self.test_step, autograph=False)
            self.test_function = lambda iterator: step(next(iterator))

    # -- saving -----------------------------------------------------------------------------------

    def get_compile_config(self):
        """None: how a model is trained is not saved; call `compile` again after loading."""

    def get_config(self):
        policy = keras.saving.serialize_keras_object(self.memory.policy)
        policy.pop("build_config", None)  # it is built once it has met the reader
        config = {
            **super().get_config(),
            "reader": keras.saving.serialize_keras_object(self.reader),
            "slots": self.memory.slots,
            "policy": policy,
            "vocabulary": keras.saving.serialize_keras_object(self.vocabulary),
        }
        if self.item is not None and self.reader.entry_spec() is None:
            config["item"] = tf.nest.map_structure(spec_to_text, self.item)
        return config

    @classmethod
    def from_config(cls, config):
        parts = [key for key in ("reader", "policy", "vocabulary") if isinstance(config[key], dict)]
        made = {key: keras.saving.deserialize_keras_object(config[key]) for key in parts}
        if config.get("item") is not None:
            made["item"] = tf.nest.map_structure(spec_from_text, config["item"])
        return cls(**{**config, **made})


def _at_least_0(answers: Nest) -> Nest:
    """Labels with 0 for padding."""
    return tf.nest.map_structure(lambda leaf: tf.maximum(leaf, 0), answers)
