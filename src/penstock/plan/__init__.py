"""The immutable plan tree and its notation."""
