"""The columnar engine of one cell."""
