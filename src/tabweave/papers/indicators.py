"""Structure of a representation: clusters tight and far from each other, couplings that differ.

Also what the papers promise of a model, bounds of its error, and maps to look at.

Comes in: distances or points with their clusters; or counts and coupling matrices. Goes out: one
number each. Larger is better for `relative_distance` and `dunn`, smaller for `davies_bouldin` and
`sd_index`. `epsilon_gamma` gives a curve: how far a similarity separates the classes, for how many
objects; the higher one is the better. [Wang, She, Cao 2013, section 5.2; Zhu 2019, sections 3.5.1
and 7.4.3; Balcan, Blum and Srebro 2008, Definition 4]
"""

from collections.abc import Sequence
from inspect import signature
from typing import Any

import numpy as np

from tabweave.evaluate import encode, is_missing


def relative_distance(distances: Any, labels: Any) -> float:
    """RD: the average distance between clusters over the average distance within clusters.

    Both averages are over pairs of different objects.

    Parameters
    ----------
    distances, labels : array-like of shape (n_objects, n_objects) and (n_objects,)
        Symmetric distances, and the cluster of each object.

    Returns
    -------
    float
        Larger is better; infinite when the objects of every cluster coincide.

    References
    ----------
    Wang, She, Cao (2013), section 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.papers import relative_distance
    >>> x = np.array([0.0, 1.0, 10.0, 11.0])
    >>> relative_distance(abs(x[:, None] - x), [0, 0, 1, 1])
    10.0
    """
    within, between = _within_between(distances, labels)
    return _ratio(between.mean(), within.mean())


def dunn(distances: Any, labels: Any) -> float:
    """Dunn's index: the smallest distance between clusters over the largest within one.

    Parameters
    ----------
    distances, labels : array-like
        As in `relative_distance`.

    Returns
    -------
    float
        Larger is better; infinite when all objects of each cluster coincide.

    References
    ----------
    Dunn (1974); Wang, She, Cao (2013), section 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.papers import dunn
    >>> x = np.array([0.0, 1.0, 10.0, 11.0])
    >>> dunn(abs(x[:, None] - x), [0, 0, 1, 1])
    9.0
    """
    within, between = _within_between(distances, labels)
    return _ratio(between.min(), within.max())


def sd_index(distances: Any, labels: Any) -> float:
    """SD: the sum of distances between objects of the same cluster, each pair once.

    Not free of scale: compare representations only after bringing them to one scale.

    Parameters
    ----------
    distances, labels : array-like
        Symmetric distances of the objects, and their clusters.

    Returns
    -------
    float
        Smaller is better.

    References
    ----------
    Wang, She, Cao (2013), section 5.2 ("Sum-Distance").

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.papers import sd_index
    >>> x = np.array([0.0, 1.0, 10.0, 12.0])
    >>> sd_index(abs(x[:, None] - x), [0, 0, 1, 1])
    3.0
    """
    within, _ = _within_between(distances, labels)
    return float(within.sum())


def intra_coupling_heterogeneity(counts: Sequence[Any], *, published: bool = False) -> float:
    """Eqs. (7.25), (7.26): how unevenly the values of each attribute fall on the clusters.

    For a value with shares ``p_k`` over the ``n_c`` clusters the length ``x = ||p||`` is brought to
    [0, 1] by ``1 - (1 - x) / (1 - 1 / sqrt(n_c))``: 1 when the value occurs in a single cluster,
    0 when it occurs in all alike. Averaged over the values of an attribute, then over attributes.

    Parameters
    ----------
    counts : sequence of array-like, each of shape (n_values, n_clusters)
        Per attribute, how often each value occurs in each cluster.
    published : bool, default=False
        Sum over the values of an attribute, as Eq. (7.25) has it.

    Returns
    -------
    float
        Between 0 and 1; as published it grows with the number of values.

    Notes
    -----
    Erratum: Eq. (7.25) sums over values without dividing by their number, which contradicts the
    text ("1 when each value appears only in a ground-truth cluster"). The mean is meant.

    References
    ----------
    Zhu (2019), Eqs. (7.25), (7.26).

    Examples
    --------
    >>> from tabweave.papers import intra_coupling_heterogeneity
    >>> round(intra_coupling_heterogeneity([[[3, 0], [0, 5]], [[2, 2], [2, 2]]]), 6)
    0.5
    """
    heterogeneities = [_value_heterogeneity(table, a) for a, table in enumerate(counts)]
    per_attribute = [values.sum() if published else values.mean() for values in heterogeneities]
    if not per_attribute:
        raise ValueError("counts hold no attribute; pass one table per attribute")
    return float(np.mean(per_attribute))


