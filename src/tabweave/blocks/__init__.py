"""Blocks: what a column contributes to the vector of a row."""
