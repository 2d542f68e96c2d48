"""What a state is missing, and completing it on demand."""
