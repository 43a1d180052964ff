"""Files: written completely or not at all, without pickle."""
