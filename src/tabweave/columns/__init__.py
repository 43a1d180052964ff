"""Rows: what a user has becomes codes, numbers and sets under a schema."""
