"""Applications: report, studio and command line; no arithmetic lives here."""
