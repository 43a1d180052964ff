"""Value measures: functions from counts to dissimilarities, one file per family."""
