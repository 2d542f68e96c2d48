"""Windows, rings, indexes, composites, memory."""
