"""Spelling: strings compared by the character n-grams that they are made of.

For columns of many strings, of which some are the same written in another way: "Boeing 737-8" and
"BOEING 737-800"; and for sentences. A string is folded (case, accents, punctuation), cut into pairs
and triples of characters with a blank at both ends, and these are hashed into buckets; rare ones
count more. Everything follows from the distinct strings, whatever order they came in, at a cost
that is linear in their length. An encoder of the user's may take the place of n-grams.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from scipy import sparse

from tabweave._compat import njit
from tabweave.columns.vocabulary import Bucket, Label, slices
from tabweave.io.register import storable

MAX_UNSPELLED_VALUES = 129  # Columns of more values are compared by their spelling, too.
BUCKET_BITS = 16  # N-grams are hashed to numbers of so many bits.
N_BUCKETS = 1 << BUCKET_BITS
SKETCH_WIDTH = 256  # Dimensions in which n-grams are added up.
BLOCK_SIMILARITIES = 1 << 24  # Similarities that are computed at a time.
_ASCII_SIGN = re.compile("[A-Za-z0-9]")
_MARKS = re.compile(r"[^\w\n]|_")
_BLANK, _END = ord(" "), ord("\n")
_ASCII = np.array([i if chr(i).isalnum() or i == _END else _BLANK for i in range(128)], np.uint8)


@storable
@dataclass(frozen=True, eq=False)
class Spelling:
    """The strings of a column, to find those that are spelled like others.

    Parameters
    ----------
    labels : tuple
        The values of the column; what is not text is like nothing.
    encoder : callable or object with ``transform``, optional
        Turns a list of strings into an array with a row for each, instead of n-grams.

    Examples
    --------
    >>> makers = Spelling(("Airbus A320", "Boeing 737-8", "Embraer 190"))
    >>> found, alike = makers.similar(["BOEING 737-800"], 1)
    >>> makers.labels[found[0, 0]], bool(alike[0, 0] > 0.5)
    ('Boeing 737-8', True)
    """

    labels: tuple[Label, ...]
    encoder: Any = None

    @cached_property
    def idf(self) -> np.ndarray:
        """Weight of each bucket: ``log((1 + V) / (1 + df)) + 1``, df the strings that have it."""
        frequencies = np.bincount(self._buckets.indices, minlength=N_BUCKETS)
        return (np.log((1 + len(self.labels)) / (1 + frequencies)) + 1).astype(np.float32)

    @cached_property
    def _buckets(self) -> Any:
        return ngrams(self.labels)

    @cached_property
    def matrix(self) -> Any:
        """The strings as points, rows of length 1 (or 0, without any n-gram)."""
        return self._weighted(self._buckets) if self.encoder is None else self.points(self.labels)

    def points(self, labels: Iterable[Label]) -> Any:
        """Strings as points, a row of length 1 for each; sparse if of n-grams."""
        if self.encoder is None:
            return self._weighted(ngrams(list(labels)))
        return encoded(self.encoder, labels)

    def _weighted(self, buckets: Any) -> Any:
        """Rows whose inner products are the shared idf over the root of the product."""
        squares = self.idf[buckets.indices]
        total = np.bincount(buckets_row(buckets), squares, buckets.shape[0])
        data = np.sqrt(squares / np.repeat(total, np.diff(buckets.indptr))).astype(np.float32)
        return sparse.csr_array((data, buckets.indices, buckets.indptr), shape=buckets.shape)

    @cached_property
    def _transposed(self) -> Any:
        return self.matrix.T.tocsr()

    def similar(self, labels: Sequence[Label], k: int) -> tuple[np.ndarray, np.ndarray]:
        """The index of the k strings most alike to each of others, and their cosines."""
        return self._most_alike(self.points(labels), k)

    def neighbors(self, asked: np.ndarray, k: int = 8) -> Any:
        """How alike the k nearest of some values by spelling are to them, themselves left out.

        A sparse matrix: rows are the values asked for by index, columns all values.
        """
        index, cosines = self._most_alike(self.matrix[asked], k + 1)
        cosines = np.where(index == asked[:, None], 0, np.maximum(cosines, 0))
        rows = np.repeat(np.arange(len(asked)), index.shape[1])
        cells = (cosines.ravel(), (rows, index.ravel()))
        return sparse.csr_array(cells, shape=(len(asked), len(self.labels)))

    def _most_alike(self, points: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        size = len(self.labels)
        shape = points.shape[0], min(k, size)
        index, cosines = np.zeros(shape, np.intp), np.zeros(shape)
        if self.encoder is None:
            values = self._transposed
            point_arrays, value_arrays = ((m.indptr, m.indices, m.data) for m in (points, values))
            _nearest(*point_arrays, *value_arrays, np.zeros(size, np.float32), index, cosines)
            return index, cosines
        for part in slices(shape[0], size, BLOCK_SIMILARITIES):
            index[part], cosines[part] = _largest(points[part] @ self.matrix.T, shape[1])
        return index, cosines

    def between(self, labels: Sequence[Label]) -> tuple[np.ndarray, np.ndarray]:
        """The index of the values that strings lie between, the most alike first, and how.

        The weights of a string add up to the square of its largest cosine, in proportion to a high
        power of them; what is left to 1 is that of the column's centroid.
        """
        index, cosines = self.similar(labels, k=8)
        power = 8  # so high that the most alike decides
        weights = np.maximum(cosines, 0) ** power
        total = weights.sum(axis=1, keepdims=True)
        return index, weights * cosines[:, :1].clip(0, 1) ** 2 / np.maximum(total, 1e-300)

    def sketch(self) -> np.ndarray:
        """The strings in few dimensions: n-grams added up with signs, by their hash.

        Inner products are those of :attr:`matrix` up to ``1/√SKETCH_WIDTH`` [Weinberger et al.
        2009]; lengths are the same.
        """
        if self.encoder is not None:
            return np.asarray(self.matrix, np.float64)
        bucket = scrambled(np.arange(N_BUCKETS, dtype=np.uint32))
        signs = np.where(bucket & np.uint32(1), 1.0, -1.0)
        column = ((bucket >> np.uint32(1)) % np.uint32(SKETCH_WIDTH)).astype(np.intp)
        matrix, rows = self.matrix, np.empty((len(self.labels), SKETCH_WIDTH))
        for part in slices(len(rows), SKETCH_WIDTH, 1 << 17):  # as many as caches hold
            block = matrix[part]
            cells = (signs[block.indices] * block.data, column[block.indices], block.indptr)
            sums = sparse.csr_array(cells, shape=(block.shape[0], SKETCH_WIDTH)).toarray()
            np.divide(
                sums, np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12), out=rows[part]
            )
        return rows


def _largest(similarities: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the k largest of each row are, and these; of equal ones the first.

    One after the other: for a few that is several times faster than to sort or to partition.
    """
    rows = np.arange(len(similarities))
    index, largest = np.zeros((len(similarities), k), np.intp), np.zeros((len(similarities), k))
    for j in range(k):
        index[:, j] = similarities.argmax(axis=1)
        largest[:, j] = similarities[rows, index[:, j]]
        similarities[rows, index[:, j]] = -np.inf
    return index, largest


