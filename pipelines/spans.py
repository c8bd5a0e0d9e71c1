"""Documents as episodes: words with offsets, slots of 20 words, answers as spans within slots.

`dataset(collection, words, batch_size, ...)` makes batches. B documents of up to T slots of L = 20
words, up to Q questions a document of up to 30 words, up to K spans a question:

    items       dict over [B, T, L], see below
    length      [B] int32              slots of the document
    questions   the same dict over [B, Q, 30]
    ask_at      [B, Q] int32           = length (asked at the end), -1 for padding
    answers     [B, Q, K, 3] int32     (slot, first word, words - 1) of every right span that lies
                                       within one slot, -1 for padding; K is that of the batch
    offsets     [B, T, L, 2] int32     of each word in the document's bytes, without the punctuation
                                       around it; -1 for padding
    document    [B] int32              index into the collection: `collection[i]` is the document
    question    [B, Q] int32           index into `collection[i].questions`, -1 for padding

The dict of items and questions, 0 for padding everywhere:

    words       [...] int32            ids of `pipelines.embeddings.Words`
    chars       [..., 16] int32        bytes of the word in UTF-8 (1 to 255)
    shape       [...] int32            SHAPES: lower case, Capital, CAPITALS, year, ...
    suffix      [...] int32            hash of the last three letters, below SUFFIXES
    punctuation [..., 2] int32         what stands before and after the word, PUNCTUATION
    stem        [...] int32            hash of the stem, below STEMS: equal ids match
    idf         [...] float32          of the stem in the training documents
    features    [..., F] float32       FEATURES: capital, digit, year, sentence start, known, rarity

A document of more than Q questions comes several times, each time with other questions.
"""

SHAPES = 10
SUFFIXES = 2048
PUNCTUATION = 12
STEMS = 1 << 20
FEATURES = ("capital", "digit", "year", "sentence_start", "known", "rarity")