def data_factors(X: Any, y: Any) -> dict[str, float]:
    """Section 3.3: describe a categorical table by the factors of Table 3.2.

    Parameters
    ----------
    X : array-like of shape (n_objects, n_attributes)
        The categories; missing is a separate category.
    y : array-like of shape (n_objects,)
        The classes.

    Returns
    -------
    dict
        ``n_o`` objects, ``n_a`` attributes, ``n_c`` classes, ``n_av`` and ``n_mv``, the mean and
        the largest number of values of an attribute, and ``r_CI``, the largest class over the
        smallest.

    References
    ----------
    Zhu (2019), section 3.3, Definition 3.5.

    Examples
    --------
    >>> from tabweave.papers import data_factors
    >>> data_factors([["a", "x"], ["b", "x"], ["c", "x"]], ["yes", "yes", "no"])
    {'n_o': 3, 'n_a': 2, 'n_c': 2, 'n_av': 2.0, 'n_mv': 3, 'r_CI': 2.0}
    """
    rows = np.asarray(X, dtype=object)
    if rows.ndim != 2 or not rows.size:
        raise ValueError(f"expected X of shape (n_objects, n_attributes), got {rows.shape}")
    sizes = [len({None if is_missing(v) else v for v in column}) for column in rows.T]
    classes = np.bincount(encode(y, "y")[1])
    if classes.sum() != len(rows):
        raise ValueError(f"expected {len(rows)} classes in y, one per object, got {classes.sum()}")
    return {
        "n_o": len(rows),
        "n_a": len(sizes),
        "n_c": len(classes),
        "n_av": float(np.mean(sizes)),
        "n_mv": max(sizes),
        "r_CI": float(classes.max() / classes.min()),
    }


def inter_coupling_heterogeneity(couplings: Sequence[Sequence[Any]]) -> float:
    """Eq. (7.27): how much the coupling matrices of the same attribute differ.

    Per attribute ``sqrt(sum_kl sum_ij (C_ij^k - C_ij^l)^2 / n_v^2)`` over all ordered pairs of its
    coupling matrices; averaged over attributes. 0 when all matrices of an attribute are the same.

    Parameters
    ----------
    couplings : sequence of sequences of array-like
        Per attribute its coupling matrices, all of shape (n_values, n_values).

    Returns
    -------
    float
        Not negative; grows with the number and the scale of the matrices.

    Notes
    -----
    Eq. (7.27) leaves the attribute z free; the mean over attributes is our reading.

    References
    ----------
    Zhu (2019), Eq. (7.27).

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.papers import inter_coupling_heterogeneity
    >>> round(inter_coupling_heterogeneity([[np.zeros((2, 2)), np.ones((2, 2))]]), 4)
    1.4142
    """
    per_attribute = []
    for a, matrices in enumerate(couplings):
        shapes = {np.shape(matrix) for matrix in matrices}
        if len(shapes) != 1 or len(shape := min(shapes)) != 2 or shape[0] != shape[1]:
            raise ValueError(
                f"attribute {a}: expected square matrices of one size, got {sorted(shapes)}"
            )
        C = np.stack([np.asarray(matrix, dtype=float) for matrix in matrices])
        # sum over k, l of (C_k - C_l)^2 is 2 n_m times the squared deviations from the mean
        differences = 2 * len(C) * np.sum((C - C.mean(axis=0)) ** 2)
        per_attribute.append(np.sqrt(differences) / C.shape[1])
    if not per_attribute:
        raise ValueError("couplings hold no attribute; pass a list of matrices per attribute")
    return float(np.mean(per_attribute))


