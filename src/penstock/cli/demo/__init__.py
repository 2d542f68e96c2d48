"""``penstock demo``: a join of three generated streams, live."""
