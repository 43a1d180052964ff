"""Files written whole or not at all, unpacked, of saved estimators; how databases write SQL."""
