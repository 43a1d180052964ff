"""Counts: how often values and pairs of values occur, and what follows from that."""
