"""The command line: thin, no arithmetic lives here."""
