"""RetentionTrainer: how `fit` runs an update that trains policies, whatever the model is.

A subclass says what the loss of a batch is (`losses_of`). Here is the rest: gradients compiled by
XLA for every shape of a batch, parts of a batch side by side on several cores, schedules, and what
`compile` and a saved model must know.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from lemn_tf.learning import objectives
from lemn_tf.learning.rollout import Rollout

Nest = Any
PAYS = 50
"""From this many updates on, compiling with XLA saves more time than it takes."""


class Update(NamedTuple):
    """What came of one update: the loss, what metrics are computed from, and scalars to show."""

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
        slots: int | None = None,
        seed: int = 0,
        updates: int | None = None,
        shards: int = 1,
        jit_compile: bool | str = "auto",
        agent: Any = None,
        own: dict[str, Any] | None = None,
        **kwargs,
    ):
        """Says how `fit` trains.

        Args:
            optimizer, loss, *args, **kwargs: as `keras.Model.compile` takes them.
            retention: what trains the policies: a name, an objective or several, or None.
            slots: size of the memories while training; None for their own.
            seed: of all sampling; a training is a function of it and the data.
            updates: how many there will be, for schedules; default as many as the first `fit` will
                make, as far as that can be known.
            shards: parts of a batch whose gradients are computed side by side, one core each; a
                batch that cannot be divided evenly is taken whole.
            jit_compile: compile with XLA; "auto" does if there will be enough updates for it to
                pay, and if the model can be compiled.
            agent: drives the updates: anything whose `train(batch)` returns an object with an
                `Update` as its `extra`, such as `lemn_tf.agents.ActorCriticAgent`.
            own: further options of the subclass that belong to how it is compiled.
        """
        chosen = objectives.get(retention)
        super().compile(optimizer, loss, *args, jit_compile=False, **kwargs)
        options = {"slots": slots, "seed": seed, "updates": updates, "shards": shards}
        self._retention_config = {"retention": retention, **options, **(own or {})}
        self._retention_config["jit_compile"] = jit_compile
        self.objectives, self.agent = chosen, agent
        self.training_slots, self.seed, self.shards = slots, seed, shards
        self.updates, self._planned = max(updates or 1, 1), updates is not None
        self.compiled_with_xla = jit_compile
        program = (chosen, slots, jit_compile, self.run_eagerly, str(own), id(loss))
        if program != getattr(self, "_program", None) or jit_compile == "auto":
            self._program = program
            self._make_programs()
        self.__dict__["_meters"] = {}  # past Keras, which adds nothing to a model that is built

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
            self._make_programs()  # whether XLA pays is known only now
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
        """The mean loss of a rollout by all objectives, and what there is to show."""
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
            self._tracker.unlock()  # a model that is built is closed to new parts
            self._critics: dict[str, keras.layers.Layer] = {}
        for number, width in widths.items():
            if str(number) not in self._critics:
                with tf.init_scope():
                    critic = keras.layers.Dense(1, name=f"critic_{number}", dtype="float32")
                    critic.build((None, width))
                    self._tracker.unlock()
                    self._critics[str(number)] = critic

    def gradients(self, data: Nest, seed: tf.Tensor, entropy: tf.Tensor):
        """Gradients of one shard, its loss, its answers and its scalars."""
        with tf.GradientTape() as tape:
            total, loss, answers, logs = self.losses_of(data, seed, entropy, self.training_slots)
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
        size = tf.nest.flatten(data)[0].shape[0]
        shards = self.shards if size is None or size % self.shards == 0 else 1
        results = [
            self._gradients(part, tf.stack([seed[0], seed[1] * shards + k]), entropy)
            for k, part in enumerate(_split(data, shards))
        ]
        gradients, losses, answers, logs = zip(*results, strict=True)
        mean = tf.nest.map_structure(
            lambda *parts: tf.add_n(parts) / shards, *zip(gradients, losses, logs, strict=True)
        )
        self.optimizer.apply_gradients(zip(mean[0], self.trainable_variables, strict=True))
        answers = tf.nest.map_structure(lambda *parts: tf.concat(parts, axis=0), *answers)
        return Update(mean[1], answers, mean[2])

    def report(self, data: Nest, loss: tf.Tensor, answers: Nest, logs: dict[str, tf.Tensor]):
        """What `fit` shows of an update: Keras' own metrics, and the scalars."""
        x, y, weight = keras.utils.unpack_x_y_sample_weight(data)
        self._loss_tracker.update_state(loss, sample_weight=tf.shape(tf.nest.flatten(x)[0])[0])
        return {
            **self.compute_metrics(x, y, answers, sample_weight=weight),
            **self.show(logs),
        }

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
        """One step; without XLA from now on if the model turns out not to compile."""
        try:
            return self._step(data)
        except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError) as error:
            if self.compiled_with_xla != "auto" or "XLA" not in str(error):
                raise
            first = str(error).strip().splitlines()[0]
        warnings.warn(
            f"the model cannot be compiled with XLA ({first}); training goes on without, more "
            "slowly. compile(jit_compile=False) says so from the beginning",
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
    """How many batches an epoch of this data has, or a guess where that cannot be known."""
    if isinstance(x, tf.data.Dataset):
        return max(int(x.cardinality()), 1000 if x.cardinality() < 0 else 1)
    if hasattr(x, "num_batches"):
        return x.num_batches or 1000
    leaves = [leaf for leaf in tf.nest.flatten(x) if hasattr(leaf, "shape")]
    return -(-leaves[0].shape[0] // (batch_size or 32)) if leaves else 1000


def check_shards(shards: int, batch_size: int) -> None:
    """Raises unless a batch can be divided into that many equal shards."""
    if batch_size % shards:
        raise ValueError(f"expected shards that divide a batch of {batch_size}, got {shards}")


def _split(data: Nest, shards: int) -> list[Nest]:
    if shards == 1:
        return [data]
    flat = [tf.split(leaf, shards) for leaf in tf.nest.flatten(data)]
    return [tf.nest.pack_sequence_as(data, list(part)) for part in zip(*flat, strict=True)]
