"""Which plan, and when."""
