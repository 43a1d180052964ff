"""The algorithms exactly as published, for comparison."""
