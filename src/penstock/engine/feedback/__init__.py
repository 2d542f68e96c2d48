"""Demand: guards, waiting rows, filters, the policy."""
