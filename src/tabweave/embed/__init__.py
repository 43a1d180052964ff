"""Embedders: one method, one file or one folder."""
