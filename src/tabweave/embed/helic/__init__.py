"""HELIC: metric learning on hierarchical, heterogeneous couplings [Zhu 2019, ch. 6]."""
