"""A plan lowered to operators and states."""
