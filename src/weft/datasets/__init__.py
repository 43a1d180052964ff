"""Data to try things on: classic sets written from their rules, drawn tables, and files.

Generators need no files and no network; `load` reads a directory of compressed CSV files.
"""

from weft.datasets._dataset import Dataset
from weft.datasets.classic import (
    balance,
    car,
    krkopt,
    monks,
    nursery,
    three_of_9,
    tictactoe,
    titanic,
)
from weft.datasets.drawn import led24, mofn_3_7_10, waveform
from weft.datasets.files import available, load
from weft.datasets.synthetic import make_codes, make_coupled

__all__ = [
    "Dataset",
    "available",
    "balance",
    "car",
    "krkopt",
    "led24",
    "load",
    "make_codes",
    "make_coupled",
    "mofn_3_7_10",
    "monks",
    "nursery",
    "three_of_9",
    "tictactoe",
    "titanic",
    "waveform",
]
