"""OneHotAutoencoder: one-hot rows squeezed through a small network, the deep baseline.

The thesis compares with it as "AE": three fully connected layers of 10 nodes that learn to give
back the one-hot row they are given; the middle layer is the representation [Zhu 2019, 5.4.1].
Unlike the rest of tabweave it needs the rows again and again: it learns from rows, not from counts,
and has no value table, so distances are no sums over columns and nothing adds up.
"""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import Interval, Options, StrOptions
from tabweave.base import Estimator, TabularInput, ValueEmbedder
from tabweave.columns.table import remember_names
from tabweave.embed.onehot import OneHot
from tabweave.embed.register import embedder

TOLERANCE = 1e-7  # One-hot rows lose little: at scikit-learn's 1e-4 learning has just begun.
_ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "logistic": expit,
    "identity": np.asarray,
}


@embedder(
    "autoencoder",
    "one-hot through a small autoencoder; a baseline",
    "Zhu 2019, section 5.4.1",
    offered="python",
    page="baselines",
)
class OneHotAutoencoder(TabularInput, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Embed rows by the middle layer of an autoencoder of their one-hot vectors. A baseline.

    Not a value embedder: there are no counts, no ``partial_fit``, no ``explain``; the one-hot rows
    (n × V numbers of 4 bytes) are held in memory and passed over up to ``max_iter`` times.

    Parameters
    ----------
    width : int, default=10
        Number of nodes in each of the three hidden layers.
    activation : {"relu", "tanh", "logistic", "identity"}, default="tanh"
        The activation function.
    max_iter : int, default=5000
        Largest number of passes over the rows; training stops earlier if ten passes in a row have
        not lowered the loss by 1e-7.
    schema, unknown, dtype
        As in :class:`~tabweave.OneHot`.
    random_state : int, RandomState or None, default=None
        Where the network starts and how rows are shuffled.

    Attributes
    ----------
    network_ : MLPRegressor
        The network.
    onehot_ : OneHot
        The encoder in front of it.
    loss_ : float
        Half the mean squared error of the rows given back.
    n_iter_ : int
        Number of passes over the rows.
    converged_ : bool
        Whether learning came to rest before ``max_iter``.

    Examples
    --------
    >>> from tabweave.embed.autoencoder import OneHotAutoencoder
    >>> from tabweave.datasets import led24
    >>> digits = led24(200, random_state=0)
    >>> encoder = OneHotAutoencoder(max_iter=20, random_state=0).fit(digits.X)
    >>> encoder.transform(digits.X).shape
    (200, 10)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ValueEmbedder._parameter_constraints,
        "dtype": [Options(type, {np.float32, np.float64}), StrOptions({"float32", "float64"})],
        "width": [Interval(Integral, 1, None, closed="left")],
        "activation": [StrOptions(set(_ACTIVATIONS))],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        width: int = 10,
        *,
        activation: str = "tanh",
        max_iter: int = 5000,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
        random_state: Any = None,
    ) -> None:
        self.width = width
        self.activation = activation
        self.max_iter = max_iter
        self.schema = schema
        self.unknown = unknown
        self.dtype = dtype
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train the autoencoder to reconstruct the one-hot vectors of rows.

        Parameters
        ----------
        X : frame, array, mapping of columns or list of dicts
            The rows; every column is read as categories unless ``schema`` says otherwise.
        y : ignored
            Here for scikit-learn's pipelines.
        """
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPRegressor

        self._validate_params()
        encoder = OneHot(schema=self.schema, unknown=self.unknown, dtype="float32").fit(X)
        rows = encoder.transform(X)
        network = MLPRegressor(
            hidden_layer_sizes=(self.width,) * 3,
            activation=self.activation,
            max_iter=self.max_iter,
            tol=TOLERANCE,
            random_state=self.random_state,
        )
        with warnings.catch_warnings():
            # Said in converged_: a baseline cut short is no reason to alarm.
            warnings.simplefilter("ignore", ConvergenceWarning)
            network.fit(rows, rows[:, 0] if rows.shape[1] == 1 else rows)
        self.onehot_, self.network_ = encoder, network
        self.loss_, self.n_iter_ = float(network.loss_), int(network.n_iter_)
        self.converged_ = self.n_iter_ < self.max_iter
        remember_names(self, encoder.schema_)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the middle layer's output for each row."""
        check_is_fitted(self, "network_")
        activate = _ACTIVATIONS[self.network_.activation]
        hidden = self.onehot_.transform(X)
        layers = list(zip(self.network_.coefs_, self.network_.intercepts_, strict=True))
        for weights, bias in layers[:2]:
            hidden = activate(hidden @ weights.astype(np.float64) + bias)
        return hidden.astype(self.dtype, copy=False)

    @property
    def _n_features_out(self) -> int:
        return int(self.width)
