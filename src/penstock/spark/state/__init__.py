"""What is kept of a cell between micro-batches, and in the checkpoint folder."""
