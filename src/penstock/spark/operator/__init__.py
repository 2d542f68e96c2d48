"""The stateful operator of a join: a cell in Spark's hands, and old state for a new query."""
