"""The laboratory: what only reproduces papers, in one place above everything else.

The algorithms as published under the names that they have in ``tabweave``, the peers they were
compared with, their protocols and indicators, and the recommender study. The notes of an algorithm
name the equations and what is wrong with them; ``docs/errata.md`` has all of that in one table,
each line with a test.
"""

from tabweave.io.register import lazy

_HOMES = {
    "CCDSDC": "clusterers",
    "CCTED": "clusterers",
    "CKML": "categories",
    "DCD": "clusterers",
    "HELIC": "categories",
    "PROTOCOLS": "protocol",
    "UNICORN": "categories",
    "UNTIE": "categories",
    "CoCA": "sources",
    "GBCClassifier": "sources",
    "GBCRegressor": "sources",
    "HeMap": "sources",
    "KernelKMeans": "clusterers",
    "MatrixFactorization": "recommend",
    "NonBEND": "categories",
    "Protocol": "protocol",
    "ValueMetric": "categories",
    "class_margins": "indicators",
    "clustering_divergence": "sources",
    "data_factors": "indicators",
    "distance_map": "indicators",
    "dunn": "indicators",
    "epsilon_gamma": "indicators",
    "find_groups": "recommend",
    "gbc_bound": "indicators",
    "helic_bound": "indicators",
    "inter_coupling_heterogeneity": "indicators",
    "intra_coupling_heterogeneity": "indicators",
    "load_movielens": "recommend",
    "make_ratings": "recommend",
    "monte_carlo_splits": "protocol",
    "relative_distance": "indicators",
    "sd_index": "indicators",
    "stream_windows": "protocol",
}
__all__ = [name for name in _HOMES if name != "PROTOCOLS"]
__getattr__ = lazy(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
