"""Typed columns and keys."""
