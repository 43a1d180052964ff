"""The (ε, γ)-curve: how far a similarity separates the classes, for how many objects.

Comes in: a square matrix of similarities and the classes. Goes out: the curve of largest margins
γ that all but a share ε of the objects reach. A better representation has the higher curve.
[Zhu 2019, section 3.5.1; Balcan, Blum and Srebro 2008, Definition 4]
"""

from typing import Any

import numpy as np

from tabweave.evaluate.scores import encode


def class_margins(similarity: Any, y: Any, *, include_self: bool = False) -> np.ndarray:
    """Mean similarity of each object to its own class, less that to all other objects.

    Parameters
    ----------
    similarity : array-like of shape (n_objects, n_objects)
        Similarities; large is near. From distances use ``1 - d`` (Eq. (6.40)) or ``-d``.
    y : array-like of shape (n_objects,)
        Classes.
    include_self : bool
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
    >>> from tabweave.evaluate import class_margins
    >>> x = np.array([0.0, 0.1, 0.9, 1.0])
    >>> class_margins(1 - abs(x[:, None] - x), ["a", "a", "b", "b"])
    array([0.85, 0.75, 0.75, 0.85])
    """
    similarity, codes = _checked(similarity, y)
    sizes = np.bincount(codes)
    to_class = similarity @ np.eye(sizes.size)[codes]  # sum over the members of every class
    own = to_class[np.arange(codes.size), codes]
    other = to_class.sum(axis=1) - own
    peers = sizes[codes].astype(float)
    if not include_self:
        own = own - np.diagonal(similarity)
        peers -= 1
    own_mean = np.divide(own, peers, out=np.full(codes.size, np.nan), where=peers > 0)
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
    include_self : bool
        Whether an object is a member of its own class, see `class_margins`.
    nonnegative : bool
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
    >>> from tabweave.evaluate import epsilon_gamma
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
    shown = gamma >= 0 if nonnegative else slice(None)
    return shares[shown], gamma[shown]


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
