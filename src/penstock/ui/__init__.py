"""The live page: what a run tells, kept within bounds, served to a browser or written to a file."""
