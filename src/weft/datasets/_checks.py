"""Small argument checks shared by the generators: sizes, fractions, sources of randomness."""

from __future__ import annotations

import numbers
from typing import TypeAlias

import numpy as np

RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None


def as_generator(random_state: RandomState) -> np.random.Generator:
    """One kind of generator from whatever the caller has; the same seed gives the same one."""
    if isinstance(random_state, np.random.RandomState):
        # Drawing a seed advances the caller's stream, as any other use of it would.
        return np.random.default_rng(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None or isinstance(random_state, numbers.Integral):
        return np.random.default_rng(None if random_state is None else int(random_state))
    raise TypeError(
        f"random_state={random_state!r}: pass an int, a numpy Generator or RandomState, or None."
    )


def check_count(name: str, value: int, minimum: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name}={value!r}: pass an integer of at least {minimum}.")
    if value < minimum:
        raise ValueError(f"{name}={value}: must be at least {minimum}.")
    return int(value)


def check_fraction(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}={value!r}: pass a number between 0 and 1.")
    if not 0.0 <= value <= 1.0:  # also refuses NaN
        raise ValueError(f"{name}={value}: must lie between 0 and 1.")
    return float(value)
