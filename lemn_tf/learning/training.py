"""RetentionTrainer: how `fit` runs an update that trains policies, whatever the model is.

A subclass defines the loss of a batch (`losses_of`). This class does the rest: gradients compiled
by XLA for every batch shape, parts of a batch side by side on several cores, schedules, `compile`
and saving.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from lemn_tf.learning import objectives
from lemn_tf.learning.rollout import Rollout
from lemn_tf.learning.workers import ALONE, Workers

Nest = Any
PAYS = 50
"""From this many updates on, compiling with XLA saves more time than it takes."""


class Update(NamedTuple):
    """The result of one update: the loss, what metrics are computed from, and scalars to show."""

    loss: tf.Tensor
    answers: Nest
    logs: dict[str, tf.Tensor]


class RetentionTrainer(keras.Model):
    """A Keras model whose updates train retention policies; see `MemoryModel`."""

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        *args,
        retention: Any = "hindsight",
        slots: int | Sequence[int] | None = None,
        seed: int = 0,
        updates: int | None = None,
        shards: int = 1,
        jit_compile: bool | str = "auto",
        agent: Any = None,
        workers: Workers = ALONE,
        own: dict[str, Any] | None = None,
        **kwargs,
    ):
        """Sets how `fit` trains.

        Args:
            optimizer, loss, *args, **kwargs: as `keras.Model.compile` takes them.
            retention: what trains the policies: a name, an objective or several, or None.
            slots: size of the memories while training; None for their own. Given several, each
                update draws one, so that the policies learn to work with all of them.
            seed: of all sampling; it and the data determine the training.
            updates: how many there will be, for schedules; default as many as the first `fit` will
                make, if that is known.
            shards: parts of a batch whose gradients are computed side by side, one core each; a
                batch that cannot be divided evenly is taken whole.
            jit_compile: compile with XLA; "auto" does if there will be enough updates for it to
                pay, and if the model can be compiled.
            agent: drives the updates: anything whose `train(batch)` returns an object with an
                `Update` as its `extra`, such as `lemn_tf.agents.ActorCriticAgent`.
            workers: the processes that share the shards of every batch among them.
            own: further compile options of the subclass.
        """
        chosen = objectives.get(retention)
        super().compile(optimizer, loss, *args, jit_compile=False, **kwargs)
        if workers.count > 1 and self._compile_metrics is not None:
            raise ValueError("expected no metrics with several workers: each has its own answers")
        slots = None if slots is None else tuple(tf.nest.flatten(slots))
        options: dict[str, Any] = {
            "slots": slots,
            "seed": seed,
            "updates": updates,
            "shards": shards,
        }
        options |= {"retention": retention, "jit_compile": jit_compile}
        self._retention_config = {**options, **(own or {})}
        self.objectives, self.agent, self.workers = chosen, agent, workers
        self.training_slots = slots or (None,)
        self.seed, self.shards = seed, shards
        self.updates, self._planned = max(updates or 1, 1), updates is not None
        self.compiled_with_xla = jit_compile
        program = (chosen, slots, jit_compile, self.run_eagerly, str(own), id(loss))
        if program != getattr(self, "_program", None) or jit_compile == "auto":
            self._program = program
            self._make_programs()
        self.__dict__["_meters"] = {}  # bypasses Keras, which adds nothing to a model that is built

    def _make_programs(self):
        self._gradients = self.program(self.gradients)

    def program(self, function: Any) -> Any:
        """A function of the model as `compile` asked for: in a graph, with XLA, or as it is."""
        if self.run_eagerly:
            return function
        jit = self.updates >= PAYS if self.compiled_with_xla == "auto" else self.compiled_with_xla
        return tf.function(function, autograph=False, jit_compile=jit)

    def fit(self, x=None, y=None, batch_size=None, epochs=1, *args, **kwargs):
        """As in Keras; the first call says how many updates there will be, for schedules."""
        if not self._planned:
            steps = kwargs.get("steps_per_epoch") or _batches(x, batch_size)
            self.updates, self._planned = max(steps * epochs, 1), True
            self._make_programs()  # only now is it known whether XLA pays
        return super().fit(x, y, batch_size, epochs, *args, **kwargs)

    # -- one update -------------------------------------------------------------------------------

    def losses_of(self, data: Nest, seed: tf.Tensor, entropy: tf.Tensor, slots: int | None):
        """The loss of one batch.

        Args:
            data: the batch.
            seed: `[2]` int32, of everything that is drawn.
            entropy: `[objectives]`, the weight of the entropy bonus of each.
            slots: size of the memories; None for their own.

        Returns:
            `(total, loss, answers, logs)`: what is minimised, the part that `fit` shows as the
            loss, what the metrics are computed from, and a dict of further scalars to show.
        """
        raise NotImplementedError(f"{type(self).__name__} does not override losses_of()")

    def retention_loss(self, rollout: Rollout, entropy: tf.Tensor):
        """The mean loss of a rollout by all objectives, and scalars to show."""
        total, logs = 0.0, {}
        for weight, objective in zip(tf.unstack(entropy), self.objectives, strict=True):
            losses, shown = objective(rollout._replace(entropy=weight))
            total += tf.reduce_mean(losses)
            logs.update(shown)
        decisions = rollout.decisions
        free = tf.cast(decisions.free, tf.float32)
        spread = tf.reduce_sum(tf.cast(decisions.entropy, tf.float32) * free)
        logs["entropy"] = spread / (tf.reduce_sum(free) + 1e-9)
        return total, logs

    def critic_of(self, number: int, features: tf.Tensor) -> keras.layers.Layer | None:
        """The critic of a memory, made when it is first needed; None if no objective has one."""
        if not any(getattr(objective, "critic", False) for objective in self.objectives):
            return None
        self._create_critics({number: features.shape[-1]})
        return self._critics[str(number)]

    def _create_critics(self, widths: dict[int, int]):
        if not hasattr(self, "_critics"):
            self._tracker.unlock()  # Keras refuses new parts in a model that is built
            self._critics: dict[str, keras.layers.Layer] = {}
        for number, width in widths.items():
            if str(number) not in self._critics:
                with tf.init_scope():
                    critic = keras.layers.Dense(1, name=f"critic_{number}", dtype="float32")
                    critic.build((None, width))
                    self._tracker.unlock()
                    self._critics[str(number)] = critic

    def gradients(self, data: Nest, seed: tf.Tensor, entropy: tf.Tensor, slots: int | None = None):
        """Gradients of one shard, its loss, its answers and its scalars."""
        with tf.GradientTape() as tape:
            total, loss, answers, logs = self.losses_of(data, seed, entropy, slots)
            scaled = self.optimizer.scale_loss(total)
        variables = [v.value for v in self.trainable_variables]
        gradients = tape.gradient(scaled, variables, unconnected_gradients="zero")
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        return gradients, loss, answers, {**logs, "total_loss": total}

    def train_step(self, data):
        update = self.update(data) if self.agent is None else self.agent.train(data).extra
        return self.report(data, *update)

    def draws(self) -> tuple[tf.Tensor, tf.Tensor]:
        """The seed and the weights of the entropy bonuses of the next update."""
        step = tf.cast(self.optimizer.iterations, tf.int32)
        progress = tf.minimum(tf.cast(step, tf.float32) / self.updates, 1.0)
        entropy = [objectives.entropy_at(one, progress) for one in self.objectives]
        return tf.stack([self.seed, step]), tf.stack(entropy or tf.zeros([0]))

    def update(self, data: Nest) -> Update:
        """One update of all weights."""
        seed, entropy = self.draws()
        rows = tf.nest.flatten(data)[0].shape[0]
        shards = self.shards if rows is None or rows % self.shards == 0 else 1
        sizes = self.training_slots
        several = len(sizes) > 1
        drawn = tf.random.stateless_uniform([], seed, 0, len(sizes), tf.int32) if several else 0

        def of(part: Nest, number: int):
            own = tf.stack([seed[0], seed[1] * shards + number])
            programs = [partial(self._gradients, part, own, entropy, slots) for slots in sizes]
            return tf.switch_case(drawn, programs) if several else programs[0]()

        parts = _split(data, shards)
        results = [of(parts[number], number) for number in self.workers.share(shards)]
        gradients, losses, answers, logs = zip(*results, strict=True)
        summed = tf.nest.map_structure(
            lambda *shares: tf.add_n(shares), *zip(gradients, losses, logs, strict=True)
        )
        mean = tf.nest.map_structure(lambda leaf: leaf / shards, self.workers.sum(summed))
        self.optimizer.apply_gradients(zip(mean[0], self.trainable_variables, strict=True))
        answers = tf.nest.map_structure(lambda *shares: tf.concat(shares, axis=0), *answers)
        return Update(mean[1], answers, mean[2])

    def report(self, data: Nest, loss: tf.Tensor, answers: Nest, logs: dict[str, tf.Tensor]):
        """What `fit` shows of an update: Keras' own metrics, and the scalars.

        A scalar with the name of one of them, such as that of an output, is shown as
        `retention_NAME`.
        """
        x, y, weight = keras.utils.unpack_x_y_sample_weight(data)
        self._loss_tracker.update_state(loss, sample_weight=tf.shape(tf.nest.flatten(x)[0])[0])
        told = self.compute_metrics(x, y, answers, sample_weight=weight)
        own = {name if name not in told else f"retention_{name}": logs[name] for name in logs}
        return {**told, **self.show(own)}

    def show(self, logs: dict[str, tf.Tensor], weight: tf.Tensor | None = None):
        """The means of scalars over an epoch."""
        for name, value in logs.items():
            if name not in self._meters:
                with tf.init_scope():
                    self._meters[name] = keras.metrics.Mean(name=name)
            self._meters[name].update_state(value, sample_weight=weight)
        return {name: self._meters[name].result() for name in logs}

    @property
    def metrics(self):
        return [*super().metrics, *getattr(self, "_meters", {}).values()]

    def get_metrics_result(self):
        """Keras' own metrics: the scalars of an update mean nothing in `evaluate`."""
        meters = [id(meter) for meter in getattr(self, "_meters", {}).values()]
        results = {}
        for metric in self.metrics:
            if id(metric) not in meters:
                result = metric.result()
                results |= result if isinstance(result, dict) else {metric.name: result}
        return results

    # Batches are taken from the data set outside the graph: each batch's shape is then known when
    # its program is traced, which XLA needs for loops with gradients.

    def make_train_function(self, force=False):
        if self.train_function is not None and not force:
            return
        self._trace()

        def train(iterator):
            for _ in range(self.steps_per_execution):
                logs = self._run(next(iterator))
            return logs

        self.train_function = train

    def _trace(self):
        step = self.train_step
        self._step = step if self.run_eagerly else tf.function(step, autograph=False)

    def _run(self, data: Nest):
        """One step; if the model turns out not to compile, goes on without XLA."""
        try:
            return self._step(data)
        except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError) as error:
            if self.compiled_with_xla != "auto" or "XLA" not in str(error):
                raise
            first = str(error).strip().splitlines()[0]
        warnings.warn(
            f"the model cannot be compiled with XLA ({first}); training goes on without, more "
            "slowly. To avoid this warning, pass jit_compile=False to compile",
            stacklevel=2,
        )
        self.compiled_with_xla = False
        self._make_programs()
        self._trace()
        return self._step(data)

    # -- saving -----------------------------------------------------------------------------------

    def get_compile_config(self):
        config = super().get_compile_config()
        if not config:
            return config
        mine = dict(self._retention_config)
        mine["retention"] = keras.saving.serialize_keras_object(mine["retention"])
        critics = getattr(self, "_critics", {})
        mine["critics"] = {number: critic.kernel.shape[0] for number, critic in critics.items()}
        return {**config, **mine}

    def compile_from_config(self, config):
        critics = {int(number): width for number, width in config.pop("critics", {}).items()}
        config = keras.saving.deserialize_keras_object(config)
        self.compile(**config)
        if self.built:
            if critics:
                self._create_critics(critics)
            self.optimizer.build(self.trainable_variables)


def _batches(x: Any, batch_size: int | None) -> int:
    """How many batches an epoch of this data has, or a guess if that is not known."""
    if isinstance(x, tf.data.Dataset):
        return max(int(x.cardinality()), 1000 if x.cardinality() < 0 else 1)
    if hasattr(x, "num_batches"):
        return x.num_batches or 1000
    leaves = [leaf for leaf in tf.nest.flatten(x) if hasattr(leaf, "shape")]
    return -(-leaves[0].shape[0] // (batch_size or 32)) if leaves else 1000


def _split(data: Nest, shards: int) -> list[Nest]:
    if shards == 1:
        return [data]
    flat = [tf.split(leaf, shards) for leaf in tf.nest.flatten(data)]
    return [tf.nest.pack_sequence_as(data, list(part)) for part in zip(*flat, strict=True)]
