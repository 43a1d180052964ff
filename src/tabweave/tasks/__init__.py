"""Tasks: drift, recommendation, streams."""
