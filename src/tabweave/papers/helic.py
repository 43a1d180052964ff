"""HELIC as published [Zhu 2019, ch. 6]: Adam on Eq. (6.19), a weight for each kernel column."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np

from tabweave._compat import Interval, StrOptions
from tabweave.base import ValueEmbedder
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import named_weights
from tabweave.embed import helic
from tabweave.embed.helic import RowPairs, ValuePairs
from tabweave.io.register import storable
from tabweave.papers.untie import Adam, kernel_columns
from tabweave.space.value_tables import ValueTables


@storable
class HELIC(helic.HELIC):
    """Embed categorical rows by raw kernel columns whose weights are learned from classes.

    Parameters
    ----------
    variant : {"helic", "linear"}, default="helic"
        ``"linear"`` sees couplings through linear kernels only.
    n_pairs : int, default=20000
        Number of pairs of rows to learn from; all pairs of distinct rows if they are no more.
    max_iter : int, default=1000
        Most steps of Adam.
    random_state : int, RandomState or None, default=None
        Seed of the sample of pairs and of the batches.
    schema, unknown, dtype
        As in :class:`~tabweave.OneHot`.

    Attributes
    ----------
    weights_ : dict of str to dict
        For each column, the weight of each ``space/kernel``: the mean over the kernel's columns.
    threshold_ : float
        The squared distance b that divides pairs of one class from others.
    objective_ : list of float
        The objective over all pairs, every 50 steps.
    n_iter_ : int
        Number of looks at the objective after the first, at least 1.
    pairs_ : RowPairs
        The pairs learned from: values of both rows, relation and weight.
    landmarks_ : dict
        Empty: a column with many values is an error.
    tables_ : ValueTables
        The representation, Eq. (6.18).
    counts_, blocks_, schema_
        As in :class:`~tabweave.OneHot`.

    Notes
    -----
    *Errata.* λ‖ω‖₁ in (6.19) pulls all weights to 0, whatever the kernels' scales: raw polynomial
    kernels of the inter space are orders of magnitude larger than Gaussians and own the distance,
    and 1000 steps of 10⁻³ move a weight by 1 at most. (6.14) prints ``k_p,ij = K_p,i`` for the
    difference ``K_p,i - K_p,j``; (6.9) calls the attribute-class space inter-attribute.
    Adam starts from ω = 1 and from b at the mean distance, which the thesis does not say.

    Examples
    --------
    >>> from tabweave import papers
    >>> from tabweave.datasets import monks
    >>> data = monks(3)
    >>> model = papers.HELIC("linear", max_iter=101, random_state=0).fit(data.X, data.y)
    >>> len(model.objective_)
    3
    """

    _missing_is_value: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ValueEmbedder._parameter_constraints,
        "variant": [StrOptions({"helic", "linear"})],
        "n_pairs": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        variant: Literal["helic", "linear"] = "helic",
        *,
        n_pairs: int = 20_000,
        max_iter: int = 1000,
        random_state: Any = None,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        ValueEmbedder.__init__(self, schema=schema, unknown=unknown, dtype=dtype)
        self.variant = variant
        self.n_pairs = n_pairs
        self.max_iter = max_iter
        self.random_state = random_state

    def _weighted(self, counts: Counts) -> ValueTables:
        kernels, columns = self._kernels(), range(len(counts.names))
        stacks = [kernel_columns(counts, a, kernels, with_classes=True) for a in columns]
        names, features = [s.names for s in stacks], [s.stack for s in stacks]
        weights, self.threshold_, self.objective_ = descend(
            features,
            self.pairs_,
            sparsity=1 / sum(map(len, names)),
            max_iter=int(self.max_iter),
            seed=self._row_digest.seed,
        )
        means = [w.reshape(len(n), -1).mean(axis=1) for w, n in zip(weights, names, strict=True)]
        self.weights_ = named_weights(counts, names, means)
        rows = [np.sqrt(w) * f for f, w in zip(features, weights, strict=True)]  # Eq. (6.18)
        return ValueTables.from_features(rows, counts)


def hinge(
    distances: np.ndarray, b: float, omega: np.ndarray, pairs: RowPairs, sparsity: float
) -> float:
    """Eq. (6.19): ``Σ p_ij [1 + r_ij (d_ij - b)]₊ + λ‖ω‖₁``, over the sample of pairs."""
    slack = np.maximum(1 + pairs.relation * (distances - b), 0)
    return float(pairs.weight @ slack + sparsity * omega.sum())


def descend(
    features: Sequence[np.ndarray],
    pairs: RowPairs,
    sparsity: float,
    max_iter: int,
    seed: int,
    *,
    batch_size: int = 20,
    check_interval: int = 50,
    patience: int = 3,
) -> tuple[list[np.ndarray], float, list[float]]:
    """Section 6.4.1: Adam on Eq. (6.19), steps of 10⁻³, batches of 20 pairs, from ω = 1.

    Stops early when the objective over all pairs of the sample, looked at every 50 steps, has not
    fallen three times in a row; the best weights seen are returned. Batches are drawn by the
    pairs' weights, so that both relations come up equally often.
    """
    rng = np.random.default_rng(seed)
    point = np.ones(sum(f.shape[1] for f in features) + 1)
    columns = [ValuePairs.of(pairs, a, len(f)) for a, f in enumerate(features)]
    point[-1] = pairs.weight @ _distances(features, columns, point[:-1])
    optimizer = Adam(lower=np.append(np.zeros(len(point) - 1), -np.inf))
    best, trace = point, []
    for step in range(max_iter if pairs.weight.any() else 0):
        if step % check_interval == 0:
            omega, b = point[:-1], float(point[-1])
            trace.append(hinge(_distances(features, columns, omega), b, omega, pairs, sparsity))
            if trace[-1] <= min(trace):
                best = point
            if len(trace) - 1 - int(np.argmin(trace)) >= patience:
                break
        batch = rng.choice(len(pairs.weight), batch_size, p=pairs.weight)
        point = optimizer.step(point, batch_gradient(features, pairs, batch, point, sparsity))
    return _split(best[:-1], features), float(best[-1]), trace


def batch_gradient(
    features: Sequence[np.ndarray],
    pairs: RowPairs,
    batch: np.ndarray,
    point: np.ndarray,
    sparsity: float,
) -> np.ndarray:
    """Gradient of Eq. (6.19) in (ω, b) over a batch of pairs."""
    squares = np.hstack(
        [(f[pairs.left[batch, a]] - f[pairs.right[batch, a]]) ** 2 for a, f in enumerate(features)]
    )
    relation = pairs.relation[batch]
    active = 1 + relation * (squares @ point[:-1] - point[-1]) > 0
    residual = relation * active / len(batch)
    return np.append(residual @ squares + sparsity, -residual.sum())


def _distances(
    features: Sequence[np.ndarray], columns: Sequence[ValuePairs], omega: np.ndarray
) -> np.ndarray:
    """Squared distances of all pairs of a sample, by Gram matrices of values."""
    out = np.zeros(columns[0].met.shape[0])
    for f, c, w in zip(features, columns, _split(omega, features), strict=True):
        gram = (f * w) @ f.T
        norms = np.diagonal(gram)
        out += c.met @ (norms[c.first] + norms[c.second] - 2 * gram[c.first, c.second])
    return out


def _split(omega: np.ndarray, features: Sequence[np.ndarray]) -> list[np.ndarray]:
    return np.split(omega, np.cumsum([f.shape[1] for f in features])[:-1])
