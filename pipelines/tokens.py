"""What is known of a word from its letters alone: ids, shape, punctuation around it, stem.

Words are split at white space. The punctuation around one, and a final 's, are taken off and given
as ids of their own. All of it runs in the graph and looks at each distinct word of a batch once, so
that training, evaluation and an exported model share it. Nothing here needs tensorflow_text.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from .embeddings import Words

CHARS = 16
SUFFIXES = 2048
STEMS = 1 << 20
IDF = 1 << 16
"""Entries of a table of inverse document frequencies: that of a stem is at `stem % IDF`."""
SHAPES = (
    "padding",
    "lower case",
    "Capital",
    "CAPITALS",
    "mIxed",
    "year",
    "number",
    "letters and digits",
    "neither",
)
PUNCTUATION = (
    ("none", ""),
    ("quote", "\"'“”‘’´`„«»‹›"),
    ("opening", "([{<"),
    ("closing", ")]}>"),
    ("comma", ","),
    ("full stop", ".!?…"),
    ("colon", ":;"),
    ("dash", "-–—"),
    ("currency", "$"),
    ("percent", "%"),
    ("other", ""),
    ("possessive", ""),
)
"""Names and characters of what stands before or after a word; the id is the place in the list."""
FEATURES = ("capital", "digit", "year", "sentence_start", "known", "rarity")
ARRAYS = ("words", "chars", "shape", "suffix", "punctuation", "stem")
_EDGE = r"!-/:-@\[-`{-~‘’´“”„«»‹›–—…¿¡·•†‡\x{feff}"
_SPACES = {
    r"[\x{85}\x{a0}]": "  ",
    r"[\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]": "   ",
}
"""White space beyond ASCII, and as many spaces as it has bytes."""
_SHORT = r"[A-Z]|(?:[A-Z]\.)+[A-Z]|Mrs?|Dr|Ms|St|vs|e\.g|i\.e"
_STEM = r"(..[a-z])(?:ies|ied|ings?|edly|ed|es|s|e|y|ly|ers?|ions?|al)$"


def strip(raw: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Takes the punctuation off words `[U]`.

    Returns:
        (before, word, after), strings of `[U]` that join to `raw`. A word of nothing but
        punctuation stays as it is.

    Example:

    >>> before, word, after = strip(tf.constant(['("Obama\\'s),', "--"]))
    >>> before.numpy().tolist(), word.numpy().tolist(), after.numpy().tolist()
    ([b'("', b''], [b'Obama', b'--'], [b"'s),", b''])
    """
    rest = tf.strings.regex_replace(raw, f"^[{_EDGE}]+", "")
    rest = tf.where(rest == "", raw, rest)
    word = tf.strings.regex_replace(rest, f"(?:['’][sS])?[{_EDGE}]*$", "")
    word = tf.where(word == "", rest, word)
    zero = tf.zeros_like(tf.strings.length(raw))
    leading = tf.strings.length(raw) - tf.strings.length(rest)
    inner = tf.strings.length(word)
    before = tf.strings.substr(raw, zero, leading)
    after = tf.strings.substr(rest, inner, tf.strings.length(rest) - inner)
    return before, word, after


def describe(
    before: tf.Tensor, word: tf.Tensor, after: tf.Tensor, words: Words
) -> dict[str, tf.Tensor]:
    """What is known of distinct words `[U]`, as `strip` gives them: the `ARRAYS`, small types."""
    lower = tf.strings.lower(word, encoding="utf-8")
    letters = tf.io.decode_raw(word, tf.uint8, fixed_length=CHARS)
    small = tf.io.decode_raw(lower, tf.uint8, fixed_length=CHARS)
    length = tf.strings.length(lower)
    ending = tf.strings.substr(lower, -tf.minimum(length, 3), tf.minimum(length, 3))
    stem = tf.strings.regex_replace(lower, _STEM, r"\1")
    there = tf.cast(length > 0, tf.int32)
    return {
        "words": words(lower),
        "chars": letters,
        "shape": _shape(letters, small),
        "suffix": (_hash(ending, SUFFIXES - 1) + 1) * there,
        "punctuation": tf.stack([_punctuation(before, -1), _punctuation(after, 0)], axis=-1),
        "stem": (_hash(stem, STEMS - 1) + 1) * there,
    }


