"""HeMap: labels from a table with other columns [Shi 2013, ch. 5]."""
