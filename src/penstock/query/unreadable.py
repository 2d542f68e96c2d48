"""Rows of texts that could not be read, wholly or in part: how a reader tells of them."""

CORRUPT = "_corrupt_record"
"""The column with the text of such a row, NULL in others; it has Spark's name. A reader that has
found none may leave it out."""