def _hash(strings: tf.Tensor, buckets: int) -> tf.Tensor:
    return tf.cast(tf.strings.to_hash_bucket_fast(strings, buckets), tf.int32)


def _shape(letters: tf.Tensor, small: tf.Tensor) -> tf.Tensor:
    """The place in SHAPES of words given as bytes `[U, CHARS]`, as written and in lower case."""
    here = letters > 0
    upper = (letters != small) & here
    digit = (letters >= ord("0")) & (letters <= ord("9"))
    wide = letters >= 0xC0  # the first byte of a letter beyond ASCII; case shows in the second
    low = ((letters >= ord("a")) & (letters <= ord("z"))) | ((letters >= 128) & ~wide & ~upper)
    any_of = tf.reduce_any
    accented = wide[:, 0] & upper[:, 1]
    first, inner = upper[:, 0] | accented, any_of(upper[:, 2:], -1) | (upper[:, 1] & ~accented)
    mark = (letters == ord(",")) | (letters == ord("."))
    count = tf.reduce_sum(tf.cast(here, tf.int32), -1)
    year = tf.reduce_all(digit[:, :4], -1) & (count == 4)
    year &= (letters[:, 0] == ord("1")) | tf.reduce_all(letters[:, :2] == [ord("2"), ord("0")], -1)
    number = any_of(digit, -1) & tf.reduce_all(digit | mark | ~here, -1)
    cases = [
        (count == 0, 0),
        (year, 5),
        (number, 6),
        (any_of(digit, -1), 7),
        (~any_of(upper | low, -1), 8),
        (~any_of(upper, -1), 1),
        (first & ~any_of(low, -1) & (count > 1), 3),
        (first & ~inner, 2),
    ]
    shape = tf.fill(tf.shape(count), tf.constant(4, tf.uint8))
    for case, number in reversed(cases):
        shape = tf.where(case, tf.constant(number, tf.uint8), shape)
    return shape


def _punctuation(text: tf.Tensor, place: int) -> tf.Tensor:
    """The id of what stands next to a word: its first (0) or last (-1) character decides."""
    distinct, where = tf.unique(text)
    length = tf.strings.length(distinct, unit="UTF8_CHAR")
    at = tf.zeros_like(length) if place == 0 else tf.maximum(length - 1, 0)
    mark = tf.strings.substr(distinct, at, tf.minimum(length, 1), unit="UTF8_CHAR")
    ids = tf.fill(tf.shape(length), tf.constant(len(PUNCTUATION) - 2, tf.uint8))
    for number, (_, marks) in enumerate(PUNCTUATION):
        if marks or not number:
            same = mark[:, None] == tf.constant(list(marks) or [""])
            ids = tf.where(tf.reduce_any(same, -1), tf.constant(number, tf.uint8), ids)
    possessive = tf.strings.regex_full_match(distinct, "['’][sS].*")
    ids = tf.where(possessive, tf.constant(len(PUNCTUATION) - 1, tf.uint8), ids)
    return tf.gather(ids, where)


def ends_sentence(word: tf.Tensor, after: tf.Tensor) -> tf.Tensor:
    """Whether a sentence ends with these words `[U]`: a full stop, but not that of an initial.

    Example:

    >>> ends_sentence(tf.constant(["F", "Kennedy", "in"]), tf.constant([".", '."', ""])).numpy()
    array([False,  True, False])
    """
    distinct, where = tf.unique(after)
    stops = tf.gather(tf.strings.regex_full_match(distinct, r".*[.!?…].*"), where)
    places = tf.where(stops)
    initial = tf.strings.regex_full_match(tf.gather_nd(word, places), _SHORT)
    initial &= tf.gather_nd(after, places) == "."
    return tf.tensor_scatter_nd_update(stops, places, ~initial)


