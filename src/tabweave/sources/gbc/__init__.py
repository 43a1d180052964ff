"""GBC: gradient boosting consensus over many sources [Shi 2013, ch. 3]."""
