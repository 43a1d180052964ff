"""Sparse codes for categories and sets: TF-IDF terms, pursuits, K-SVD [Menon et al. 2013]."""

from weft.sparse.ksvd import KSVD
from weft.sparse.pursuit import batch_omp, omp
from weft.sparse.tfidf import SetTfidf

__all__ = ["KSVD", "SetTfidf", "batch_omp", "omp"]
