"""What is above the joins: projection, difference, aggregates."""
