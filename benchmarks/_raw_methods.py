"""Who takes part on raw tables: our defaults, fed the table as it comes, and peers.

Peers that cannot read a raw table get what a careful user would make of it: numbers as they are,
columns of dates as days, everything else as strings.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

SHARE_OF_DATES = 0.95  # of the cells that must read as dates for peers to see days


# -- what peers see -------------------------------------------------------------------------------


def days(cells: pd.Series) -> pd.Series | None:
    """Return days since 1970 of a column of dates; None of any other column."""
    if pd.api.types.is_numeric_dtype(cells):
        return None
    texts = cells.astype(str).where(cells.notna())
    dated = texts.str.contains(r"\d{4}[-/]\d|\d/\d+/\d", regex=True, na=False)
    if dated.mean() < SHARE_OF_DATES * cells.notna().mean() or not dated.any():
        return None
    moments = pd.to_datetime(texts, errors="coerce", utc=True, format="mixed")
    if moments.notna().mean() < SHARE_OF_DATES * cells.notna().mean():
        return None
    return (moments - pd.Timestamp("1970-01-01", tz="UTC")) / pd.Timedelta(days=1)


def typed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return numbers and days as floats, all else as strings; gaps are NaN and None."""
    columns = {}
    for c in frame:
        cells = frame[c]
        as_days = days(cells)
        if as_days is not None:
            columns[c] = as_days.astype(float)
        elif pd.api.types.is_numeric_dtype(cells) and not pd.api.types.is_bool_dtype(cells):
            columns[c] = cells.astype(float)
        else:
            columns[c] = cells.astype(object).map(str).where(cells.notna(), None).astype(object)
    return pd.DataFrame(columns, index=frame.index)


def one_hot(frame: pd.DataFrame) -> np.ndarray:
    """Return one-hot categories (missing is one) beside standardised numbers, gaps flagged.

    A missing number is the mean.
    """
    parts = []
    for cells in typed(frame).items():
        column = cells[1]
        if column.dtype == float:
            gap, scale = column.isna().to_numpy(), column.std(ddof=0)
            centred = ((column - column.mean()) / (scale if scale > 0 else 1)).fillna(0)
            parts += [centred.to_numpy()[:, None], *([gap[:, None]] if gap.any() else [])]
        else:
            codes = pd.factorize(column.where(column.notna(), "?"))[0]
            parts.append(np.eye(codes.max() + 1)[codes])
    return np.hstack(parts).astype(float)


# -- distances ------------------------------------------------------------------------------------


def weave(frame: pd.DataFrame) -> np.ndarray:
    from tabweave import Weave

    return Weave().fit(frame).pairwise_distances(frame)


def of_one_hot(frame: pd.DataFrame) -> np.ndarray:
    return euclidean(one_hot(frame))


def gower(frame: pd.DataFrame) -> np.ndarray:
    """Gower (1971): range-scaled differences and mismatches; a gap is left out of the mean."""
    table = typed(frame)
    total = np.zeros((len(table), len(table)))
    compared = np.zeros_like(total)
    for _, column in table.items():
        present = column.notna().to_numpy()
        if column.dtype == float:
            cells = column.fillna(0).to_numpy()
            reach = column.max() - column.min()
            apart = np.abs(cells[:, None] - cells) / (reach if reach > 0 else 1)
        else:
            codes = pd.factorize(column)[0]
            apart = (codes[:, None] != codes).astype(float)
        both = present[:, None] & present
        total += apart * both
        compared += both
    return total / np.maximum(compared, 1)


def joined_text(frame: pd.DataFrame) -> np.ndarray:
    """Cosine distances of TF-IDF vectors of a row's cells, joined: triples of letters."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = [
        " ".join(str(cell) for cell in row if pd.notna(cell)) for row in frame.to_numpy(object)
    ]
    vectors = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3)).fit_transform(texts)
    return np.clip(1 - (vectors @ vectors.T).toarray(), 0, None)


def skrub(frame: pd.DataFrame) -> np.ndarray:
    """Distances of TableVectorizer's columns, standardised, gaps filled by the mean."""
    return euclidean(skrub_vectors(frame))