def _nearest_plain(
    starts: Any,
    buckets: Any,
    weights: Any,
    list_starts: Any,
    listed: Any,
    list_weights: Any,
    cosine: np.ndarray,
    index: np.ndarray,
    cosines: np.ndarray,
) -> None:
    (n, k), size = index.shape, len(cosine)
    points = sparse.csr_array((weights, buckets, starts), shape=(n, N_BUCKETS))
    values = sparse.csr_array((list_weights, listed, list_starts), shape=(N_BUCKETS, size))
    for part in slices(n, size, BLOCK_SIMILARITIES):
        index[part], cosines[part] = _largest((points[part] @ values).toarray(), k)


def _work(starts: np.ndarray, buckets: np.ndarray, weights: Any, list_starts: Any, *_: Any) -> int:
    """How much there is to do: a share of the products of weights."""
    n_products = int(np.diff(list_starts)[buckets].sum())
    return n_products // 32  # SciPy takes so many as fast as a compiled loop handles one element


@njit(nogil=True, cache=True, plain=_nearest_plain, work=_work)
def _nearest(
    starts: np.ndarray,
    buckets: np.ndarray,
    weights: np.ndarray,
    list_starts: np.ndarray,
    listed: np.ndarray,
    list_weights: np.ndarray,
    cosine: np.ndarray,
    index: np.ndarray,
    cosines: np.ndarray,
) -> None:
    """Find the strings most alike to each one asked for, by the lists of those with a bucket."""
    k = index.shape[1]
    for i in range(len(index) if k else 0):
        cosine[:] = 0
        for j in range(starts[i], starts[i + 1]):
            weight = weights[j]
            for m in range(list_starts[buckets[j]], list_starts[buckets[j] + 1]):
                cosine[listed[m]] += weight * list_weights[m]
        nearest, largest = index[i], cosines[i]
        largest[:] = -1
        for d in range(len(cosine)):
            if cosine[d] > largest[k - 1]:  # of equal ones the first
                m = k - 1
                while m > 0 and cosine[d] > largest[m - 1]:
                    largest[m], nearest[m] = largest[m - 1], nearest[m - 1]
                    m -= 1
                largest[m], nearest[m] = cosine[d], d


def spelling_of(labels: tuple[Label, ...], declared: Any = None) -> Spelling | None:
    """The spelling of a column's values if it has one.

    Parameters
    ----------
    labels : tuple
        The values.
    declared : bool, callable or object with ``transform``, optional
        Whether it is to have one, or an encoder of strings; by default :func:`is_spelled` says so.
    """
    if declared is None or isinstance(declared, bool):
        return Spelling(labels) if declared or (declared is None and is_spelled(labels)) else None
    return Spelling(labels, declared)


