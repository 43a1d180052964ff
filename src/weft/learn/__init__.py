"""Learned representations, one file per method."""