def skrub_vectors(frame: pd.DataFrame) -> np.ndarray:
    from sklearn.preprocessing import StandardScaler
    from skrub import TableVectorizer

    raw = np.asarray(TableVectorizer().fit_transform(frame), dtype=float)
    return np.nan_to_num(StandardScaler().fit_transform(raw))


def euclidean(vectors: np.ndarray) -> np.ndarray:
    from sklearn.metrics import pairwise_distances

    return pairwise_distances(vectors)


DISTANCES: dict[str, Callable[[pd.DataFrame], np.ndarray]] = {
    "Weave": weave,
    "one-hot": of_one_hot,
    "gower": gower,
    "TF-IDF": joined_text,
    "skrub": skrub,
}


# -- clusters -------------------------------------------------------------------------------------


def k_means(vectors: np.ndarray, k: int) -> np.ndarray:
    from sklearn.cluster import KMeans

    return KMeans(k, n_init=10, random_state=0).fit_predict(vectors)


def weave_clusters(frame: pd.DataFrame, k: int) -> np.ndarray:
    from tabweave import Weave

    return k_means(Weave().fit(frame).transform(frame), k)


def linked(distances: np.ndarray, k: int) -> np.ndarray:
    from sklearn.cluster import AgglomerativeClustering

    model = AgglomerativeClustering(k, metric="precomputed", linkage="average")
    return model.fit_predict(distances)


CLUSTERS: dict[str, Callable[[pd.DataFrame, int], np.ndarray]] = {
    "Weave": weave_clusters,
    "one-hot": lambda frame, k: k_means(one_hot(frame), k),
    "gower": lambda frame, k: linked(gower(frame), k),
    "skrub": lambda frame, k: k_means(skrub_vectors(frame), k),
}


# -- odd cells ------------------------------------------------------------------------------------


def odd_cells(frame: pd.DataFrame) -> np.ndarray:
    from tabweave import OutlierCells

    return -OutlierCells().fit(frame).score_samples(frame)


def isolation_forest(frame: pd.DataFrame) -> np.ndarray:
    from sklearn.ensemble import IsolationForest

    vectors = one_hot(frame)
    return -IsolationForest(random_state=0).fit(vectors).score_samples(vectors)


ODD: dict[str, Callable[[pd.DataFrame], np.ndarray]] = {
    "OutlierCells": odd_cells,
    "IsolationForest": isolation_forest,
}


# -- fills ----------------------------------------------------------------------------------------


def imputer(frame: pd.DataFrame) -> pd.DataFrame:
    from tabweave import Imputer

    return typed(Imputer(random_state=0).fit(frame).transform(frame))


def typical(frame: pd.DataFrame) -> pd.DataFrame:
    """Fill with the median, or the most frequent value."""
    table = typed(frame)
    fills = {
        c: table[c].median() if table[c].dtype == float else table[c].mode().iloc[0]
        for c in table
        if table[c].notna().any()
    }
    return table.fillna(fills)


def by_peer(fill: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[..., pd.DataFrame]:
    """Let a peer fill the columns that it can: strings that hardly repeat are left out."""

    def filled(frame: pd.DataFrame) -> pd.DataFrame:
        table = typed(frame)
        used = [c for c in table if table[c].notna().any() and not hardly_repeats(table[c])]
        out = typical(frame)
        out[used] = fill(table[used])
        return out

    return filled


def hardly_repeats(column: pd.Series) -> bool:
    """Tell whether more than half of a column's strings differ."""
    return column.dtype != float and column.nunique() > column.notna().sum() / 2


def neighbors_fill(table: pd.DataFrame) -> pd.DataFrame:
    from impute import nearest

    return nearest(table)


def forest_fill(table: pd.DataFrame) -> pd.DataFrame:
    from impute import forests

    return forests(table, rounds=2)


FILLS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "Imputer": imputer,
    "median, mode": typical,
    "KNNImputer": by_peer(neighbors_fill),
    "forests": by_peer(forest_fill),
}