def finish(
    arrays: dict[str, tf.Tensor], starts: tf.Tensor, words: Words, idf: tf.Tensor | None = None
) -> dict[str, tf.Tensor]:
    """The dict that readers get, of any shape, from what `describe` gave.

    Args:
        arrays: the `ARRAYS`.
        starts: whether a word is the first of a sentence.
        words: the words of the ids.
        idf: float32 `[IDF]`; None guesses from how frequent the vocabulary's words are.
    """
    out = {name: tf.cast(arrays[name], tf.int32) for name in ARRAYS}
    ids, shape = out["words"], out["shape"]
    there = tf.cast(ids > 0, tf.float32)
    rarity = words.rarity(ids)
    flags = [
        (shape == 2) | (shape == 3) | (shape == 4),
        (shape == 5) | (shape == 6) | (shape == 7),
        shape == 5,
        tf.cast(starts, tf.bool),
        ids <= words.known,
    ]
    parts = [*(tf.cast(flag, tf.float32) for flag in flags), rarity]
    out["features"] = tf.stack(parts, axis=-1) * there[..., None]
    if idf is None:
        weight = rarity * float(np.log(words.known + 1))
    else:
        weight = tf.gather(tf.convert_to_tensor(idf, tf.float32), out["stem"] % IDF)
    out["idf"] = weight * there
    return out


def plain_spaces(texts: tf.Tensor) -> tf.Tensor:
    """The same texts, byte for byte as long, with no white space but that of ASCII.

    Tokenizers split at other white space too, but leave parts of it on the word before.

    Example:

    >>> plain_spaces(tf.constant(["150\u00a0km"])).numpy().tolist()
    [b'150  km']
    """
    for spaces, plain in _SPACES.items():
        texts = tf.strings.regex_replace(texts, spaces, plain)
    return texts


def split(texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
    """Splits texts `[S]` at white space, by core operations alone.

    Returns:
        Words `[S, (W)]`, whether each begins a sentence or a line, and how many words of its
        paragraph come before it. A paragraph ends with an empty line.

    Example:

    >>> words, starts, before = split(tf.constant(["He left. Why?\\n\\nNobody knew."]))
    >>> words.to_list(), starts.to_list()
    ([[b'He', b'left.', b'Why?', b'Nobody', b'knew.']], [[True, False, True, True, False]])
    >>> before.to_list()
    [[0, 1, 2, 0, 1]]
    """
    valid = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
    lines = tf.strings.split(tf.strings.split(plain_spaces(valid), "\n"))  # [S, (lines), (words)]
    raw = lines.merge_dims(1, 2)
    full = lines.values.row_lengths() > 0
    first = tf.boolean_mask(lines.values.row_starts(), full)
    distinct, where = tf.unique(raw.values)
    _, word, after = strip(distinct)
    stops = tf.gather(ends_sentence(word, after), where)
    count = tf.size(where, tf.int64)
    begins = tf.scatter_nd(first[:, None], tf.ones_like(first), [count]) > 0
    above = tf.concat([[False], full], 0)[: tf.size(full)]
    above &= tf.range(tf.size(full, tf.int64)) != tf.repeat(lines.row_starts(), lines.row_lengths())
    opening = tf.boolean_mask(lines.values.row_starts(), full & ~above)
    place = tf.range(count)
    paragraph = tf.searchsorted(opening, place, side="right")
    before = place - tf.gather(tf.concat([[0], opening], 0), paragraph)
    starts = begins | tf.roll(stops, 1, 0)
    return raw, raw.with_values(starts), raw.with_values(tf.cast(before, tf.int32))


def encode(
    raw: tf.Tensor, words: Words, idf: tf.Tensor | None = None, starts: tf.Tensor | None = None
) -> dict[str, tf.Tensor]:
    """Words as readers get them.

    Args:
        raw: strings `[..., L]`, words split at white space; "" is padding.
        words: the vocabulary.
        idf: float32 `[IDF]`, or None: see `finish`.
        starts: bool `[..., L]`, whether each word begins a sentence; None takes each row as if one
            began with it.

    Returns:
        The dict described in `pipelines.spans`, over `[..., L]`.

    Example:

    >>> words = Words(["the", "cat", "sat"])
    >>> out = encode(tf.constant([["The", "cat", "sat.", ""]]), words)
    >>> out["words"].numpy().tolist(), out["punctuation"][0, 2].numpy().tolist()
    ([[1, 2, 3, 0]], [0, 5])
    """
    distinct, where = tf.unique(tf.reshape(raw, [-1]))
    before, word, after = strip(distinct)
    where = tf.reshape(where, tf.shape(raw))
    table = describe(before, word, after, words)
    if starts is None:
        ends = tf.gather(ends_sentence(word, after), where)
        starts = tf.concat([tf.ones_like(ends[..., :1]), ends[..., :-1]], axis=-1)
    return finish({name: tf.gather(table[name], where) for name in ARRAYS}, starts, words, idf)
