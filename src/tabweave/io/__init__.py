"""Files: written completely or not at all, read when packed; saved estimators, without pickle."""
