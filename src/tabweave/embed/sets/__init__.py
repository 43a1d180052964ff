"""Sparse codes for categories and sets: TF-IDF terms, pursuits, K-SVD [Menon et al. 2013]."""

from tabweave.embed.sets.ksvd import KSVD
from tabweave.embed.sets.pursuit import batch_omp, omp
from tabweave.embed.sets.tfidf import SetTfidf

__all__ = ["KSVD", "SetTfidf", "batch_omp", "omp"]
