"""Snapshots: what is saved of an engine, and how it is loaded."""
