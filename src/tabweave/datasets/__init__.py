"""Example data: classic sets generated from their rules, synthetic tables, and files.

Generators need no files and no network; `load` reads a directory of compressed CSV files.
"""

from tabweave.datasets.dataset import Dataset
from tabweave.datasets.files import available, load
from tabweave.datasets.generated import (
    balance,
    car,
    krkopt,
    led24,
    make_codes,
    make_coupled,
    mofn_3_7_10,
    monks,
    nursery,
    three_of_9,
    tictactoe,
    titanic,
    waveform,
)

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
