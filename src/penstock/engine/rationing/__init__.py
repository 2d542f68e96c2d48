"""Probes under a budget, owed probes, freshness, estimates of loss."""
