"""Compiled kernels: plain functions on arrays."""
