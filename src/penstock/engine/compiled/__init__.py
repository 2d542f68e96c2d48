"""A plan lowered to tables of addresses."""
