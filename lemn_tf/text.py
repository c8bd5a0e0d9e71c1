"""Text in the graph: words to ids and back, as a layer that travels with the model.

A `Vocabulary` holds a `tf.lookup` table and a tokenizer made of core string operations, which every
TensorFlow runtime has. Exported with the model, it lets a server take raw sentences and give back
words.
"""

from collections.abc import Iterable, Mapping

import keras
import tensorflow as tf

PADDING, UNKNOWN = 0, 1
"""The two ids that are not words: padding, and any word that is not in the vocabulary."""

# What separates words: everything but letters, marks, digits, and apostrophes and hyphens inside a
# word. RE2 has no lookaround, so those at a word's edge are removed in two further steps.
_SEPARATORS = (r"[^\pL\pM\pN'-]+", r"(^|\s)['-]+", r"['-]+(\s|$)")


def _lower(strings: tf.Tensor) -> tf.Tensor:
    """Lower case, with bytes that are not UTF-8 replaced by U+FFFD (which is no letter)."""
    valid = tf.strings.unicode_transcode(strings, "UTF-8", "UTF-8", errors="replace")
    return tf.strings.lower(valid, encoding="utf-8")


def tokenize(texts: tf.Tensor) -> tf.RaggedTensor:
    """Splits a vector of texts into lower-case words without punctuation.

    Args:
        texts: string tensor [S].

    Returns:
        Ragged string tensor [S, (words)].

    Example:

    >>> tokenize(tf.constant(["Where is Mary's cat?", ""])).to_list()
    [[b'where', b'is', b"mary's", b'cat'], []]
    """
    texts = _lower(texts)
    for pattern in _SEPARATORS:
        texts = tf.strings.regex_replace(texts, pattern, " ")
    return tf.strings.split(texts)  # only spaces are left between words


def _strings(value) -> tf.Tensor:
    value = tf.convert_to_tensor(value)
    if value.dtype != tf.string:
        raise TypeError(f"expected a string tensor, got dtype {value.dtype.name}")
    if value.shape.rank is None:
        raise ValueError("expected strings of known rank, got a tensor of unknown rank")
    return value


