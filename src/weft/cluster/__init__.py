"""Clustering in the space of any measure."""
