"""Parts of the trace cleaning: reading profile files, events, and sums."""
