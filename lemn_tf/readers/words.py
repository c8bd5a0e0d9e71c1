"""WordReader: what readers of words in slots share: word vectors, codes, and a policy's view.

Entries and questions are dicts over `[..., L]`, 0 for padding, as `lemn_tf.pipelines.spans` gives
them: `words`, `chars`, `shape`, `suffix`, `punctuation`, `stem`, `idf` and
`features`, and `context` `[..., L, C]`, what a language model makes of each word, if the reader is
to be given that. Entries may also have `slot` `[..., E]`, what else is known of a slot when it
arrives, `sentence` `[..., C]`, what a language model makes of all of it, and `before`, the stems of
the slot before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from lemn_tf.readers.recurrent import BiGRU
from lemn_tf.readers.spans import SpanReader
from lemn_tf.readers.standards import Standards
from lemn_tf.readers.wordviews import Aware, Lexical

FIELDS = 4
"""Numbers of a word in a code besides its state: word, stem, idf, and 1 for a word at all."""
QUESTION = 30
"""Words of a question, as the pipeline gives it."""
VIEWS = ("hand", "words", "slot", "sentence", "states")


class Text(NamedTuple):
    """What a code says about the words of a slot or question, `[..., L]` each.

    Attributes:
        states: `[..., L, S]`, contextual.
        words, stems: int32 ids.
        idf: float32.
        live: bool, False for padding.
        context: `[..., L, C]`, what a language model makes of each word; C may be 0.
    """

    states: tf.Tensor
    words: tf.Tensor
    stems: tf.Tensor
    idf: tf.Tensor
    live: tf.Tensor
    context: tf.Tensor


class WordReader(SpanReader):
    """Holds the frozen word vectors, and packs what it makes of a slot into one code.

    Args:
        vocabulary_size, width: of the table of word vectors, `table`, which is not trained and kept
            in 16 bits; the first row is padding.
        words: L, of a slot.
        longest: W, the most words of an answer.
        view: what a policy sees of a slot, any of "hand" (means over its words of `features`,
            shapes and idf), "words" (their mean vector), "slot" and "sentence" (what comes with the
            entry) and "states" (an RNN over the contextual states, as in the paper).
        slot, sentence: E and C, the widths of `slot` and `sentence` in an entry; 0 for none.
        context: C, the width of `context` in entries and questions; 0 for none.
        before: whether policies that know the question are shown how much of it the slot before
            shares; entries then bring `before`.
        products: of how many main directions of the view its products are seen too; see
            `Standards`.
        kinds: how many shapes, suffixes and kinds of punctuation there are.
        features: how many features a word has.
        view_units: width of the RNN over the states, in each direction.
    """

    def __init__(
        self,
        vocabulary_size: int,
        width: int,
        words: int,
        longest: int,
        view: tuple[str, ...] = ("hand",),
        slot: int = 0,
        sentence: int = 0,
        context: int = 0,
        before: bool = False,
        products: int = 0,
        kinds: tuple[int, int, int] = (10, 2048, 12),
        features: int = 6,
        view_units: int = 16,
        **kwargs,
    ):
        super().__init__(words, longest, **kwargs)
        unknown = sorted(set(view) - set(VIEWS))
        if unknown or not view:
            raise ValueError(f"expected a view made of {', '.join(VIEWS)}; got {list(view)}")
        for part, wide in (("slot", slot), ("sentence", sentence)):
            if part in view and not wide:
                raise ValueError(
                    f"a view with {part!r} needs the width of what comes with an entry: {part}"
                )
        self.vocabulary_size, self.width = vocabulary_size, width
        self.view, self.view_units = tuple(view), view_units
        self.slot, self.sentence, self.products = slot, sentence, products
        self.context_width, self.before = context, before
        self.kinds, self.features = tuple(kinds), features
        self.table = self.add_weight(
            shape=(vocabulary_size, width),
            initializer=keras.initializers.RandomNormal(stddev=0.1),
            dtype="float16",
            trainable=False,
            name="table",
        )
        self.seeds = keras.random.SeedGenerator()

    def set_table(self, vectors: np.ndarray) -> None:
        """Takes these word vectors, `[vocabulary_size, width]`."""
        if vectors.shape != tuple(self.table.shape):
            raise ValueError(
                f"expected word vectors of shape {tuple(self.table.shape)}; got {vectors.shape}"
            )
        self.table.assign(vectors)

    # -- what is known about a word ---------------------------------------------------------------

    @property
    def states(self) -> int:
        """S, the width of a word's contextual state."""
        raise NotImplementedError(f"{type(self).__name__} does not say how wide its states are")

    def contextual(self, texts: dict[str, tf.Tensor], training: bool) -> tf.Tensor:
        """The states `[..., L, S]` of texts."""
        raise NotImplementedError(f"{type(self).__name__} does not override contextual()")

    def vectors_of(self, words: tf.Tensor) -> tf.Tensor:
        """Word vectors `[..., width]` of ids."""
        found = tf.gather(tf.convert_to_tensor(self.table), words)
        return (
            tf.cast(found, self.compute_dtype) * tf.cast(words > 0, self.compute_dtype)[..., None]
        )

    def embeddings(self) -> tuple[keras.layers.Embedding, ...]:
        """Makes tables for shapes, suffixes and punctuation."""
        shapes, suffixes, marks = self.kinds
        made = []
        for size, width, name in (
            (shapes, 8, "shapes"),
            (suffixes, 16, "suffixes"),
            (marks, 4, "punctuation"),
        ):
            layer = keras.layers.Embedding(size, width, name=name)
            layer.build((None,))
            made.append(layer)
        return tuple(made)

    @property
    def described(self) -> int:
        """The width of what `described_words` returns."""
        return self.width + 8 + 16 + 2 * 4 + self.features + 1 + self.context_width

    def described_words(self, texts: dict[str, tf.Tensor], training: bool) -> tf.Tensor:
        """Words with what they look like, `[..., L, described]`; needs `embeddings`."""
        marks = self.punctuation(texts["punctuation"])  # [..., L, 2, 4]
        marks = tf.concat([marks[..., 0, :], marks[..., 1, :]], axis=-1)
        parts = [
            self.vectors_of(texts["words"]),
            self.shapes(texts["shape"]),
            self.suffixes(texts["suffix"]),
            marks,
            texts["features"],
            texts["idf"][..., None],
            *([levelled(texts["context"])] if self.context_width else []),
        ]
        return tf.concat([tf.cast(part, self.compute_dtype) for part in parts], axis=-1)

    # -- codes ------------------------------------------------------------------------------------

    def entry_spec(self):
        length, whole, real = [self.words], tf.int32, tf.float32
        spec = {
            "words": tf.TensorSpec(length, whole),
            "chars": tf.TensorSpec([*length, 16], whole),
            "shape": tf.TensorSpec(length, whole),
            "suffix": tf.TensorSpec(length, whole),
            "punctuation": tf.TensorSpec([*length, 2], whole),
            "stem": tf.TensorSpec(length, whole),
            "idf": tf.TensorSpec(length, real),
            "features": tf.TensorSpec([*length, self.features], real),
        }
        if self.context_width:
            spec["context"] = tf.TensorSpec([*length, self.context_width], real)
        if self.slot:
            spec["slot"] = tf.TensorSpec([self.slot], real)
        if self.sentence:
            spec["sentence"] = tf.TensorSpec([self.sentence], real)
        if self.before:
            spec["before"] = tf.TensorSpec(length, whole)
        return spec

    def question_spec(self):
        """Nest of `tf.TensorSpec`: a question, as a policy that knows it is shown it."""
        return {
            name: tf.TensorSpec([QUESTION, *spec.shape[1:]], spec.dtype)
            for name, spec in self.entry_spec().items()
            if name not in ("slot", "sentence", "before")
        }

    @property
    def each(self) -> int:
        """Numbers of a word in a code."""
        return self.states + self.context_width + FIELDS

    def packed(self, texts: dict[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        """L words with state, context and fields, `[..., L each]`: all that reading needs."""
        states = self.contextual(texts, training)
        fields = [texts["words"], texts["stem"], texts["idf"], texts["words"] > 0]
        fields = tf.stack([tf.cast(field, tf.float32) for field in fields], axis=-1)
        known = [levelled(texts["context"])] if self.context_width else []
        packed = tf.concat([tf.cast(states, tf.float32), *known, fields], axis=-1)
        lead = tf.shape(packed)[:-2]
        wide = packed.shape[-2] * packed.shape[-1]
        return tf.reshape(packed, tf.concat([lead, [wide]], axis=0))

    def encode(self, entries, training: bool = False):
        """Slots -> codes in float32: L words with state and fields, then the summary."""
        return tf.concat([self.packed(entries, training), self.summary(entries)], axis=-1)

    def ask(self, question, training: bool = False):
        return self.packed(question, training)

    def unpack(self, codes: tf.Tensor) -> Text:
        """The words of slots, from codes `[..., C]`."""
        return self.unpack_question(codes[..., : self.words * self.each])

    def unpack_question(self, query: tf.Tensor) -> Text:
        """The words of questions, from queries `[..., d]`."""
        each, states = self.each, self.states
        length = query.shape[-1] // each
        lead = tf.shape(query)[:-1]
        packed = tf.reshape(query, tf.concat([lead, [length, each]], axis=0))
        packed = tf.ensure_shape(packed, [*query.shape[:-1], length, each])
        word, stem, idf, live = tf.unstack(packed[..., each - FIELDS :], num=FIELDS, axis=-1)
        context = packed[..., states : each - FIELDS]
        states, context = (tf.cast(x, self.compute_dtype) for x in (packed[..., :states], context))
        word, stem = tf.cast(word, tf.int32), tf.cast(stem, tf.int32)
        return Text(states, word, stem, idf, live > 0, context)

    # -- what a policy sees -----------------------------------------------------------------------

    @property
    def summary_parts(self) -> dict[str, slice]:
        """Where the parts of the view stand in `summary`."""
        wide = {
            "hand": self.features + self.kinds[0] + 4,
            "words": self.width,
            "slot": self.slot,
            "sentence": self.sentence,
        }
        here = [part for part in self.view if part in wide]
        ends = np.cumsum([0, *(wide[part] for part in here)]).tolist()
        return {part: slice(*ends[k : k + 2]) for k, part in enumerate(here)}

    @property
    def summary_width(self) -> int:
        """The width of `summary`."""
        return sum(part.stop - part.start for part in self.summary_parts.values())

    def build_view(self, states: int) -> None:
        """Creates the weights of the view; a subclass calls it when it is built."""
        wide = self.summary_width
        fixed = {"trainable": False, "dtype": "float32"}
        self.mean = self.add_weight(shape=(wide,), initializer="zeros", name="mean", **fixed)
        self.scale = self.add_weight(shape=(wide,), initializer="ones", name="scale", **fixed)
        shape = (wide, self.products)
        self.axes: Any = np.zeros(shape, np.float32)
        if self.products:
            self.axes = self.add_weight(shape=shape, initializer="zeros", name="axes", **fixed)
        if "states" in self.view:
            self.view_rnn = BiGRU(self.view_units, name="view")
            self.view_rnn.build((None, None, states))

    def summary(self, entries: dict[str, tf.Tensor]) -> tf.Tensor:
        """What the view takes from an entry as it is, `[..., summary_width]`."""
        live = tf.cast(entries["words"] > 0, tf.float32)
        count = tf.maximum(tf.reduce_sum(live, axis=-1, keepdims=True), 1.0)

        def mean(x):
            return tf.reduce_sum(tf.cast(x, tf.float32) * live[..., None], axis=-2) / count

        parts = [tf.zeros([*tf.unstack(tf.shape(live)[:-1]), 0])]
        for part in self.view:
            if part == "hand":
                idf = entries["idf"] * live
                capital, starts = entries["features"][..., 0], entries["features"][..., 3]
                parts += [
                    mean(entries["features"]),
                    mean(tf.one_hot(entries["shape"], self.kinds[0])),
                    tf.reduce_sum(idf, axis=-1, keepdims=True) / count,
                    tf.reduce_max(idf, axis=-1, keepdims=True),
                    mean((capital * (1.0 - starts))[..., None]),
                    count / self.words,
                ]
            elif part == "words":
                parts.append(mean(self.vectors_of(entries["words"])))
            elif part in ("slot", "sentence"):
                wide = self.summary_parts[part]  # a model may be older than the last of a slot's
                parts.append(tf.cast(entries[part][..., : wide.stop - wide.start], tf.float32))
        return tf.concat(parts, axis=-1)

    def standardise(self, standards: Standards) -> None:
        """Lets the view be seen by these standards of some summaries."""
        self.mean.assign(standards.mean)
        self.scale.assign(standards.scale)
        if self.products:
            self.axes.assign(standards.axes)

    def vectors(self, codes):
        """e of a slot: the summary, standardised, and an RNN over its states, as `view` says."""
        summary = codes[..., self.words * self.each :]
        e = Standards(self.mean, self.scale, self.axes)(summary)
        if "states" in self.view:
            text = self.unpack(codes)
            h = self.view_rnn(text.states, text.live)
            last = tf.concat([h[..., -1, : self.view_units], h[..., 0, self.view_units :]], axis=-1)
            e = tf.concat([e, tf.cast(last, e.dtype)], axis=-1)
        return e

    def lexical(self) -> keras.layers.Layer:
        """What rules for words see of a slot: see `lemn_tf.retention.lexical`."""
        return Lexical(self, name="lexical")

    def aware(self) -> keras.layers.Layer:
        """What a policy that knows the question sees of a slot: see `Aware`."""
        return Aware(self, name="aware")

    def get_config(self):
        names = ("vocabulary_size", "width", "view", "slot", "sentence", "before", "products")
        names += ("kinds", "features", "view_units")
        own = {name: getattr(self, name) for name in names}
        return {**super().get_config(), **own, "context": self.context_width}


def levelled(vectors: tf.Tensor) -> tf.Tensor:
    """Vectors with mean square 1, float32; zeros stay zeros."""
    vectors = tf.cast(vectors, tf.float32)
    square = tf.reduce_mean(tf.square(vectors), axis=-1, keepdims=True)
    return vectors * tf.math.rsqrt(tf.maximum(square, 1e-8))


def masked_softmax(scores: tf.Tensor, live: tf.Tensor) -> tf.Tensor:
    """Softmax over the last axis where `live`, 0 elsewhere and if nothing is; done in float32."""
    masked = tf.where(live, tf.cast(scores, tf.float32), -1e9)
    # TensorFlow with oneDNN takes up to five dimensions.
    flat = tf.nn.softmax(tf.reshape(masked, [-1, tf.shape(masked)[-1]]))
    weights = tf.ensure_shape(tf.reshape(flat, tf.shape(masked)), masked.shape)
    return tf.cast(weights * tf.cast(live, tf.float32), scores.dtype)


def dropped(x: tf.Tensor, rate: float, training: bool, seeds: Any, over: int = -2) -> tf.Tensor:
    """Dropout of texts `[..., L, D]` in training, the same for all words of a text.

    Args:
        x: the texts.
        rate: share that is left out.
        training: whether anything is.
        seeds: a `keras.random.SeedGenerator`.
        over: the axis of the words.
    """
    if not training or not rate:
        return x
    noise = list(tf.unstack(tf.shape(x)))
    noise[over] = 1
    keep = keras.random.uniform(noise, seed=seeds) >= rate
    return tf.where(keep, x / (1.0 - rate), tf.zeros([], x.dtype))