def class_margins(similarity: Any, y: Any, *, include_self: bool = False) -> np.ndarray:
    """Mean similarity of each object to its own class, minus that to all other objects.

    Parameters
    ----------
    similarity : array-like of shape (n_objects, n_objects)
        Similarities; large is near. From distances use ``1 - d`` (Eq. (6.40)) or ``-d``.
    y : array-like of shape (n_objects,)
        Classes.
    include_self : bool, default=False
        Whether an object's similarity to itself counts in the mean over its class. The
        definition is about two independent objects, so by default it does not.

    Returns
    -------
    ndarray of shape (n_objects,)
        The margins; NaN for an object that is alone in its class.

    References
    ----------
    Zhu (2019), section 3.5.1.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.papers import class_margins
    >>> x = np.array([0.0, 0.1, 0.9, 1.0])
    >>> class_margins(1 - abs(x[:, None] - x), ["a", "a", "b", "b"])
    array([0.85, 0.75, 0.75, 0.85])
    """
    similarity, codes = _checked(similarity, y)
    sizes = np.bincount(codes)
    to_class = similarity @ np.eye(sizes.size)[codes]  # sum over the members of every class
    to_own_class = to_class[np.arange(codes.size), codes]
    other = to_class.sum(axis=1) - to_own_class
    peers = sizes[codes].astype(float)
    if not include_self:
        to_own_class = to_own_class - np.diagonal(similarity)
        peers -= 1
    own_mean = np.divide(to_own_class, peers, out=np.full(codes.size, np.nan), where=peers > 0)
    return own_mean - other / (codes.size - sizes[codes])


