"""Which probes are made when not all may be: draws, ranks, and owed probes."""
