"""GPU: the loops over rows on a device, behind one switch; same answers as on the CPU."""
