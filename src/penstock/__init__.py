"""Penstock: adaptive multi-way stream joins."""