def epsilon_gamma(
    similarity: Any,
    y: Any,
    *,
    epsilon: Any = None,
    include_self: bool = False,
    nonnegative: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the (ε, γ)-curve of a similarity.

    A similarity s is strongly (ε, γ)-good when at least a share 1 - ε of the objects o satisfies
    ``E[s(o, o') | c(o) = c(o')] >= E[s(o, o') | c(o) != c(o')] + γ``. For each ε the curve holds
    the largest such γ: with the margins of `class_margins` in increasing order, it is the first
    margin after the ``floor(ε n)`` smallest are given up.

    Parameters
    ----------
    similarity : array-like of shape (n_objects, n_objects)
        Similarities; large is near. From distances use ``1 - d`` (Eq. (6.40)) or ``-d``.
    y : array-like of shape (n_objects,)
        Classes. An object alone in its class has no margin and is left out.
    epsilon : array-like, optional
        Shares in [0, 1) at which to give the curve; by default every step, ``i / n``.
    include_self : bool, default=False
        Whether an object is a member of its own class, see `class_margins`.
    nonnegative : bool, default=False
        Keep only the part with γ >= 0, as the figures of the thesis do.

    Returns
    -------
    epsilon : ndarray
        Shares of objects given up.
    gamma : ndarray
        Largest margin that all others reach; never decreases along increasing ``epsilon``.

    References
    ----------
    Zhu (2019), section 3.5.1 and Figures 6.4, 7.8; Balcan, Blum and Srebro (2008), Definition 4.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.papers import epsilon_gamma
    >>> x = np.array([0.0, 0.1, 0.9, 1.0])
    >>> epsilon, gamma = epsilon_gamma(1 - abs(x[:, None] - x), ["a", "a", "b", "b"])
    >>> epsilon
    array([0. , 0.25, 0.5 , 0.75])
    >>> gamma.round(2)
    array([0.75, 0.75, 0.85, 0.85])
    """
    margins = class_margins(similarity, y, include_self=include_self)
    margins = np.sort(margins[~np.isnan(margins)])
    n = margins.size
    if n == 0:
        raise ValueError("every object is alone in its class; the margin needs two per class")
    if epsilon is None:
        given_up = np.arange(n)
        shares = given_up / n
    else:
        shares = np.asarray(epsilon, dtype=float)
        if shares.ndim != 1 or not ((shares >= 0) & (shares < 1)).all():
            raise ValueError(f"expected epsilon to be a list of shares in [0, 1), got {epsilon!r}")
        given_up = np.floor(shares * n + 1e-9).astype(int)  # 0.29 * 100 is 28.999...
    gamma = margins[given_up]
    is_shown = gamma >= 0 if nonnegative else slice(None)
    return shares[is_shown], gamma[is_shown]


# -- bounds of errors ---------------------------------------------------------------------------


def helic_bound(n_rows: int, n_kernels: int, sparsity: float, *, delta: float = 0.05) -> float:
    """How far HELIC's expected error can be above that on the rows it has seen.

    Eq. (6.33), with a probability of ``1 - delta``.

    Parameters
    ----------
    n_rows, n_kernels : int
        Rows of fit, and kernels of all columns.
    sparsity : float
        λ of Eq. (6.19).
    delta : float, default=0.05
        The probability that the bound fails.

    Notes
    -----
    The printed λ is 1 / n_kernels: at 1,000 rows, 20 columns and 14 kernels for each of three
    spaces the bound is 102, where the hinge loss of a useful model is below 1. It compares
    settings, it does not vouch for one.

    References
    ----------
    Zhu (2019), Theorem 6.2.

    Examples
    --------
    >>> from tabweave.papers import helic_bound
    >>> round(helic_bound(10**8, 42, 1.0), 3)
    0.015
    """
    root, reach = np.sqrt(n_rows), 1 / np.sqrt(sparsity)
    complexity = (8 + 16 * np.sqrt(np.e * np.log(n_rows * n_kernels))) * reach / root
    luck = 2 * (1 + reach) * np.sqrt(2 * np.log(1 / delta)) / root
    return float(luck + complexity + 12 / root)


def gbc_bound(
    excess: tuple[float, float],
    *,
    best: float = 0.0,
    bayes: float = 0.0,
    n_labeled: float = np.inf,
    delta: float = 0.05,
    complexity: float = 0.0,
) -> float:
    """The loss that GBC's two sources together do not exceed, from how far each is from the best.

    Eq. (3.12), or, with ``n_labeled``, Eq. (3.15), with a probability of ``1 - delta``.

    Parameters
    ----------
    excess : (float, float)
        ε₁ and ε₂: by how much the loss of each source alone is above the best possible.
    best, bayes : float, default=0.0
        The loss of the best predictor, and ε_bayes.
    n_labeled : float, optional
        Number of labels; by default no term of their number is added.
    delta : float, default=0.05
        The probability that the bound fails; for ``n_labeled`` only.
    complexity : float, default=0.0
        ``C_Lip R̂`` of Eq. (3.15), twice of which is added.

    Notes
    -----
    *Erratum.* Weights ``ε₂ / (ε₁ + ε₂)`` and ``ε₁ / (ε₁ + ε₂)`` give an excess of ``2 ε₁ ε₂ / (ε₁ +
    ε₂)``; (3.12) has its root, which is the larger one only up to 1. Above, the bound fails.

    References
    ----------
    Shi (2013), Theorems 1 and 2.

    Examples
    --------
    >>> from tabweave.papers import gbc_bound
    >>> round(gbc_bound((0.1, 0.1)), 3), round(gbc_bound((0.1, 0.1), n_labeled=100), 3)
    (0.316, 0.924)
    """
    first, second = excess
    joint = 2 * first * second / (first + second) if first + second else 0.0
    luck = (2 + 3 * np.sqrt(np.log(2 / delta) / 2)) / np.sqrt(n_labeled)
    return float(best + bayes + np.sqrt(joint) + luck + 2 * complexity)


# -- maps ---------------------------------------------------------------------------------------


def distance_map(
    model: Any, X: Any, y: Any = None, *, layout: str = "mds", random_state: Any = None
) -> np.ndarray:
    """Where each row lies in two dimensions, by the distances of a model that is fitted to them.

    ``distance_map(OneHot(), rows, layout="tsne")`` is the 1-of-k map that those of
    :class:`~tabweave.DRDH` are compared with. All pairs of rows are held at once; draw it with
    :func:`tabweave.plots.scatter_map`.

    Parameters
    ----------
    model : embedder
        Fitted here; what its ``pairwise_distances`` are is laid out.
    X, y : table and array-like
        The rows, and their classes where the model learns from such.
    layout : {"mds", "tsne"}, default="mds"
        Multidimensional scaling, as in Figure 4.3 of the thesis, or t-SNE.
    random_state : int, RandomState or None, default=None
        Seed of the layout.

    Returns
    -------
    ndarray of shape (n_rows, 2)
        The map.

    References
    ----------
    Zhu (2019), sections 3.5.1 and 4.4.2; Huang and Hsu, section 4.

    Examples
    --------
    >>> from tabweave import CKML
    >>> from tabweave.papers import distance_map
    >>> rows = {"color": ["red", "red", "blue"] * 4, "size": ["S", "S", "L"] * 4}
    >>> points = distance_map(CKML(), rows, random_state=0)
    >>> bool(abs(points[0] - points[1]).max() < 1e-6 < abs(points[0] - points[2]).max())
    True
    """
    from sklearn.manifold import MDS, TSNE

    if layout not in ("mds", "tsne"):
        raise ValueError(f'expected layout "mds" or "tsne", got {layout!r}')
    distances = model.fit(X, y).pairwise_distances(X)
    distances = (distances + distances.T) / 2
    np.fill_diagonal(distances, 0.0)  # a published measure may differ from itself
    if layout == "tsne":
        perplexity = min(30.0, (len(distances) - 1) / 3)
        tsne = TSNE(
            metric="precomputed", init="random", perplexity=perplexity, random_state=random_state
        )
        return tsne.fit_transform(distances)
    is_named = "metric_mds" in signature(MDS).parameters  # scikit-learn from 1.8 on
    names = {"metric": "precomputed", "init": "classical_mds"}
    options = names if is_named else {"dissimilarity": "precomputed", "normalized_stress": "auto"}
    return MDS(2, n_init=1 if is_named else 4, random_state=random_state, **options).fit_transform(
        distances
    )


def _checked(similarity: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    values, codes = encode(y, "y")
    similarity = np.asarray(similarity, dtype=float)
    if similarity.shape != (codes.size, codes.size):
        raise ValueError(
            f"similarity: expected shape {(codes.size, codes.size)}, got {similarity.shape}"
        )
    if not np.isfinite(similarity).all():
        raise ValueError("similarity holds NaN or infinity; fill or drop those objects")
    if len(values) < 2:
        raise ValueError(f"expected at least two classes in y, got the single {values[0]!r}")
    return similarity, codes


def _value_heterogeneity(table: Any, attribute: int) -> np.ndarray:
    """Eq. (7.26) for every value of one attribute; values that never occur are left out."""
    table = np.asarray(table, dtype=float)
    if table.ndim != 2 or table.shape[1] < 2 or not (table >= 0).all() or not table.any():
        raise ValueError(
            f"counts of attribute {attribute}: expected values × at least 2 clusters, not negative "
            f"and not all zero, got shape {table.shape}"
        )
    table = table[table.sum(axis=1) > 0]
    length = np.linalg.norm(table / table.sum(axis=1, keepdims=True), axis=1)
    return 1 - (1 - length) / (1 - 1 / np.sqrt(table.shape[1]))


def _within_between(distances: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """Distances of the pairs within a cluster and of those between two, each pair once."""
    codes = _clusters(labels)
    distances = np.asarray(distances, dtype=float)
    if distances.shape != (codes.size, codes.size):
        raise ValueError(
            f"distances: expected shape {(codes.size, codes.size)}, got {distances.shape}"
        )
    if np.isnan(distances).any() or not np.allclose(distances, distances.T):
        raise ValueError("expected symmetric distances without NaN")
    rows, columns = np.triu_indices(codes.size, 1)
    pairs, same = distances[rows, columns], codes[rows] == codes[columns]
    if not same.any():
        raise ValueError("every cluster holds a single object; there is no distance within one")
    return pairs[same], pairs[~same]


def _clusters(labels: Any) -> np.ndarray:
    values, codes = encode(labels, "labels")
    if len(values) < 2:
        raise ValueError(f"expected at least two clusters, got the single {values[0]!r}")
    return codes


def _ratio(between: float, within: float) -> float:
    if within > 0:
        return float(between / within)
    if between > 0:
        return float("inf")
    raise ValueError("distances within and between clusters are all 0; there is no structure")
