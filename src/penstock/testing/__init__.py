"""The oracle, generators and checks."""
