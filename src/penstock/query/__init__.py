"""CQL text to a validated join graph."""
