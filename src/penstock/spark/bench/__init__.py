"""Measured runs on Spark."""
