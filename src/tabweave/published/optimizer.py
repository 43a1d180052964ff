"""Adam [Kingma and Ba 2015], the optimizer of all objectives as published: steps of 10⁻³."""

from __future__ import annotations

import numpy as np

RATE = 1e-3
MEAN, SQUARE = 0.9, 0.999  # how long the moments of the gradient remember
EPSILON = 1e-8


class Adam:
    """The moments of the gradients so far, and the step that they ask for.

    Parameters
    ----------
    lower : float or ndarray, default=0.0
        The least that each entry may be: weights stay at 0 or above, ``-inf`` leaves one free.

    Examples
    --------
    >>> optimizer, point = Adam(), np.ones(2)
    >>> for _ in range(10):
    ...     point = optimizer.step(point, 2 * point)
    >>> point.round(2)
    array([0.99, 0.99])
    """

    def __init__(self, lower: float | np.ndarray = 0.0) -> None:
        self.lower = lower
        self.n_steps = 0
        self._mean: np.ndarray | float = 0.0
        self._square: np.ndarray | float = 0.0

    def step(self, point: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return the next point."""
        self.n_steps += 1
        self._mean = MEAN * self._mean + (1 - MEAN) * gradient
        self._square = SQUARE * self._square + (1 - SQUARE) * gradient**2
        mean = self._mean / (1 - MEAN**self.n_steps)
        size = np.sqrt(self._square / (1 - SQUARE**self.n_steps)) + EPSILON
        return np.maximum(point - RATE * (mean / size), self.lower)
