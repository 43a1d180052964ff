"""Estimator, TabularInput: what all estimators share."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator

from tabweave._compat import page_of_class, validate_parameter_constraints
from tabweave.io.store import Storable
from tabweave.updates import Stateful


class Estimator(Storable, Stateful, BaseEstimator):  # type: ignore[misc]
    """Base of every estimator: declared parameters, states that are published whole, one file.

    A subclass lists what each parameter may be in ``_parameter_constraints``, in scikit-learn's
    form; ``_validate_params`` checks them at the start of ``fit``. Methods that change what was
    learned (``fit``, ``partial_fit``, ``add``, ...) wait for each other, so no thread's rows are
    lost, and one that raises leaves the estimator as it was; all others see one state, see
    :mod:`tabweave.updates`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}
    save = Storable.save

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as those of every estimator of scikit-learn are set."""
        return super().set_params(**params)  # type: ignore[no-any-return]

    def _validate_params(self) -> None:
        """Check the parameters as they are declared."""
        given = self.get_params(deep=False)
        for name, value in given.items():
            allowed = self._parameter_constraints.get(name, [bool])
            if isinstance(value, bool) and not any(c in ("boolean", bool) for c in allowed):
                given[name] = str(value)  # for scikit-learn it is a number, and it is none
        validate_parameter_constraints(self._parameter_constraints, given, type(self).__name__)

    def _get_doc_link(self) -> str:
        """Return where scikit-learn's diagram of this estimator leads: its page on our site."""
        return page_of_class(type(self))


class TabularInput:
    """Tags of an estimator that takes categories, text and missing values; put it first."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = []
        return tags
