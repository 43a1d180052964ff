"""Tasks: associations, missing and odd cells, drift, recommendations, river's streams."""
