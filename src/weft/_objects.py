"""Objects taken apart and put together again: a state of named parts, for files."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

from sklearn.base import BaseEstimator

# Attributes that are made from the others: search trees, compiled and closed.
_REGROWN = {("sklearn.neighbors._kd_tree", "_tree"), ("sklearn.neighbors._ball_tree", "_tree")}


def state_of(value: Any) -> dict[str, Any]:
    """Return what makes up an object: the fields of a record, else its attributes."""
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if hasattr(value, "_asdict"):
        return value._asdict()
    own = getattr(type(value), "_weft_state", None)  # of classes that leave out what they derive
    if own is not None:
        return own(value)
    return {k: v for k, v in vars(value).items() if (type(v).__module__, k) not in _REGROWN}


def restored(cls: Any, state: dict[str, Any]) -> Any:
    """Return an object of a class with this state; a state it cannot have is an error."""
    for name in state:
        if not name.isidentifier() or name.startswith("__") or callable(getattr(cls, name, None)):
            raise ValueError(f"{cls.__name__} has no attribute {name!r} to be set")
    if dataclasses.is_dataclass(cls):
        return _restored_data(cls, state)
    if issubclass(cls, tuple):
        return cls(**state)
    if issubclass(cls, BaseEstimator):
        # Parameters that the class has got since the file was written keep their defaults.
        parameters = set(cls._get_param_names())
        out = cls(**{name: value for name, value in state.items() if name in parameters})
        vars(out).update((k, v) for k, v in state.items() if k not in parameters)
        if "_fit_method" in state:
            _regrow(out)
        return out
    out = cls.__new__(cls)
    vars(out).update(state)
    return out


def _regrow(model: Any) -> None:
    """Give a nearest-neighbour model of scikit-learn its search tree again."""
    from sklearn.neighbors import BallTree, KDTree

    tree = {"kd_tree": KDTree, "ball_tree": BallTree}.get(model._fit_method)
    if tree is not None:
        how = model.effective_metric_params_
        rows, size = model._fit_X, model.leaf_size
        model._tree = tree(rows, size, metric=model.effective_metric_, **how)


def _restored_data(cls: Any, state: dict[str, Any]) -> Any:
    out = cls.__new__(cls)
    for field in dataclasses.fields(cls):
        if field.name in state:
            value = state.pop(field.name)
        elif field.default is not dataclasses.MISSING:
            value = field.default
        elif field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        else:
            raise ValueError(f"{cls.__name__} lacks {field.name!r}")
        object.__setattr__(out, field.name, value)
    if state:
        raise ValueError(f"{cls.__name__} has no field {next(iter(state))!r}")
    if hasattr(out, "__post_init__"):
        copy.copy(out).__post_init__()  # what it refuses is refused here; what is shared stays so
    return out
