"""A query while it runs: pushes, changes of plan, checkpoints."""