def is_spelled(labels: Sequence[Label]) -> bool:
    """Whether a column is one of many strings, at least half of them with a letter or a digit.

    Codes of digits are among them, where they are text: those of one area begin alike, and one
    that is mistyped is still nearer than any other.
    """
    if len(labels) <= MAX_UNSPELLED_VALUES:
        return False
    strings = sum(isinstance(v, str) and _is_spelled(v) for v in labels)
    return strings >= 0.5 * len(labels)


def _is_spelled(text: str) -> bool:
    if text.isascii():
        return _ASCII_SIGN.search(text) is not None
    return any(map(str.isalnum, text))


def folded(labels: Iterable[Label]) -> np.ndarray:
    """Strings as code points, each between two ends of line, and the last one more.

    Case, accents and punctuation are folded; numbers are as they are written, missing is empty.
    """
    items = list(labels)
    if set(map(type, items)) == {str}:
        texts = cast(list[str], items)
    else:
        texts = list(map(written, items))
    joined = "\n".join(["", *texts, ""])
    if joined.count("\n") > len(texts) + 1:
        joined = "\n".join(["", *(text.replace("\n", " ") for text in texts), ""])
    joined = joined.casefold()
    if not joined.isascii():
        parts = unicodedata.normalize("NFKD", joined)
        joined = _MARKS.sub(" ", "".join(c for c in parts if not unicodedata.combining(c)))
    kind, table = (np.uint8, _ASCII) if joined.isascii() else (np.uint32, None)
    text = joined.encode("ascii" if table is not None else "utf-32-le", "surrogatepass")
    points = np.frombuffer(text, kind)
    points = (table[points] if table is not None else points).astype(np.uint32)
    blank, end = points == _BLANK, points == _END
    needless = blank[1:] & (blank[:-1] | end[:-1])  # after another one, or at the beginning
    points = points[np.append(True, ~needless)]
    trailing = (points[:-1] == _BLANK) & (points[1:] == _END)
    return points[np.append(~trailing, True)]


def written(label: Label) -> str:
    """A label as text: numbers as they are written, nothing for missing and others."""
    is_text = label is not None and type(label) is not Bucket
    return str(label) if is_text else ""


def is_text(labels: Sequence[Label]) -> bool:
    """Whether a column is one of sentences: many strings, of five words on average."""
    if not is_spelled(labels):
        return False
    words = [len(v.split()) for v in labels if isinstance(v, str)]
    return sum(words) >= 5 * len(words)


def encoded(encoder: Any, labels: Iterable[Label]) -> np.ndarray:
    """What an encoder makes of labels as text, rows of length 1; missing has 0."""
    labels = list(labels)
    texts = list(map(written, labels))
    vectors = encoder.transform(texts) if hasattr(encoder, "transform") else encoder(texts)
    rows = np.asarray(vectors.toarray() if sparse.issparse(vectors) else vectors, dtype=np.float64)
    if rows.ndim != 2 or len(rows) != len(texts):
        raise ValueError(
            f"expected the encoder {encoder!r} to return {len(texts)} rows, got an array of shape "
            f"{rows.shape}"
        )
    rows[[not text for text in texts]] = 0
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def ngrams(labels: Sequence[Label]) -> Any:
    """Which buckets of n-grams occur in each string, as a sparse matrix.

    The ends of a string are part of its first and last n-grams.
    """
    points = folded(labels)
    end = points == _END
    wide = np.uint32 if len(labels) < 1 << (32 - BUCKET_BITS) else np.uint64  # sorted twice as fast
    row = np.cumsum(end, dtype=wide) - wide(1)
    pairs = points[:-1] * np.uint32(0x9E3779B1) + points[1:]
    triples = pairs[:-1] * np.uint32(0x9E3779B1) + points[2:]
    hashed = scrambled(np.concatenate([pairs, triples]))
    inside = np.append(~(end[:-1] & end[1:]), ~end[1:-1])
    owner = np.append(row[:-1], row[:-2])[inside]
    keys = np.sort((owner << wide(BUCKET_BITS)) | (hashed[inside] >> np.uint32(32 - BUCKET_BITS)))
    keys = keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys
    row, bucket = keys >> wide(BUCKET_BITS), (keys & wide(N_BUCKETS - 1)).astype(np.int32)
    starts = np.searchsorted(row, np.arange(len(labels) + 1, dtype=wide)).astype(np.int32)
    shape = len(labels), N_BUCKETS
    return sparse.csr_array((np.ones(len(row), np.int8), bucket, starts), shape=shape)


def buckets_row(buckets: Any) -> np.ndarray:
    """The row of each entry of a sparse matrix."""
    return np.repeat(np.arange(buckets.shape[0]), np.diff(buckets.indptr))


def scrambled(x: np.ndarray) -> np.ndarray:
    """32-bit numbers with their bits mixed well: how MurmurHash3 ends [Appleby 2011]."""
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    x = (x ^ (x >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return x ^ (x >> np.uint32(16))
