"""Files: whole or not at all, without pickle."""