@keras.saving.register_keras_serializable("lemn_tf")
class Vocabulary(keras.layers.Layer):
    """Maps texts to word ids and ids to text, in the graph.

    Id 0 is padding, id 1 any word that is not in the vocabulary, ids from 2 the words in order.

    Args:
        words: the words, each once; they are lower-cased.
        example: from the texts they come from, `{"item": [sentences], "question": a question}`, to
            show users of the model later.
        **kwargs: passed on to `keras.layers.Layer`.

    Call arguments:
        texts: string tensor of any static rank, [...].
        length: pad or cut every text to this many words; None pads to the longest.

    Returns:
        int32 ids [..., L].

    Example:

    >>> vocabulary = Vocabulary(["mary", "went", "home"])
    >>> vocabulary(["Mary went home.", "Mary ate."]).numpy()
    array([[2, 3, 4],
           [2, 1, 0]], dtype=int32)
    >>> vocabulary.lookup(["Home", "garden"]).numpy()
    array([4, 1], dtype=int32)
    >>> vocabulary.text([2, 3, 1, 0]).numpy()
    b'mary went [unk]'
    """

    def __init__(
        self, words: Iterable[str], example: Mapping[str, str | list[str]] | None = None, **kwargs
    ):
        super().__init__(**{"trainable": False, "dtype": "int32", **kwargs})
        # Keep strings from being converted to numbers, and accept plain Python strings.
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True
        self._words, self.example = _checked(words), None if example is None else dict(example)
        self.built = True
        self._table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant(["", *self._words]),  # a table may not be empty
                tf.constant([PADDING, *range(2, self.size)], tf.int64),
            ),
            default_value=UNKNOWN,
        )

    unknown = UNKNOWN
    """The id of all unknown words."""

    @classmethod
    def from_texts(
        cls, texts: Iterable[str], answers: Iterable[str] = (), **kwargs
    ) -> "Vocabulary":
        """Makes a vocabulary of every word in `texts` and every whole string in `answers`.

        The order is the alphabet's, so the same texts in any order give the same ids.

        Args:
            texts: sentences and questions, split by the same tokenizer as in a call.
            answers: answers, each one word as in `lookup`, e.g. "milk,football".
            **kwargs: passed on to the constructor.

        Example:

        >>> Vocabulary.from_texts(["Mary went home.", "Where is Mary?"], ["milk,apple"]).words
        ('home', 'is', 'mary', 'milk,apple', 'went', 'where')
        """
        texts, answers = dict.fromkeys(texts), dict.fromkeys(answers)
        for text in (*texts, *answers):
            if not isinstance(text, str):
                raise TypeError(f"expected texts of type str, got {text!r}")
        with tf.device("CPU"):
            words = tokenize(tf.constant(list(texts), tf.string)).flat_values.numpy()
            whole = _answer(tf.constant(list(answers), tf.string)).numpy()
        return cls(sorted({word.decode() for word in (*words, *whole) if word}), **kwargs)

    @property
    def words(self) -> tuple[str, ...]:
        """The words, without padding and unknown: the first has id 2."""
        return self._words

    @property
    def size(self) -> int:
        """How many ids there are, padding and unknown included."""
        return len(self._words) + 2

    def call(self, texts, length: int | None = None) -> tf.Tensor:
        texts = _strings(texts)
        tokens = tokenize(tf.reshape(texts, [-1]))
        words = tokens.with_flat_values(self._table.lookup(tokens.flat_values))
        ids = tf.cast(words.to_tensor(PADDING, shape=[None, length]), tf.int32)
        return self._restore(ids, texts, length)

    @staticmethod
    def _restore(ids: tf.Tensor, texts: tf.Tensor, length: int | None) -> tf.Tensor:
        """[S, L] back to [..., L], keeping what is known about the static shape."""
        dense = tf.reshape(ids, tf.concat([tf.shape(texts), tf.shape(ids)[1:]], 0))
        return tf.ensure_shape(dense, [*texts.shape, length])

    def unknown_words(self, texts) -> tf.Tensor:
        """The words of each text that are not in the vocabulary, joined with spaces.

        Args:
            texts: string tensor [S].

        Returns:
            String tensor [S].

        Example:

        >>> Vocabulary(["mary", "went"]).unknown_words(["Mary went to Rome.", "Mary"]).numpy()
        array([b'to rome', b''], dtype=object)
        """
        tokens = tokenize(_strings(texts))
        strange = tokens.with_flat_values(self._table.lookup(tokens.flat_values) == UNKNOWN)
        found = tf.ragged.boolean_mask(tokens, strange)
        return tf.strings.reduce_join(found, axis=-1, separator=" ")

    def lookup(self, strings) -> tf.Tensor:
        """Ids of whole strings, each taken as one (answer) word.

        Args:
            strings: string tensor [...], e.g. "Garden" or "milk,football".

        Returns:
            int32 ids [...]; 1 for strings that are not in the vocabulary.
        """
        return tf.cast(self._table.lookup(_answer(_strings(strings))), tf.int32)

    def text(self, ids) -> tf.Tensor:
        """Words of the last axis joined with spaces.

        Args:
            ids: integer tensor [..., L]; padding is left out, unknown words read "[unk]".

        Returns:
            String tensor [...].
        """
        ids = tf.cast(tf.convert_to_tensor(ids), tf.int32)
        ids = tf.where((ids < 0) | (ids >= self.size), UNKNOWN, ids)
        words = tf.gather(tf.constant(["", "[unk]", *self._words]), ids)
        joined = tf.strings.reduce_join(words, axis=-1, separator=" ")
        return tf.strings.strip(tf.strings.regex_replace(joined, " +", " "))

    def compute_output_spec(self, texts, length: int | None = None) -> keras.KerasTensor:
        return keras.KerasTensor((*texts.shape, length), "int32")

    def get_config(self) -> dict:
        own = {"words": list(self._words), "example": self.example}
        return {**super().get_config(), **own}


def _answer(strings: tf.Tensor) -> tf.Tensor:
    return tf.strings.strip(_lower(strings))


def _checked(words: Iterable[str]) -> tuple[str, ...]:
    """The words in lower case; raises if one of them is not a word, and says which."""
    if isinstance(words, str):
        raise TypeError(f"expected a list of words, got one string {words!r}")
    seen: dict[str, int] = {}
    for position, word in enumerate(words):
        if not isinstance(word, str):
            raise TypeError(f"expected words of type str, got {word!r} at position {position}")
        lower = word.lower()
        if not lower.strip():
            raise ValueError(f"expected words that are not empty, got {word!r} at {position}")
        if lower in seen:
            raise ValueError(
                f"expected each word once (case does not count), got {word!r} "
                f"at positions {seen[lower]} and {position}"
            )
        seen[lower] = position
    return tuple(seen)
