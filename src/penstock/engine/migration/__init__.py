"""Another plan while the query runs."""
