"""Non-BEND: a table untangled into independent parts [Zhu 2019, ch. 5]."""
