"""Search: the rows nearest to a row."""
